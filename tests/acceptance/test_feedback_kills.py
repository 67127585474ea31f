"""A run that reports its failures is killed at each step of that; the runs after it send no report a second time."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from studio.testing import Studio
from tests.acceptance.evidence import broken_files
from tests.acceptance.harness import HURRY, Ended, Zygote

AT_ONCE = 3
HEADER = "sku,prompt,category,option:size,option:finish\n"
FIRST = HEADER + "H-1,blue herons [refuse],Mug,11oz,matte\n"
#: Another row that fails for the same cause.
LATER = FIRST + "F-1,green ferns [refuse],Mug,11oz,matte\n"
FEEDBACK = "feedback/create"
#: The manifest is in its place; then come the reports. How many commits there were by then depends on the time.
POINTS = ("--points", "points", "--since", "after replace #6")


class ReportingRuns:
    """Imports that report their failures, in a folder of their own, to a studio of their own."""

    def __init__(self, folder: Path, zygote: Zygote, studio: Studio) -> None:
        self.folder, self._zygote, self._studio = folder, zygote, studio
        folder.mkdir()

    def run(self, text: str, *inject: str) -> Ended:
        (self.folder / "spring.csv").write_text(text, encoding="utf-8")
        environment = {
            "PATTERNMILL_STUDIO_URL": self._studio.base_url,
            "PATTERNMILL_API_KEY": self._studio.key,
            "PATTERNMILL_HOME": str(self.folder / "home"),
        }
        arguments = [*HURRY, *inject, "--", "spring.csv", "--out", "out", "--report-failures"]
        return self._zygote.start(self.folder, arguments, environment).wait()

    def points(self) -> list[str]:
        """Those passed by the run that was made to write them down."""
        return [line for line in (self.folder / "points").read_text().splitlines() if "#" in line]

    def reports(self) -> int:
        """As the studio has them."""
        with closing(sqlite3.connect(self._studio.home / "studio.db")) as database:
            ((count,),) = database.execute("SELECT count(*) FROM feedback").fetchall()
        return int(count)


def test_no_kill_makes_a_report_twice(tmp_path: Path, zygote: Zygote) -> None:
    """Before its intent is durable it is made later; from then on it is there once, or was never sent."""
    with Studio() as studio:
        dry = ReportingRuns(tmp_path / "dry", zygote, studio)
        assert dry.run(FIRST, *POINTS).code == 3
        assert dry.reports() == 1
        points = dry.points()
    points = points[points.index("after replace #6") + 1 :]
    sent = points.index(f"before {FEEDBACK} #1")
    # The commits of the intent and of what came of it, with the request between them.
    steps = points[sent - 2 : sent + 4]
    assert [step.partition(" #")[0] for step in steps] == [
        *(
            "before commit",
            "after commit",
            f"before {FEEDBACK}",
            f"after {FEEDBACK}",
            "before commit",
            "after commit",
        )
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda step: reports_after_a_kill(tmp_path, zygote, step), steps))
    assert found == [(0, 1), (0, 0), (0, 0), (1, 1), (1, 1), (1, 1)]


def reports_after_a_kill(folder: Path, zygote: Zygote, point: str) -> tuple[int, int]:
    """How many reports there are after the kill, and after another run with the same cause."""
    with Studio() as studio:
        runs = ReportingRuns(folder / point.replace("/", "-"), zygote, studio)
        killed = runs.run(FIRST, *POINTS, "--at", point, "--do", "kill")
        assert killed.code < 0, killed.output
        assert broken_files(runs.folder / "out") == []
        before = runs.reports()
        later = runs.run(LATER)
        assert later.code == 3, later.output
        assert studio.meter.double_purchases == []
        return before, runs.reports()
