"""The small parts of the engine: depth, halt, the limit of failures, options and progress."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.engine.options import FailureLimit, RunOptions
from patternmill.engine.progress import Halt, HaltReason, Progress
from patternmill.engine.shards import Depth, Group
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey
from patternmill.settings import Settings
from patternmill.states import Outcome, Stage

# -- depth


@settings(max_examples=80)
@given(st.integers(1, 6), st.lists(st.integers(1, 9), max_size=15), st.integers(0, 99))
def test_depth_is_never_exceeded_and_everyone_enters(most: int, sizes: list[int], seed: int) -> None:
    """Groups of any size, leaving in any order: at most `most` rows, or one group that is larger, alone."""
    asyncio.run(depth_holds(most, sizes, random.Random(seed)))


async def depth_holds(most: int, sizes: list[int], chance: random.Random) -> None:
    depth = Depth(most)
    inside: dict[Group, int] = {}
    entered: list[Group] = []

    async def one(number: int, size: int) -> None:
        group: Group = (1, ItemKey(str(number)), size)
        await depth.enter(group)
        entered.append(group)
        inside[group] = size
        assert sum(inside.values()) <= most or len(inside) == 1
        for left in reversed(range(size)):
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            # No longer inside before the room is given away.
            inside[group] = left
            if not left:
                del inside[group]
            depth.leave(group)

    await asyncio.wait_for(asyncio.gather(*(one(n, size) for n, size in enumerate(sizes))), 5)
    assert [int(group[1] or 0) for group in entered] == list(range(len(sizes)))


def test_leaving_without_entering_frees_nothing() -> None:

    async def main() -> None:
        depth = Depth(1)
        depth.leave((1, ItemKey("a"), 1))
        await depth.enter((1, ItemKey("b"), 1))
        waiting = asyncio.ensure_future(depth.enter((1, ItemKey("c"), 1)))
        await asyncio.sleep(0)
        assert not waiting.done()
        depth.leave((1, ItemKey("b"), 1))
        await asyncio.wait_for(waiting, 1)

    asyncio.run(main())


def test_forced_entry_does_not_wait_and_counts() -> None:
    """Rows with a made pattern may exceed the depth; others wait until they are fewer again."""

    async def main() -> None:
        depth = Depth(2)
        first, second, third = ((1, ItemKey(name), count) for name, count in (("a", 1), ("b", 2), ("c", 1)))
        depth.enter_at_once(first)
        depth.enter_at_once(second)
        waiting = asyncio.ensure_future(depth.enter(third))
        for group in (first, second):
            await asyncio.sleep(0)
            assert not waiting.done()
            depth.leave(group)
        await asyncio.wait_for(waiting, 1)

    asyncio.run(main())


@pytest.mark.parametrize("moment", ["while waiting", "as its turn comes"])
def test_cancelled_entry_blocks_nobody(moment: str) -> None:
    """It keeps no place, not even one assigned in the same moment."""

    async def main() -> None:
        depth = Depth(1)
        first, second, third = ((1, ItemKey(name), 1) for name in "abc")
        await depth.enter(first)
        waits = [asyncio.ensure_future(depth.enter(group)) for group in (second, third)]
        await asyncio.sleep(0)
        if moment == "while waiting":
            waits[0].cancel()
            await asyncio.sleep(0)
        depth.leave(first)
        waits[0].cancel()
        await asyncio.wait_for(waits[1], 1)
        assert waits[0].cancelled()

    asyncio.run(main())


# -- halt


def reason(outcome: Outcome, code: str = "why") -> HaltReason:
    return HaltReason(outcome, code, f"{code}.")


def test_halt_applies_to_its_stages() -> None:
    """A limit of patterns leaves products alone."""
    halt = Halt()
    assert halt.reason is None and not any(map(halt.halts, Stage))
    halt.begin(reason(Outcome.BUDGET_REACHED), stages=(Stage.PATTERN,))
    assert [halt.halts(stage) for stage in (Stage.PATTERN, Stage.PRODUCT)] == [True, False]


def test_first_reason_counts() -> None:
    """Later ones follow from it."""
    halt = Halt()
    halt.begin(reason(Outcome.FAILED, "first"))
    halt.begin(reason(Outcome.FAILED, "second"))
    assert halt.reason == reason(Outcome.FAILED, "first")


def test_stop_outranks_earlier_reasons() -> None:
    """A person who stops a run sees that it was stopped."""
    halt = Halt()
    halt.begin(reason(Outcome.FAILED))
    halt.begin(reason(Outcome.CANCELLED, "stopped"))
    assert halt.reason == reason(Outcome.CANCELLED, "stopped")


def test_failure_outranks_a_limit_of_its_stage() -> None:
    """What a limit let pass may still be sent; after a refused key, or a lost lease, it may not."""
    halt = Halt()
    halt.begin(reason(Outcome.BUDGET_REACHED))
    assert not halt.forbids_sending(Stage.PATTERN)
    halt.begin(reason(Outcome.FAILED, "fenced"))
    assert halt.forbids_sending(Stage.PATTERN)
    assert halt.reason == reason(Outcome.FAILED, "fenced")


def test_graver_reason_of_two_stages_names_the_outcome() -> None:
    """A failure is not hidden behind a limit."""
    halt = Halt()
    halt.begin(reason(Outcome.BUDGET_REACHED), stages=(Stage.PATTERN,))
    halt.begin(reason(Outcome.FAILED))
    assert halt.reason == reason(Outcome.FAILED)


# -- the limit of failures


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (None, FailureLimit()),
        ("", FailureLimit()),
        ("0", FailureLimit(count=0)),
        ("25", FailureLimit(count=25)),
        ("10%", FailureLimit(share=0.1)),
        (" 12.5 % ", FailureLimit(share=0.125)),
        ("100%", FailureLimit(share=1.0)),
    ],
)
def test_failure_limits_are_parsed(text: str | None, limit: FailureLimit) -> None:
    assert FailureLimit.parse(text) == limit


@pytest.mark.parametrize("text", ["-1", "101%", "ten", "1.5", "%", "1e3", "nan%"])
def test_invalid_failure_limits_are_refused(text: str) -> None:
    """With the valid forms."""
    with pytest.raises(ConfigurationError, match="count"):
        FailureLimit.parse(text)


@pytest.mark.parametrize(
    ("limit", "failed", "ended", "passed"),
    [
        (FailureLimit(), 999, 999, False),
        (FailureLimit(count=2), 2, 2, False),
        (FailureLimit(count=2), 3, 99, True),
        (FailureLimit(count=0), 1, 1, True),
        (FailureLimit(share=0.1), 19, 19, False),
        (FailureLimit(share=0.1), 2, 20, False),
        (FailureLimit(share=0.1), 3, 20, True),
        (FailureLimit(share=1.0), 20, 20, False),
    ],
)
def test_failure_limit_is_reached(limit: FailureLimit, failed: int, ended: int, passed: bool) -> None:
    """Above the count; or above the share, once enough items have ended to mean anything."""
    assert limit.passed(failed, ended) is passed


# -- options


def test_options_come_from_the_settings() -> None:
    given = Settings(
        _env_file=None, max_in_flight=7, attempts=3, shard_rows=9, final_reasons=("refused",), pattern_price=5
    )
    options = RunOptions.from_settings(given, max_failures="3", max_patterns=4, max_products=5, budget=600)
    assert (options.max_in_flight, options.attempts, options.shard_rows) == (7, 3, 9)
    assert options.failure_limit == FailureLimit(count=3)
    assert (options.limits.patterns, options.limits.products, options.limits.run_amount) == (4, 5, 600)
    assert (options.pattern_price, options.product_price) == (5, 0)


def test_budget_without_prices_is_refused() -> None:
    """It would never be reached."""
    with pytest.raises(ConfigurationError, match="no prices"):
        RunOptions.from_settings(Settings(_env_file=None), budget=100)


def test_budget_above_the_largest_amount_is_refused() -> None:
    """The option is named; the largest amount is accepted."""
    priced = Settings(_env_file=None, pattern_price=10**11)
    assert RunOptions.from_settings(priced, budget=10**15).limits.run_amount == 10**15
    with pytest.raises(ConfigurationError, match="--budget"):
        RunOptions.from_settings(priced, budget=2**63)


@pytest.mark.parametrize(
    ("reason", "final"),
    [("Content REFUSED by policy", True), ("timed out", False), ("", False), ("nsfw found", True)],
)
def test_final_failure_patterns(reason: str, final: bool) -> None:
    """Any of the patterns, anywhere in the text, in any case."""
    assert RunOptions(final_reasons=("content refused", "nsfw")).is_final(reason) is final


# -- progress


def test_time_left_follows_the_runs_own_rate() -> None:
    """A range around it, the narrower the more rows have ended; zero when nothing is left."""
    progress = Progress(to_do=40)
    progress.started -= 10
    progress.ended = 10
    low, high = progress.time_left() or (0.0, 0.0)
    assert 20 < low < 30 < high < 45
    progress.ended = 40
    assert progress.time_left() == (0.0, 0.0)


def test_time_left_is_the_forecasts_until_more_rows_ended_than_are_under_way() -> None:
    """One of 24 says nothing of the rest: they are about to end with it."""
    progress = Progress(to_do=24, in_flight=23, ended=1)
    progress.started -= 80
    assert progress.time_left() is None, "neither a forecast nor a rate"
    progress.expected = (90.0, 140.0)
    low, high = progress.time_left() or (0.0, 0.0)
    assert 9 < low <= 10 and 59 < high <= 60
    progress.started -= 100
    assert progress.time_left() is None, "the forecast was wrong"
    progress.in_flight, progress.ended = 12, 12
    assert progress.time_left() is not None


def test_items_that_wait_to_be_sent_are_not_about_to_end() -> None:
    """Where the service runs twelve jobs at once, the rate is known after twelve rows."""
    progress = Progress(to_do=200, in_flight=180, ended=20)
    progress.started -= 10
    assert progress.time_left(queued=150) is None
    low, high = progress.time_left(queued=168) or (0.0, 0.0)
    assert 60 < low < 90 < high < 130


def test_progress_counts_items_by_stage() -> None:
    progress = Progress()
    progress.made(Stage.PATTERN)
    progress.made(Stage.PRODUCT)
    progress.item_failed()
    assert (progress.patterns, progress.products) == (1, 1)
    assert (progress.items_ended, progress.items_failed) == (3, 1)
