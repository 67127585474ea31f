"""Results beside a run that its ledger does not know: nothing that they name is bought again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.lease import this_process
from patternmill.runs.run import Run
from patternmill.settings import load_settings
from patternmill.states import Outcome, RowStatus
from tests.hostile.in_process import Create, failed
from tests.integrity import problems

from .test_origin import FOUR, Desk
from .test_origin import desk as desk

REFINED = "sku,prompt,category,option:name,refine:recolor\n" + "".join(
    f"R-{number},prompt {number},Tote,r-{number},#abc\n" for number in range(4)
)


def ledger_file() -> Path:
    return load_settings().home / "ledger.sqlite3"


def backed_up(copy: Path) -> None:
    """Also while a run goes on, as the manual says; by the time that it is put back, that run's process has ended."""
    with closing(sqlite3.connect(ledger_file())) as ledger:
        ledger.execute("VACUUM INTO ?", [str(copy)])
    with closing(sqlite3.connect(copy)) as ledger, ledger:
        ledger.execute("UPDATE leases SET holder = ?", [json.dumps({**this_process(), "born": "0"})])


def put_back(copy: Path | None) -> None:
    """A copy in place of the ledger, or nothing."""
    for name in ("", "-wal", "-shm"):
        ledger_file().with_name(f"{ledger_file().name}{name}").unlink(missing_ok=True)
    if copy is not None:
        shutil.copy(copy, ledger_file())


def run_backed_up(desk: Desk, file: Path, after: int, **asked: Any) -> Path:
    """A run that is backed up as the service receives its request of this number; returns the copy."""
    copy, left = desk.folder / "copy.sqlite3", iter(range(after))

    def received(create: Create) -> None:
        if next(left, None) is None and not copy.exists():
            backed_up(copy)

    desk.service.at_create = received
    desk.run(file, **asked)
    desk.service.at_create = lambda create: None
    assert copy.exists()
    return copy


def products(work: Run) -> set[tuple[str, str | None]]:
    with open_ledger(work.spec.settings) as ledger:
        assert list(problems(ledger)) == []
        return {(row.sku, row.product_id) for row in ledger.catalogs.rows("staging", "spring")}


@pytest.mark.parametrize("text", [FOUR, REFINED], ids=["plain", "refined"])
@pytest.mark.parametrize("after", [None, 5])
def test_what_results_name_is_taken_over(desk: Desk, text: str, after: int | None) -> None:
    """Of no ledger, and of a copy of the middle of the run: refused first, then nothing is bought again."""
    file = desk.file(text=text)
    copy = run_backed_up(desk, file, after or 0)
    work = desk.run(file)
    before, had = list(desk.service.creates), products(work)
    put_back(copy if after is not None else None)
    with pytest.raises(ConfigurationError, match=r"--confirm ledger.*takes over.*buys 0 patterns") as caught:
        desk.run(file)
    assert caught.value.code == "other_ledger"
    again = desk.run(file, confirm="ledger")
    assert again.ended.outcome is Outcome.COMPLETED
    assert desk.service.creates == before
    assert products(again) == had
    # Nothing has to be confirmed from here on.
    assert desk.run(file).ended.outcome is Outcome.COMPLETED


def test_other_files_of_the_catalog_are_taken_over_when_they_are_imported(desk: Desk) -> None:
    desk.run(desk.file())
    more = desk.file("more.csv", FOUR.replace("-", "-9").replace("herons", "hawks"))
    desk.run(more, catalog="spring")
    put_back(None)
    before = list(desk.service.creates)
    desk.run(more, catalog="spring", confirm="ledger")
    with pytest.raises(ConfigurationError, match="takes over 1 pattern and 4 products"):
        desk.run(desk.file())
    desk.run(desk.file(), confirm="ledger")
    assert desk.service.creates == before


def test_what_would_be_bought_again_is_said_with_its_cost(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later attempt that succeeded is taken over; what the file has anew is bought."""
    monkeypatch.setenv("PATTERNMILL_PATTERN_PRICE", "50")
    monkeypatch.setenv("PATTERNMILL_PRODUCT_PRICE", "200")
    desk.service.on_follow["ferns"] = [failed()]
    desk.run(desk.file())
    put_back(None)
    file = desk.file(text=FOUR + "X-1,foxes,Tote,X-1\n")
    before = list(desk.service.bought)
    with pytest.raises(ConfigurationError, match=r"buys 1 pattern and 1 product for at least 250"):
        desk.run(file)
    work = desk.run(file, confirm="ledger")
    assert work.ended.rows == {RowStatus.SUCCEEDED: 5}
    assert desk.service.bought[len(before) :] == ["foxes", "X-1"]
    products(work)


def test_results_of_another_service_name_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.run(desk.file())
    put_back(None)
    monkeypatch.setenv("PATTERNMILL_PROFILES", '{"staging": {"url": "http://127.0.0.1:11/v1", "key": "key"}}')
    with pytest.raises(ConfigurationError, match="takes over 0 patterns"):
        desk.run(desk.file())
    before = len(desk.service.creates)
    desk.run(desk.file(), confirm="ledger")
    assert len(desk.service.creates) == 2 * before
