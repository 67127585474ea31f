"""A plan in parts: shared patterns stay together, nothing is left out, parts are alike, what is begun is dealt out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from patternmill.catalog.catalog_file import Record
from patternmill.catalog.refinements import Refinement
from patternmill.catalog.row_checks import Entry
from patternmill.catalog.rows import Row
from patternmill.identifiers import ItemKey
from patternmill.planning.items import Scope
from patternmill.planning.partition import cut, is_begun, shares
from patternmill.planning.plan import TO_DO, Plan, PlanLimit, limit_plan, make_plan
from patternmill.planning.recognition import Memory
from patternmill.states import AttemptState, Stage

SCOPE = Scope("staging", "spring")


@dataclass(frozen=True)
class LastAttempt:
    state: AttemptState


def plan_of(prompts: list[int], last_attempts: Mapping[ItemKey, LastAttempt] | None = None) -> Plan:
    """A row for each prompt, by number."""
    entries = tuple(
        Entry(Record(line, ()), Row(line, f"S-{line}", f"motif {prompt}", "mug", "mug", {}, ()), ())
        for line, prompt in enumerate(prompts, start=2)
    )
    return make_plan(SCOPE, entries, Memory(last_attempts or {}))


def begun(plan: Plan, motifs: set[int]) -> dict[ItemKey, LastAttempt]:
    wanted = {f"motif {motif}" for motif in motifs}
    return {
        key: LastAttempt(AttemptState.ACCEPTED)
        for key, planned in plan.of_stage(Stage.PATTERN).items()
        if planned.item.prompt in wanted
    }


PROMPTS = st.lists(st.integers(0, 12), max_size=60)


@given(PROMPTS, st.integers(1, 9), st.sets(st.integers(0, 12)))
def test_parts_are_the_whole_plan(prompts: list[int], parts: int, open_motifs: set[int]) -> None:
    """Each row is in exactly one part, each pattern too; none is empty; the same plan is always cut alike."""
    plan = plan_of(prompts, begun(plan_of(prompts), open_motifs))
    made = cut(plan, parts)
    assert len(made) <= parts and all(made)
    assert sorted(row.position for part in made for row in part) == list(range(len(prompts)))
    patterns = [{row.pattern for row in part} for part in made]
    assert sum(map(len, patterns)) == len(set().union(*patterns))
    assert cut(plan, parts) == made


@given(st.integers(1, 300), st.integers(1, 9), st.data())
def test_parts_have_similar_sizes(count: int, parts: int, data: st.DataObject) -> None:
    """Without shared patterns: the numbers of rows, and of begun ones, differ by one or two at most."""
    prompts = list(range(count))
    plan = plan_of(prompts, begun(plan_of(prompts), data.draw(st.sets(st.integers(0, count - 1)))))
    made = cut(plan, parts)
    if count >= 2 * parts:
        sizes = [len(part) for part in made]
        assert max(sizes) - min(sizes) <= 2
    opened = [sum(is_begun(plan, row) for row in part) for part in made]
    opened += [0] * (parts - len(made))
    assert max(opened) - min(opened) <= 1


def test_begun_items_come_first() -> None:
    """In each part, so that running jobs are in its window before a new one is created."""
    prompts = list(range(8))
    plan = plan_of(prompts, begun(plan_of(prompts), {5, 7}))
    first, second = cut(plan, 2)
    assert [row.position for row in first] == [5, 0, 1, 2]
    assert [row.position for row in second] == [7, 3, 4, 6]


@given(st.integers(0, 5000), st.integers(1, 64))
def test_shares_add_up_to_the_whole(total: int, parts: int) -> None:
    """No share is more than one above another."""
    dealt = shares(total, parts)
    assert sum(dealt) == total and max(dealt) - min(dealt) <= 1


CHAIN_ROWS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.sampled_from([None, "a" * 64, "b" * 64]),
        st.lists(st.integers(0, 2), max_size=2),
    ),
    max_size=30,
)


def chained_plan(
    rows: list[tuple[int, str | None, list[int]]], last_attempts: Mapping[ItemKey, LastAttempt] | None = None
) -> Plan:
    """Rows with a prompt, a reference and refinements, each by number."""
    entries = []
    for line, (motif, reference, edits) in enumerate(rows, start=2):
        refinements = tuple(Refinement("edit", {"prompt": str(edit)}) for edit in edits)
        row = Row(line, f"S-{line}", f"motif {motif}", "mug", "mug", {}, ())
        row = replace(row, reference=reference, refinements=refinements)
        entries.append(Entry(Record(line, ()), row, ()))
    return make_plan(SCOPE, entries, Memory(last_attempts or {}))


@given(CHAIN_ROWS, st.integers(1, 9), st.integers(0, 40))
def test_parts_share_nothing_that_is_still_to_be_made(
    rows: list[tuple[int, str | None, list[int]]], parts: int, made: int
) -> None:
    """References and refinements too; each item comes after what it is built on."""
    fresh = chained_plan(rows)
    # What was made before begins with what others are built on.
    done = dict.fromkeys(list(fresh.items)[:made], LastAttempt(AttemptState.SUCCEEDED))
    done = {key: last for key, last in done.items() if fresh.items[key].item.stage is not Stage.PRODUCT}
    plan = chained_plan(rows, done)
    seen: set[ItemKey] = set()
    for key, planned in plan.items.items():
        assert planned.item.parent_key is None or planned.item.parent_key in seen
        seen.add(key)
    pieces = cut(plan, parts)
    assert sorted(row.position for part in pieces for row in part) == list(range(len(rows)))
    waiting = [
        {key for row in part for key in row.keys if plan.items[key].reason in TO_DO} for part in pieces
    ]
    assert sum(map(len, waiting)) == len(set().union(*waiting))


@given(CHAIN_ROWS, st.integers(0, 60))
def test_limits_buy_whole_chains(rows: list[tuple[int, str | None, list[int]]], most: int) -> None:
    plan = chained_plan(rows)
    limit = PlanLimit("the limit", "Raise it.", most, dict.fromkeys(Stage, 1))
    limited = limit_plan(plan, [limit])
    bought = limited.plan if limited else plan
    assert bought.purchases().total() <= most or limited is None
    for row in bought.to_do():
        assert all(bought.items[key].reason in TO_DO for key in row.keys)
