"""What a run would do about items and rows, as tables."""

import pytest

from patternmill.items import Stage
from patternmill.plan import Action, affordable, make_plan, next_action
from patternmill.states import ENTERED_FROM, OPEN, Attempt, State
from tests.spine import row


def attempt(item, state, number=1, **more):
    place = item.stage, item.operation, "production", "spring", "run", item.label, "{}"
    return Attempt(item.request_id(number), item.id, number, *place, state, **more)


ITEM = row().product


@pytest.mark.parametrize(
    ("last", "action", "when_retrying"),
    [
        (None, Action.MAKE, Action.MAKE),
        (attempt(ITEM, State.INTENDED), Action.FOLLOW, Action.FOLLOW),
        (attempt(ITEM, State.ACCEPTED), Action.FOLLOW, Action.FOLLOW),
        (attempt(ITEM, State.SUCCEEDED), Action.EXISTS, Action.EXISTS),
        (attempt(ITEM, State.HELD), Action.HELD, Action.HELD),
        (attempt(ITEM, State.FAILED, code="job_failed"), Action.MAKE, Action.MAKE),
        (attempt(ITEM, State.FAILED, 2, code="job_failed"), Action.FAILED, Action.MAKE),
        (attempt(ITEM, State.FAILED, code="content_refused"), Action.FAILED, Action.MAKE),
        (attempt(ITEM, State.WRITTEN_OFF), Action.FAILED, Action.MAKE),
        (attempt(ITEM, State.REJECTED, code="unclear_refusal"), Action.RESEND, Action.RESEND),
        (attempt(ITEM, State.REJECTED, code="invalid_request"), Action.FAILED, Action.RESEND),
    ],
)
def test_what_the_last_attempt_leads_to(last, action, when_retrying):
    assert next_action(last, 2) is action
    most = max(2, last.number + 1) if last else 2
    assert next_action(last, most, retrying=True) is when_retrying


def planned(rows, *attempts, retrying=False):
    prices = {Stage.PATTERN: 40, Stage.PRODUCT: 10}
    return make_plan(rows, {one.item_id: one for one in attempts}, 2, prices, retrying)


def test_rows_of_one_prompt_share_its_pattern():
    plan = planned([row(2, sku="A-1"), row(3, sku="A-2"), row(4, "waves", "A-3")])
    assert (plan.counts[Action.MAKE, Stage.PATTERN], plan.counts[Action.MAKE, Stage.PRODUCT]) == (2, 3)
    assert (plan.purchases, plan.cost) == (5, 110)


def test_no_product_is_planned_on_a_pattern_that_failed_for_good():
    failed = attempt(row().chain[0], State.FAILED, code="content_refused")
    assert planned([row()], failed).purchases == 0
    assert planned([row()], failed, retrying=True).purchases == 2


def test_a_retry_allows_one_more_attempt():
    failed = attempt(row().chain[0], State.FAILED, 4, code="job_failed")
    assert planned([row()], failed, retrying=True).steps[failed.item_id].most == 5


def test_what_goes_on_comes_first_and_what_ended_badly_before_comes_last():
    rows = [row(2, "refused"), row(3, "new"), row(4, "running")]
    refused = attempt(rows[0].chain[0], State.REJECTED, code="unclear_refusal")
    running = attempt(rows[2].chain[0], State.ACCEPTED, job_id="job")
    assert [one.number for one in planned(rows, refused, running).rows] == [4, 3, 2]


@pytest.mark.parametrize(
    ("items", "money", "numbers"),
    [
        (None, None, [2, 3, 4]), (5, None, [2, 3, 4]), (4, None, [2, 3]), (3, None, [2, 3]), (1, None, []),
        (None, 60, [2, 3]), (None, 59, [2]), (0, 0, []),
    ],
)  # fmt: skip
def test_limits_cut_whole_rows(items, money, numbers):
    plan = planned([row(2, sku="A-1"), row(3, sku="A-2"), row(4, "waves", "A-3")])
    assert [one.number for one in affordable(plan, items, money)] == numbers


def test_what_exists_is_free_beyond_any_limit():
    rows = [row(2, "waves", "A-3"), row(3)]
    made = [attempt(item, State.SUCCEEDED, job_id="j", result_id="r") for item in rows[1].chain]
    assert [one.number for one in affordable(planned(rows, *made), 2, None)] == [2, 3]


def test_other_items_have_another_digest():
    assert planned([row()]).digest == planned([row(9, sku="A-2")]).digest != planned([row(2, "waves")]).digest


def test_no_state_is_left_but_by_a_legal_change():
    final = {State.SUCCEEDED, State.WRITTEN_OFF}
    assert all(final.isdisjoint(before) for before in ENTERED_FROM.values())
    assert ENTERED_FROM[State.INTENDED].isdisjoint(OPEN)
