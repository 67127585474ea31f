"""Feedback against the real studio: what it keeps of the reports of a person."""

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
    for name in ("ENVIRONMENT", "PROFILES", "LEDGER_URL"):
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


def test_studio_removes_nothing_more(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    """What arrives is what was shown, but for the mark where a query was."""
    assert room.run("import", "spring.csv") == 3
    assert room.reports() == []
    capsys.readouterr()
    for sku in ("F-1", "R-1"):
        assert room.run("explain", sku, "--report", "--yes") == 0
        printed = capsys.readouterr().out
        shown = printed[printed.index("{") : printed.rindex("}") + 1].replace("?[removed]", "")
        assert room.reports()[-1] == json.loads(shown)
    failed, refused = room.reports()
    assert failed["response"]["body"]["status"] == "failed"
    assert (failed["response"]["status"], refused["response"]["status"]) == (200, 422)
    assert refused["response"]["body"]["error"]["code"] == "content_refused"
    assert [report["procedure"] for report in (failed, refused)] == ["patterns/create"] * 2
    assert "[fail]" in failed["request"]["body"]["prompt"]
    assert "ann@" not in json.dumps(refused)
