"""Feedback against the real studio: what it keeps of the reports of a run and of a person."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import cli.launcher
from cli import main
from studio.testing import Studio
from tests.acceptance.plain_import import NoConnection

HEADER = "sku,prompt,category,option:size,option:finish"
ROWS = [
    "G-1,green ferns,Mug,11oz,matte",
    "F-1,blue herons [fail],Mug,11oz,matte",
    "F-2,grey herons [fail],Mug,11oz,matte",
    "R-1,red foxes [refuse] for ann@mail.example see https://x.example/y?token=c4nary1 secret=c4nary2,Mug,11oz,matte",
    "S-1,no such thing,Sofa,,",
]


@dataclass
class Room:
    """A folder with a catalog, and a studio."""

    studio: Studio
    folder: Path

    def run(self, *arguments: str) -> int:
        return main.run(arguments)

    def reports(self) -> list[dict[str, Any]]:
        """What the studio has kept."""
        with sqlite3.connect(self.studio.home / "studio.db") as database:
            rows = database.execute("SELECT report FROM feedback ORDER BY seq").fetchall()
        database.close()
        return [json.loads(report) for (report,) in rows]


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def room(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    """The studio is as new; commands run in this process, without Prefect."""
    studio.reset()
    studio.faults.clear()
    studio.control("feedback/set", on=True)
    for name in ("ENVIRONMENT", "API_KEYS", "ENVIRONMENT_URLS", "LEDGER_URL"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    settings = {
        "HOME": str(tmp_path / "home"),
        "STUDIO_URL": studio.base_url,
        "API_KEY": studio.key,
        "ATTEMPTS": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.launcher, "PrefectConnection", NoConnection)
    (tmp_path / "spring.csv").write_text("\n".join([HEADER, *ROWS]) + "\n", encoding="utf-8")
    return Room(studio, tmp_path)


def test_run_reports_what_the_service_failed(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    """One report a cause, after its results; none again by the next run; nothing secret in them."""
    assert room.run("import", "spring.csv", "--report-failures") == 3
    assert "Feedback: 2 reports sent to the service's operators." in capsys.readouterr().out
    failed, refused = room.reports()
    assert failed["response"]["body"]["status"] == "failed"
    assert (failed["response"]["status"], refused["response"]["status"]) == (200, 422)
    assert refused["response"]["body"]["error"]["code"] == "content_refused"
    assert [report["procedure"] for report in (failed, refused)] == ["patterns/create"] * 2
    assert "[fail]" in failed["request"]["body"]["prompt"]
    assert "ann@" not in json.dumps(refused)
    assert json.loads((room.folder / "results/spring/latest/manifest.json").read_text())["options"][
        "report_failures"
    ]
    assert room.run("retry", "--yes", "--report-failures") == 3
    assert "Feedback: No report sent." in capsys.readouterr().out
    assert len(room.reports()) == 2
    assert [*room.studio.meter.double_purchases] == []


def test_studio_removes_nothing_more(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    """What arrives is what was shown, but for the mark where a query was."""
    room.run("import", "spring.csv")
    assert room.reports() == []
    capsys.readouterr()
    for sku in ("F-1", "R-1"):
        assert room.run("feedback", "--sku", sku, "--yes") == 0
        printed = capsys.readouterr().out
        shown = printed[printed.index("{") : printed.rindex("}") + 1].replace("?[removed]", "")
        assert room.reports()[-1] == json.loads(shown)


def test_unavailable_feedback_fails_nothing(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    """The run ends as it would; the report can be made later."""
    room.studio.control("feedback/set", on=False)
    assert room.run("import", "spring.csv", "--report-failures") == 3
    assert "Feedback: No report sent. Feedback is unavailable" in capsys.readouterr().out
    assert room.run("feedback", "--sku", "F-1", "--yes") == 1
    room.studio.control("feedback/set", on=True)
    assert room.run("feedback", "--sku", "F-1", "--yes") == 0
    assert len(room.reports()) == 1


def test_lost_answer_is_not_sent_again(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    """The studio has the report, and the run does not know."""
    room.studio.faults.use(
        {"on": "feedback/create", "effect": {"kind": "close", "when": "after"}, "first": 1}
    )
    assert room.run("import", "spring.csv", "--report-failures") == 3
    assert "may have arrived" in capsys.readouterr().out
    assert room.studio.faults.unfired == []
    assert len(room.reports()) == 1
    assert room.run("retry", "--sku", "F-1", "--yes", "--report-failures") == 3
    assert len(room.reports()) == 1
    assert room.run("explain", "F-1") == 0
    assert "the report may have arrived" in capsys.readouterr().out
