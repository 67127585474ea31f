"""Negative controls: with a bug put into the program, the scenario that is to catch it must report it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.acceptance import scenarios, seeded_bugs
from tests.acceptance.harness import Zygote

#: The bug, the scenario that is to catch it, and a part of the fault that it reports.
CAUGHT: list[tuple[str, Callable[..., list[str]], str]] = [
    ("new_id_per_try", scenarios.answers_lost, "bought twice"),
    ("post_before_intent", scenarios.killed_after_a_create, "bought twice"),
    ("job_id_before_intent", scenarios.killed_after_a_create, "bought twice"),
    ("next_attempt_in_doubt", scenarios.answers_lost, "bought twice"),
    ("poll_error_is_failure", scenarios.polls_fail, "bought twice"),
    ("overlap_ignored", scenarios.overlapped, "was not refused"),
    ("fence_ignored", scenarios.holder_stood_still, "not fenced off"),
    ("id_of_the_process", scenarios.two_machines, "bought twice"),
    ("result_not_kept", scenarios.answers_lost, ""),
    ("budget_not_reserved", scenarios.limited_day, "was spent of"),
    ("create_while_draining", scenarios.stopped_once, "after"),
]
NAMES = [bug for bug, _, _ in CAUGHT]
#: The others are for the soak: they prove the audits, which change seldom.
OFTEN = {"post_before_intent", "budget_not_reserved", "overlap_ignored"}


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[list[str]]]]:
    """The scenarios that were asked for, played side by side: they mostly wait."""
    asked = {item.callspec.params.get("bug") for item in request.session.items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(3) as pool:
        yield {
            bug: pool.submit(play, tmp_path_factory.mktemp(bug), zygote, ("--bug", bug))
            for bug, play, _ in CAUGHT
            if bug in asked
        }


@pytest.mark.parametrize(
    ("bug", "play", "fault_text"),
    [pytest.param(*bug, id=bug[0], marks=() if bug[0] in OFTEN else pytest.mark.soak) for bug in CAUGHT],
)
def test_seeded_bug_is_caught(
    bug: str, play: object, fault_text: str, played: dict[str, Future[list[str]]]
) -> None:
    """The scenario that is clean without the bug is not clean with it."""
    faults = played[bug].result()
    assert faults, f"{bug} went unnoticed"
    assert any(fault_text in fault for fault in faults), faults
    assert not any("into which a bug could be put" in fault for fault in faults), faults


def test_every_seeded_bug_is_tested() -> None:
    """A bug that no test seeds proves nothing."""
    assert sorted(seeded_bugs.SEEDED) == sorted(NAMES)
