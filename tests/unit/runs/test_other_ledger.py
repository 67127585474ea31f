"""Results beside a run that its ledger does not know: nothing that they name is bought again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.runs.lease import this_process
from patternmill.settings import load_settings
from patternmill.states import Outcome, RowStatus
from tests.hostile.in_process import Create, failed
from tests.integrity import problems

from .test_origin import FOUR
from .workshop import Workshop

REFINED = "sku,prompt,category,option:name,refine:recolor\n" + "".join(
    f"R-{number},prompt {number},Tote,r-{number},#abc\n" for number in range(4)
)


def ledger_file() -> Path:
    return load_settings().home / "ledger.sqlite3"


def backed_up(copy: Path) -> None:
    """Back up the ledger as the manual says, even during a run, whose process has ended before the copy is put back."""
    with closing(sqlite3.connect(ledger_file())) as ledger:
        ledger.execute("VACUUM INTO ?", [str(copy)])
    with closing(sqlite3.connect(copy)) as ledger, ledger:
        ledger.execute("UPDATE leases SET holder = ?", [json.dumps({**this_process(), "born": "0"})])


def put_back(copy: Path | None = None) -> None:
    """Put a copy in place of the ledger, or nothing."""
    for name in ("", "-wal", "-shm"):
        ledger_file().with_name(f"{ledger_file().name}{name}").unlink(missing_ok=True)
    if copy is not None:
        shutil.copy(copy, ledger_file())


def products(shop: Workshop) -> dict[str, tuple[str, str]]:
    with shop.ledger() as ledger:
        assert list(problems(ledger)) == []
    return shop.products()


@pytest.mark.parametrize("text", [FOUR, REFINED], ids=["plain", "refined"])
@pytest.mark.parametrize("after", [None, 5])
def test_what_results_name_is_taken_over(shop: Workshop, text: str, after: int | None) -> None:
    """Of no ledger, and of a copy of the middle of the run: refused first, then nothing is bought again."""
    file, copy, left = shop.file(text), shop.folder / "copy.sqlite3", iter(range(after or 0))

    def received(create: Create) -> None:
        if next(left, None) is None and not copy.exists():
            backed_up(copy)

    shop.service.at_create = received
    shop.load(file)
    shop.service.at_create = lambda create: None
    before, had = list(shop.service.creates), products(shop)
    put_back(copy if after is not None else None)
    with pytest.raises(ConfigurationError, match=r"--confirm ledger.*takes over.*buys 0 patterns") as caught:
        shop.load(file)
    assert caught.value.code == "other_ledger"
    shop.load(file, confirm="ledger")
    assert shop.work.ended.outcome is Outcome.COMPLETED
    assert (shop.service.creates, products(shop)) == (before, had)
    # Nothing has to be confirmed from here on.
    shop.load(file)


def test_other_files_of_the_catalog_are_taken_over_when_they_are_imported(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At their own service alone: the results of another one name nothing."""
    shop.load(shop.file(FOUR))
    more = shop.file(FOUR.replace("-", "-9").replace("herons", "hawks"), "more.csv")
    shop.load(more, catalog="spring")
    put_back()
    before = list(shop.service.creates)
    shop.load(more, catalog="spring", confirm="ledger")
    with pytest.raises(ConfigurationError, match="takes over 1 pattern and 4 products"):
        shop.load(shop.file(FOUR))
    shop.load(shop.file(FOUR), confirm="ledger")
    assert shop.service.creates == before
    put_back()
    monkeypatch.setenv("PATTERNMILL_PROFILES", '{"staging": {"url": "http://127.0.0.1:11/v1", "key": "key"}}')
    with pytest.raises(ConfigurationError, match="takes over 0 patterns"):
        shop.load(more, catalog="spring")
    shop.load(more, catalog="spring", confirm="ledger")
    assert len(shop.service.creates) > len(before)


def test_what_would_be_bought_again_is_said_with_its_cost(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later attempt that succeeded is taken over; what the file has anew is bought."""
    for name, value in {"PATTERN_PRICE": "50", "PRODUCT_PRICE": "200", "ATTEMPTS": "2"}.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)
    shop.service.on_follow["ferns"] = [failed()]
    shop.load(shop.file(FOUR))
    put_back()
    file = shop.file(FOUR + "X-1,foxes,Tote,X-1\n")
    before = list(shop.service.bought)
    with pytest.raises(ConfigurationError, match=r"buys 1 pattern and 1 product for at least 250"):
        shop.load(file)
    shop.load(file, confirm="ledger")
    assert shop.work.ended.rows == {RowStatus.SUCCEEDED: 5}
    assert shop.service.bought[len(before) :] == ["foxes", "X-1"]
    products(shop)
