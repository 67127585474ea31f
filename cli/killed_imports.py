"""Imports that are killed at random moments, as processes of their own, against a studio that fails by plan."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patternmill.errors import PatternmillError
from patternmill.states import EXIT_CODES, Outcome
from prefect_host.shared_process import FOREIGN_VARIABLES
from studio.testing import Studio

IMPORT_COMMAND = (sys.executable, "-m", "cli.rehearsed_import")
COUNTED = "calls of "
_CREATED = (
    *("patterns/create", "products/create", "references/create"),
    *("refine/edit", "refine/recolor", "refine/crop", "refine/extend"),
)
_OPERATIONS = (*_CREATED, "jobs/get", "categories/list", "categories/get", "models/list")
_CREATES = tuple(f"{COUNTED}{name}" for name in _CREATED)
#: What an import asks for once it has resumed.
_WORK = (*_CREATES, f"{COUNTED}jobs/get")
#: Counts the jobs that were begun, as faults on jobs do.
_JOBS = "jobs begun"
#: A call that no fault will ever fall on.
_NEVER = 10**9
#: Kills are spread over this part of the purchases, and follow up to so many seconds after their moment.
_LATEST_SHARE, _LONGEST_PAUSE = 0.95, 0.4
#: Seconds of pauses in all, at most: an import goes on meanwhile, and is done before there were many kills.
_PAUSES = 4.0
#: The share of kills that may come before an import has begun to work.
_EARLY = 0.2
_LOOK_EVERY = 0.03
#: How long one import may take, and how often one that ended unfinished is started again.
_PATIENCE, _TRIES = 900.0, 6
FINISHED_CODES = {EXIT_CODES[Outcome.COMPLETED], EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES]}


def is_counter(name: str) -> bool:
    """Whether this fault only counts, and never falls on a call."""
    return name == _JOBS or name.startswith(COUNTED)


def counted_calls(report: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The calls of each operation, by the counters in a report of the plan's faults."""
    return {
        one["name"].removeprefix(COUNTED): one["calls"]
        for one in report
        if one["name"].startswith(COUNTED) and one["calls"]
    }


def fault_plan(rng: random.Random) -> list[dict[str, Any]]:
    """What goes wrong at the studio, each at a regular number of calls that the seed decides; and counters of calls."""
    refused = {"kind": "refuse", "retryAfter": 0}
    burst = rng.randint(5, 9)
    # On one call the first fault fires: of numbers that have no common factor, none hides another for good.
    creates = iter(
        rng.choice(pair) for pair in ((11, 13), (17, 19), (23, 29), (31, 37), (41, 43), (47, 53), (59, 61))
    )
    polls = iter(rng.choice(pair) for pair in ((31, 37), (41, 43), (47, 53), (59, 61)))
    return [
        *(_counter(COUNTED + one, one, "delay") for one in _OPERATIONS),
        _counter(_JOBS, "creates", "job_never_ends"),
        {
            "name": "burst of 429",
            "on": "creates",
            "nth": list(range(burst, burst + 5)),
            "effect": {**refused, "status": 429},
        },
        _fault("create executed, its answer lost", "creates", next(creates), kind="close"),
        _fault(
            "create executed, answered 502", "creates", next(creates), kind="body", form="html", status=502
        ),
        _fault("create lost before it was executed", "creates", next(creates), kind="close", when="before"),
        _fault(
            "create executed, half of its answer", "creates", next(creates), kind="body", form="truncated"
        ),
        _fault("create executed, a web page as answer", "creates", next(creates), kind="body", form="html"),
        _fault("create refused with 500", "creates", next(creates), kind="refuse", status=500),
        _fault("create refused with 503", "creates", next(creates), **refused, status=503),
        _fault("job that fails", "creates", rng.randint(20, 30), kind="job_fails", message="The loom broke."),
        _fault("poll without an answer", "polls", next(polls), kind="close"),
        _fault("slow poll", "polls", next(polls), kind="delay", after=0.8),
        _fault("poll refused with 503", "polls", next(polls), **refused, status=503),
        _fault("poll with half an answer", "polls", next(polls), kind="body", form="malformed"),
    ]


def _counter(name: str, on: str, kind: str) -> dict[str, Any]:
    """A fault that falls on no call, and counts all."""
    return {"name": name, "on": on, "nth": [_NEVER], "effect": {"kind": kind}}


def _fault(name: str, on: str, every: int, **effect: Any) -> dict[str, Any]:
    return {"name": name, "on": on, "every": every, "effect": effect}


@dataclass(frozen=True)
class KillMoment:
    """When something is killed: at this share of the purchases, after a pause in seconds."""

    share: float
    pause: float
    #: The import, or else the studio.
    of_import: bool
    #: Also while the import that runs has not asked for anything yet.
    early: bool


