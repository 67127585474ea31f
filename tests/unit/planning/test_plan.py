"""The plan: what has to be made for every row, and why, whatever earlier runs left."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.identifiers import ItemKey
from patternmill.planning.items import ItemMaker, Scope
from patternmill.planning.memory import LastAttempt, LastDecision, Memory
from patternmill.planning.plan import TO_DO, Plan, Reason, plan_entries
from patternmill.planning.rows import Row, sku_key
from patternmill.states import AttemptState, Decided, Stage
from tests.unit.tables.samples import HEADER, checked

SCOPE = Scope("staging", "spring")
HERON = "H-1,blue herons,Cushion,S,linen,"
HERON_MUG = "H-2,blue herons,Mug,11oz,,"
GREY, MEDIUM = "H-1,grey herons,Cushion,S,linen,", "H-1,blue herons,Cushion,M,linen,"
FERN = "F-1,green ferns,Tote bag,,,"
REFUSED = "X-1,red foxes,Sofa,,,"
MADE, BEGUN, FAILED = AttemptState.SUCCEEDED, AttemptState.INTENDED, AttemptState.FAILED
BOTH = {Stage.PATTERN: 1, Stage.PRODUCT: 1}
REASON_OF = {
    AttemptState.SUCCEEDED: Reason.DONE,
    AttemptState.INTENDED: Reason.CONTINUED,
    AttemptState.ACCEPTED: Reason.CONTINUED,
    AttemptState.WITHDRAWN: Reason.NEW,
    AttemptState.HELD: Reason.HELD,
    AttemptState.FAILED: Reason.FAILED_BEFORE,
    AttemptState.REJECTED: Reason.FAILED_BEFORE,
}


@dataclass
class Past:
    """What earlier runs left, named by the lines of the rows."""

    last_attempts: dict[ItemKey, LastAttempt] = field(default_factory=dict)
    products: dict[str, ItemKey] = field(default_factory=dict)

    def left(self, line: str, *states: AttemptState | None) -> Past:
        """Remember the states of a row's pattern and of its product."""
        row = plan(line).rows[0]
        for key, state in zip(row.chain, states, strict=False):
            if state is not None:
                self.last_attempts[key] = LastAttempt(state)
        if states[1:] == (MADE,) and row.product is not None:
            self.products[sku_key(row.sku)] = row.product
        return self

    @property
    def memory(self) -> Memory:
        return Memory(self.last_attempts, self.products)


def plan(
    *lines: str,
    past: Past | None = None,
    memory: Memory | None = None,
    retry: Callable[[Row], bool] = lambda row: False,
    only: Callable[[Row], bool] = lambda row: True,
    scope: Scope = SCOPE,
    header: str = HEADER,
) -> Plan:
    entries = checked("\n".join((header, *lines)) + "\n").entries
    memory = memory or (past or Past()).memory
    return plan_entries(ItemMaker(scope), entries, memory, retry=retry, only=only)


def chosen(*skus: str, memory: Memory | None = None) -> Plan:
    """Return a plan of three rows that is to retry and make some of them only."""
    return plan(
        *(HERON, HERON_MUG, FERN),
        memory=memory,
        retry=lambda row: row.sku in skus,
        only=lambda row: row.sku in skus,
    )


def reasons(planned: Plan, row: int = 0) -> tuple[Reason, ...]:
    """Return the reasons of a row's pattern and product."""
    return tuple(planned.items[key].reason for key in planned.rows[row].chain)


def test_first_run_buys_everything_once() -> None:
    """Rows with the same prompt share a pattern, each has a product of its own, and a refused row has no items."""
    planned = plan(HERON, REFUSED, HERON_MUG, FERN)
    assert planned.purchases() == {Stage.PATTERN: 2, Stage.PRODUCT: 3}
    assert [item.rows for item in planned.of_stage(Stage.PATTERN).values()] == [2, 1]
    assert planned.reasons_of(Stage.PRODUCT) == {Reason.NEW: 3}
    assert [row.sku for row in planned.to_do()] == ["H-1", "H-2", "F-1"]
    assert [(row.position, row.chain == ()) for row in planned.rows[:2]] == [(0, False), (1, True)]
    assert planned.refused() == 1


@pytest.mark.parametrize("state", AttemptState)
def test_reasons_follow_the_last_attempts(state: AttemptState) -> None:
    """What failed for good or is held blocks its product; a retry changes failed items only."""
    reason = REASON_OF[state]
    is_failed = reason is Reason.FAILED_BEFORE
    blocked = Reason.BLOCKED if is_failed or state is AttemptState.HELD else Reason.NEW
    assert reasons(plan(HERON, past=Past().left(HERON, state))) == (reason, blocked)
    past = Past().left(HERON, MADE, state)
    assert reasons(plan(HERON, past=past)) == (Reason.DONE, reason)
    retried = reasons(plan(HERON, past=past, retry=lambda row: True))
    assert retried == (Reason.DONE, Reason.RETRIED if is_failed else reason)


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
    """A made pattern is used again; what is begun is resumed; a retry has another attempt at failed items."""
    planned = plan(line, past=Past().left(HERON, *left), retry=lambda row: retry)
    assert (reasons(planned), planned.purchases()) == (expected, bought)


