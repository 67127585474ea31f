"""The plan: what has to be made for every row, and why, whatever earlier runs left."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.catalog.row_checks import CheckedCatalog
from patternmill.catalog.rows import Row
from patternmill.identifiers import ItemKey
from patternmill.planning.items import ContentItems, Scope
from patternmill.planning.plan import TO_BUY, TO_DO, Plan, Reason, make_plan
from patternmill.planning.recognition import Memory
from patternmill.states import UNWANTED, AttemptState, Decided, Stage
from tests.unit.catalog.samples import HEADER, checked

SCOPE = Scope("staging", "spring")
HERON = "H-1,blue herons,Cushion,S,linen,"
HERON_MUG = "H-2,blue herons,Mug,11oz,,"
FERN = "F-1,green ferns,Tote bag,,,"
REFUSED = "X-1,red foxes,Sofa,,,"

_OF_STATE = {
    AttemptState.SUCCEEDED: Reason.DONE,
    AttemptState.INTENDED: Reason.CONTINUED,
    AttemptState.ACCEPTED: Reason.CONTINUED,
    AttemptState.WITHDRAWN: Reason.NEW,
    AttemptState.HELD: Reason.HELD,
    AttemptState.FAILED: Reason.FAILED_BEFORE,
    AttemptState.REJECTED: Reason.FAILED_BEFORE,
}


@dataclass(frozen=True)
class LastAttempt:
    """The last attempt at an item."""

    state: AttemptState
    attempt: int = 1


@dataclass
class Past:
    """What earlier runs left, named by the lines of the rows."""

    last_attempts: dict[ItemKey, LastAttempt] = field(default_factory=dict)
    products: dict[str, ItemKey] = field(default_factory=dict)

    def left(self, line: str, pattern: AttemptState | None, product: AttemptState | None = None) -> Past:
        planned = plan(line).rows[0]
        assert planned.pattern is not None and planned.product is not None
        if pattern is not None:
            self.last_attempts[planned.pattern] = LastAttempt(pattern)
        if product is not None:
            self.last_attempts[planned.product] = LastAttempt(product)
        self.products[planned.sku] = planned.product
        return self

    @property
    def memory(self) -> Memory:
        return Memory(self.last_attempts, self.products)


def catalog(*lines: str, header: str = HEADER) -> CheckedCatalog:
    return checked("\n".join((header, *lines)) + "\n")


def plan(
    *lines: str,
    past: Past | None = None,
    retry: Callable[[Row], bool] = lambda row: False,
    scope: Scope = SCOPE,
    header: str = HEADER,
) -> Plan:
    memory = past.memory if past else Memory()
    return make_plan(
        scope,
        catalog(*lines, header=header).entries,
        memory,
        retry=retry,
        items=ContentItems(scope),
    )


def reasons(planned: Plan, row: int = 0) -> tuple[Reason, Reason]:
    """Of the pattern and of the product of a row."""
    found = planned.rows[row]
    assert found.pattern is not None and found.product is not None
    return planned.items[found.pattern].reason, planned.items[found.product].reason


def test_first_run_buys_everything_once() -> None:
    """Rows with the same prompt share one pattern item; every row has a product item of its own."""
    planned = plan(HERON, HERON_MUG, FERN)
    assert planned.purchases() == {Stage.PATTERN: 2, Stage.PRODUCT: 3}
    assert [found.rows for found in planned.of_stage(Stage.PATTERN).values()] == [2, 1]
    assert planned.reasons_of(Stage.PATTERN) == {Reason.NEW: 2}
    assert planned.reasons_of(Stage.PRODUCT) == {Reason.NEW: 3}
    assert [row.sku for row in planned.to_do()] == ["H-1", "H-2", "F-1"]


def test_refused_row_is_counted_and_has_no_items() -> None:
    planned = plan(HERON, REFUSED, FERN)
    assert [(row.position, row.product is None) for row in planned.rows] == [
        (0, False),
        (1, True),
        (2, False),
    ]
    assert planned.refused() == 1
    assert planned.purchases() == {Stage.PATTERN: 2, Stage.PRODUCT: 2}


@pytest.mark.parametrize("state", AttemptState)
def test_reason_of_a_pattern_follows_its_last_attempt(state: AttemptState) -> None:
    """Every state of a pattern has its reason, and the product follows from it."""
    pattern, product = reasons(plan(HERON, past=Past().left(HERON, state)))
    assert pattern is _OF_STATE[state]
    blocked = pattern in (Reason.HELD, Reason.FAILED_BEFORE)
    assert product is (Reason.BLOCKED if blocked else Reason.NEW)


@pytest.mark.parametrize("state", AttemptState)
def test_reason_of_a_product_follows_its_last_attempt(state: AttemptState) -> None:
    """Every state of a product has its reason; its pattern is made and costs nothing."""
    past = Past().left(HERON, AttemptState.SUCCEEDED, state)
    assert reasons(plan(HERON, past=past)) == (Reason.DONE, _OF_STATE[state])


MADE, FAILED = AttemptState.SUCCEEDED, AttemptState.FAILED
BOTH = {Stage.PATTERN: 1, Stage.PRODUCT: 1}
GREY, MEDIUM = "H-1,grey herons,Cushion,S,linen,", "H-1,blue herons,Cushion,M,linen,"


@pytest.mark.parametrize(
    ("left", "line", "retry", "expected", "bought"),
    [
        ((MADE, AttemptState.ACCEPTED), HERON, False, (Reason.DONE, Reason.CONTINUED), {}),
        ((MADE, MADE), MEDIUM, False, (Reason.DONE, Reason.CHANGED), {Stage.PRODUCT: 1}),
        ((MADE, MADE), GREY, False, (Reason.CHANGED, Reason.CHANGED), BOTH),
        ((MADE, MADE), HERON_MUG, False, (Reason.DONE, Reason.NEW), {Stage.PRODUCT: 1}),
        ((FAILED,), HERON, True, (Reason.RETRIED, Reason.NEW), BOTH),
        ((AttemptState.REJECTED,), HERON, True, (Reason.RETRIED, Reason.NEW), BOTH),
        ((MADE, FAILED), HERON, True, (Reason.DONE, Reason.RETRIED), {Stage.PRODUCT: 1}),
    ],
    ids=["begun", "category", "prompt", "new sku", "failed", "rejected", "failed product"],
)
def test_what_follows_an_earlier_run(
    left: tuple[AttemptState, ...],
    line: str,
    retry: bool,
    expected: tuple[Reason, Reason],
    bought: dict[Stage, int],
) -> None:
    """A made pattern is used again; what is begun is resumed; failed items get another attempt where one is wanted."""
    planned = plan(line, past=Past().left(HERON, *left), retry=lambda row: retry)
    assert (reasons(planned), planned.purchases()) == (expected, bought)


@pytest.mark.parametrize("state", sorted(set(AttemptState) - {AttemptState.FAILED, AttemptState.REJECTED}))
def test_retry_changes_failed_items_only(state: AttemptState) -> None:
    """What succeeded, is begun or held keeps its reason."""
    past = Past().left(HERON, AttemptState.SUCCEEDED, state)
    assert reasons(plan(HERON, past=past, retry=lambda row: True)) == reasons(plan(HERON, past=past))


def test_retry_covers_the_chosen_rows_only() -> None:
    past = Past().left(HERON, AttemptState.FAILED).left(FERN, AttemptState.FAILED)
    planned = plan(HERON, FERN, past=past, retry=lambda row: row.sku == "F-1")
    assert reasons(planned, 0) == (Reason.FAILED_BEFORE, Reason.BLOCKED)
    assert reasons(planned, 1) == (Reason.RETRIED, Reason.NEW)


def test_shared_pattern_has_the_reason_that_needs_work() -> None:
    """One row is failed for good, another is new: what the pattern needs is decided once."""
    past = Past().left(HERON, AttemptState.WITHDRAWN, AttemptState.REJECTED)
    planned = plan(HERON, HERON_MUG, past=past)
    (pattern,) = planned.of_stage(Stage.PATTERN).values()
    assert (pattern.reason, pattern.rows) == (Reason.NEW, 1)


def test_spelling_of_a_file_is_not_content() -> None:
    """Row order, the case of headers, outer spaces, column order and decomposed text change no item."""
    plain = plan("É-1,café blue,Tote bag,S,linen,", HERON)
    turned = plan(
        HERON,
        unicodedata.normalize("NFD", "  É-1 , café blue ,Tote bag, S ,linen ,"),
        header=" SKU ,Prompt,CATEGORY,Option:size,OPTION:fabric,note",
    )
    assert set(plain.of_stage(Stage.PATTERN)) == set(turned.of_stage(Stage.PATTERN))
    assert set(plain.of_stage(Stage.PRODUCT)) == set(turned.of_stage(Stage.PRODUCT))


states = st.none() | st.sampled_from(AttemptState)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), states), max_size=12),
    st.dictionaries(st.sampled_from("abcd"), states),
    st.booleans(),
)
def test_plan_is_consistent_after_any_history(
    rows: list[tuple[str, AttemptState | None]], patterns: dict[str, AttemptState | None], retried: bool
) -> None:
    """No product is planned without a pattern that is made or planned; no count exceeds the rows."""
    past, lines = Past(), []
    for number, (prompt, product) in enumerate(rows):
        lines.append(f"S-{number},prompt {prompt},Tote bag,,,")
        past.left(lines[-1], patterns.get(prompt), product)
    planned = plan(*lines, past=past, retry=lambda row: retried) if lines else None
    if planned is None:
        return
    for row in planned.rows:
        assert row.pattern is not None and row.product is not None
        if planned.items[row.product].reason in TO_DO:
            assert planned.items[row.pattern].reason in TO_DO | {Reason.DONE}
    waiting = sum(found.rows for found in planned.of_stage(Stage.PATTERN).values() if found.reason in TO_DO)
    assert waiting <= len(rows)
    assert TO_BUY <= TO_DO
    assert sum(planned.reasons_of(Stage.PRODUCT).values()) == len(rows)


@pytest.mark.parametrize("verdict", Decided)
def test_nothing_new_is_built_on_what_was_decided_against(verdict: Decided) -> None:
    """What was begun before is resumed: in doubt is not failed."""
    for state, expected in ((None, Reason.UNDECIDED), (AttemptState.INTENDED, Reason.CONTINUED)):
        past = Past().left(HERON, AttemptState.SUCCEEDED, state)
        pattern = plan(HERON).rows[0].pattern
        assert pattern is not None
        memory = Memory(past.last_attempts, past.products, verdicts={pattern: verdict})
        planned = make_plan(SCOPE, catalog(HERON).entries, memory)
        assert reasons(planned)[1] is (
            expected if verdict in UNWANTED else reasons(plan(HERON, past=past))[1]
        )