def draw_moments(rng: random.Random, kills: int) -> list[KillMoment]:
    """So many kills of the import, and one of the studio for each three of them, spread over the purchases."""
    moments = [
        KillMoment(
            (number + rng.random()) / count * _LATEST_SHARE,
            rng.uniform(0.0, min(_LONGEST_PAUSE, _PAUSES / kills)),
            of_import,
            rng.random() < _EARLY,
        )
        for of_import, count in ((True, kills), (False, (kills + 2) // 3))
        for number in range(count)
    ]
    return sorted(moments, key=lambda moment: moment.share)


@dataclass
class Tally:
    """What was done to the imports, and how they ended."""

    starts: int = 0
    #: The shares of the purchases at which an import, or the studio, was killed.
    import_kills: list[float] = field(default_factory=list)
    studio_kills: list[float] = field(default_factory=list)
    #: Exit codes of those that were left to end.
    codes: list[int] = field(default_factory=list)
    #: Creates that reached the studio when the same command was run once more.
    creates_again: int = 0


@contextmanager
def own_settings_removed() -> Iterator[None]:
    """Without the person's settings, whatever is started meanwhile knows neither their service nor their key."""
    removed = {name: value for name, value in os.environ.items() if name.startswith(FOREIGN_VARIABLES)}
    for name in removed:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(removed)


class KilledImports:
    """One file, imported by one process after another, each but the last killed."""

    def __init__(
        self,
        studio: Studio,
        folder: Path,
        variables: Mapping[str, str],
        *,
        catalog: str,
        purchases: int,
        command: Sequence[str],
        report: Callable[[str], None],
    ) -> None:
        """`folder` has the file, as `catalog.csv`, and takes the ledger and the results.

        `purchases`: how many are expected. `variables`: settings of the imports.
        """
        self.tally = Tally()
        self.out = folder / "results"
        self._studio, self._folder, self._purchases, self._report = studio, folder, purchases, report
        #: What the studio was asked for before the import that runs.
        self._work_before = 0
        self._command = [*command, str(folder / "catalog.csv"), catalog, str(self.out)]
        self._environment = {
            **os.environ,
            **variables,
            "PATTERNMILL_STUDIO_URL": studio.base_url,
            "PATTERNMILL_API_KEY": studio.key,
            "PATTERNMILL_HOME": str(folder / "home"),
        }

    def drive(self, moments: Sequence[KillMoment]) -> None:
        """Kill at these moments, then let the same command run until it is done, and once more."""
        running = self._start()
        try:
            for moment in moments:
                if self._reaches(running, moment):
                    running = self._kill(running, moment)
            self._end(running)
            for _ in range(_TRIES):
                if self.tally.codes[-1] in FINISHED_CODES:
                    break
                running = self._start()
                self._end(running)
            before = self._counted(*_CREATES)
            running = self._start()
            self._end(running)
            self.tally.creates_again = self._counted(*_CREATES) - before
        finally:
            running.kill()
            running.communicate()

    def end_of_log(self) -> str:
        """The end of what the imports wrote."""
        return (self._folder / "imports.log").read_text("utf-8", "replace")[-2000:]

    def _start(self) -> subprocess.Popen[bytes]:
        self.tally.starts += 1
        self._work_before = self._counted(*_WORK)
        with (self._folder / "imports.log").open("ab") as log:
            return subprocess.Popen(
                self._command,
                env=self._environment,
                # There is no .env there.
                cwd=self._folder,
                # Its end is the sign that the rehearsal has ended.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the rehearsal, which ends it.
                start_new_session=True,
            )

    def _reaches(self, running: subprocess.Popen[bytes], moment: KillMoment) -> bool:
        """Wait for a moment; False when the import ends before."""
        until = time.monotonic() + _PATIENCE
        while running.poll() is None and time.monotonic() < until:
            works = moment.early or self._counted(*_WORK) > self._work_before
            if works and self._counted(_JOBS) >= moment.share * self._purchases:
                time.sleep(moment.pause)
                return running.poll() is None
            time.sleep(_LOOK_EVERY)
        return False

    def _kill(self, running: subprocess.Popen[bytes], moment: KillMoment) -> subprocess.Popen[bytes]:
        """Kill one of the two with SIGKILL; the import that runs from then on."""
        share = min(1.0, self._counted(_JOBS) / max(1, self._purchases))
        if moment.of_import:
            running.kill()
            running.communicate()
            self.tally.import_kills.append(share)
            self._report(f"Import {self.tally.starts} killed at {share * 100:.0f} % of the purchases.")
            return self._start()
        self._studio.kill()
        self._studio.start()
        self.tally.studio_kills.append(share)
        self._report(f"Studio killed and started again at {share * 100:.0f} % of the purchases.")
        return running

    def _end(self, running: subprocess.Popen[bytes]) -> None:
        try:
            running.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            raise PatternmillError(
                f"An import of the rehearsal did not end in {_PATIENCE / 60:.0f} minutes.",
                code="rehearsal",
                remedy=f"It wrote: {self.end_of_log()}",
            ) from None
        running.communicate()
        self.tally.codes.append(running.returncode)

    def _counted(self, *names: str) -> int:
        return sum(one["calls"] for one in self._studio.faults.report() if one["name"] in names)