def test_retry_is_for_the_chosen_rows() -> None:
    past = Past().left(HERON, FAILED).left(FERN, FAILED)
    planned = plan(HERON, FERN, past=past, retry=lambda row: row.sku == "F-1")
    assert reasons(planned, 0) == (Reason.FAILED_BEFORE, Reason.BLOCKED)
    assert reasons(planned, 1) == (Reason.RETRIED, Reason.NEW)


def test_shared_pattern_has_the_reason_that_needs_work() -> None:
    """One row is failed for good, another is new: what the pattern needs is decided once."""
    past = Past().left(HERON, AttemptState.WITHDRAWN, AttemptState.REJECTED)
    (pattern,) = plan(HERON, HERON_MUG, past=past).of_stage(Stage.PATTERN).values()
    assert (pattern.reason, pattern.rows) == (Reason.NEW, 1)


def test_rows_not_chosen_are_left_out() -> None:
    """Their items are on record, but not made, except for a pattern that a chosen row shares."""
    planned = chosen("H-2")
    assert [reasons(planned, row) for row in range(3)] == [
        (Reason.NEW, Reason.LEFT_OUT),
        (Reason.NEW, Reason.NEW),
        (Reason.LEFT_OUT, Reason.LEFT_OUT),
    ]
    assert [row.sku for row in planned.to_do()] == ["H-2"]
    assert planned.purchases() == BOTH
    assert [item.rows for item in planned.of_stage(Stage.PATTERN).values()] == [1, 0]


@pytest.mark.parametrize("state", [MADE, FAILED, AttemptState.HELD, AttemptState.ACCEPTED, BEGUN])
def test_rows_not_chosen_keep_their_reason(state: AttemptState) -> None:
    """An item is made, failed or held whether its row is chosen or not; one that could be resumed is left out."""
    memory = Memory({key: LastAttempt(state) for key in chosen("H-1", "H-2", "F-1").items})
    planned, reason = chosen(memory=memory), REASON_OF[state]
    expected = Reason.LEFT_OUT if reason is Reason.CONTINUED else reason
    assert {item.reason for item in planned.items.values()} == {expected}
    assert list(planned.to_do()) == []


def test_spelling_of_a_file_is_not_content() -> None:
    """Row order, the case of headers, outer spaces, column order and decomposed text change no item."""
    plain = plan("É-1,café blue,Tote bag,S,linen,", HERON)
    turned = plan(
        HERON,
        unicodedata.normalize("NFD", "  É-1 , café blue ,Tote bag, S ,linen ,"),
        header=" SKU ,Prompt,CATEGORY,Option:size,OPTION:fabric,note",
    )
    assert set(plain.items) == set(turned.items)


states = st.none() | st.sampled_from(AttemptState)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), states), min_size=1, max_size=12),
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
    planned = plan(*lines, past=past, retry=lambda row: retried)
    for number in range(len(rows)):
        pattern, product = reasons(planned, number)
        assert product not in TO_DO or pattern in TO_DO | {Reason.DONE}
    waiting = (item.rows for item in planned.of_stage(Stage.PATTERN).values() if item.reason in TO_DO)
    assert sum(waiting) <= len(rows)
    assert sum(planned.reasons_of(Stage.PRODUCT).values()) == len(rows)


@pytest.mark.parametrize("verdict", Decided)
def test_nothing_new_is_built_on_what_was_decided_against(verdict: Decided) -> None:
    """What was begun before is resumed: in doubt is not failed."""
    for state, discarded in ((None, Reason.DISCARDED), (MADE, Reason.DISCARDED), (BEGUN, Reason.CONTINUED)):
        past = Past().left(HERON, MADE, state)
        pattern = plan(HERON).rows[0].chain[0]
        memory = Memory(past.last_attempts, past.products, decisions={pattern: LastDecision(verdict)})
        planned = plan(HERON, memory=memory)
        if verdict is Decided.AGAIN:
            assert set(reasons(planned)) == {Reason.CHANGED if state is MADE else Reason.NEW}
            assert planned.rows[0].entry.row is not None and planned.rows[0].entry.row.take == 2
        else:
            unchanged = reasons(plan(HERON, past=past))[1]
            assert reasons(planned)[1] is (discarded if verdict is Decided.REJECT else unchanged)
