"""Retention: what of old runs goes and what stays, in the ledger and on disk; and that nothing is bought again."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cli.main import run as command
from patternmill.errors import Overlap
from patternmill.identifiers import RunId
from patternmill.ledger.events import Decision, record_decisions
from patternmill.ledger.ledger import open_ledger
from patternmill.planning.items import Item, Scope, pattern_content
from patternmill.service.outcomes import Refusal
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Decided, RowStatus, Stage
from tests.hostile.in_process import failed, made

from .workshop import Cells, Workshop

AMBER, BLUE, CORAL, DUN, ECRU, FAWN, GOLD = (
    f"a canary of {colour}" for colour in ("amber", "blue", "coral", "dun", "ecru", "fawn", "gold")
)
REASON, NOTE = "no loom takes fawn", "a person's note on blue"
TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"

#: Whether the ledger still has each text once the refreshes before the last one are forgotten, and why.
STAYS = {
    AMBER: True,  # the catalog still has its row
    DUN: True,  # its row is gone, and another one shares the pattern
    ECRU: True,  # its request is held, and may be sent again
    GOLD: True,  # the latest run has it
    f"note on {AMBER}": True,  # in the sheet of the latest run
    BLUE: False,  # its row has another prompt
    CORAL: False,  # its row was retired
    FAWN: False,  # it failed, and is gone
    f"note on {BLUE}": False,  # in the sheet of an earlier run
    REASON: False,
    NOTE: False,
}


@pytest.fixture
def past(shop: Workshop) -> Workshop:
    """Make four refreshes: another take of a pattern in the second, other sheets in the third and in the last."""
    shop.service.on_create[ECRU] = [Refusal(AttemptState.HELD, "job_of_another_item", "held")]
    shop.service.on_follow[FAWN] = [failed(REASON)]
    shop.refresh(FIRST)
    decide(shop, Decided.AGAIN)
    shop.refresh()
    decide(shop, Decided.PICK, take=2)
    shop.refresh(sheet(A=AMBER, B=GOLD, H=DUN))
    shop.refresh()
    assert shop.has() == {"A": AMBER, "B": GOLD, "H": DUN}
    return shop


def sheet(**prompts: str) -> dict[str, Cells]:
    return {sku: {"prompt": prompt, "note": f"note on {prompt}"} for sku, prompt in prompts.items()}


FIRST = sheet(A=AMBER, B=BLUE, C=CORAL, D=DUN, E=ECRU, F=FAWN)


def decide(shop: Workshop, verdict: Decided, take: int = 1) -> None:
    """Decide about a take of the pattern in blue, with a note."""
    item = Item(Stage.PATTERN, Scope("staging", "spring"), pattern_content(BLUE, take=take)).key
    decision = Decision(verdict.value, item, "", verdict, NOTE, "A. Weaver", datetime.now(UTC))
    with open_ledger(load_settings()) as ledger, ledger.transaction():
        record_decisions(ledger, RunId(shop.last), [decision])


def told(home: Path) -> dict[str, bool]:
    """Return whether the ledger has each text anywhere, in whichever of its files and tables."""
    with open_ledger(load_settings()) as ledger:
        packed = [zlib.decompress(raw) for (raw,) in ledger.database.rows("SELECT raw FROM documents")]
    stored = [path.read_bytes() for path in home.glob("ledger*")]
    return {text: any(text.encode() in content for content in (*packed, *stored)) for text in STAYS}


def results(shop: Workshop, number: int) -> Path:
    return shop.folder / "results" / "spring" / shop.runs[number]


def forget(*arguments: str) -> int:
    return command(["results", "--forget", *arguments, "--yes"])


def test_what_goes_and_what_stays(past: Workshop, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To forget twice is the same as once."""
    assert all(told(home).values())
    copy = home / "ledger.sqlite3.schema-001-20270101-000000-abcd"
    shutil.copy(home / "ledger.sqlite3", copy)
    for sentence in ("Forgotten.", "Nothing that fits is left"):
        assert forget("--before", TOMORROW) == 0
        assert sentence in capsys.readouterr().out
        assert told(home) == STAYS
        assert [results(past, number).exists() for number in range(4)] == [False, False, False, True]
    assert not copy.exists()


def test_nothing_is_bought_again(past: Workshop) -> None:
    """Rows that come back have their earlier products, also on a further take; a failed one stays so."""
    forget("--before", TOMORROW)
    bought = list(past.service.bought)
    past.refresh(FIRST)
    assert past.service.bought == bought
    assert past.has() == {"A": AMBER, "B": BLUE, "C": CORAL, "D": DUN}
    assert past.takes()["B"] == 2
    assert (past.rows["E"], past.rows["F"]) == (RowStatus.HELD, RowStatus.FAILED)
    # A retry asks about the failed job first, which was made after all: its product alone is bought.
    job_id = next(job for job, (stage, name) in past.service.names.items() if name == FAWN)
    past.service.on_ask[FAWN] = [made(Stage.PATTERN, past.service.result_of(FAWN))]
    past.retry()
    assert past.service.asked == [job_id] and past.rows["F"] is RowStatus.SUCCEEDED
    assert past.service.bought == [*bought, "f"]
    forget("--before", TOMORROW)
    # The service makes the same of the same prompt in another catalog, which contradicts nothing.
    past.service.on_follow[GOLD] = [made(Stage.PATTERN, past.service.result_of(GOLD))]
    past.load(past.write(sheet(Z=GOLD), "other.csv"), catalog="other")
    assert past.rows["Z"] is RowStatus.SUCCEEDED


def test_counts_and_money_stay(past: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Status and the history of a row; what needs the words of a forgotten run says that they are gone."""

    def shown(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert command(list(arguments)) == code
        output = capsys.readouterr()
        return output.out + output.err

    def status() -> str:
        return re.sub(r"(took|oldest for) [^;\n]+", "", shown("status", "--all"))

    before = status()
    forget("--before", TOMORROW)
    assert status() == before
    history = shown("explain", "C")
    assert "what it is made of was forgotten" in history and CORAL not in history
    assert "succeeded" in history
    for verb in ("results", "retry"):
        assert "were forgotten on" in shown(verb, past.runs[0], code=2)
    assert "nothing to report" in shown("explain", "F", "--report", code=2)
    with open_ledger(load_settings()) as ledger:
        pattern = Item(Stage.PATTERN, Scope("staging", "spring"), pattern_content(FAWN)).key
        (attempt,) = ledger.purchases.attempts_of(pattern)
    assert attempt.state is AttemptState.FAILED and attempt.job_id is not None
    lead_back = ("settle", attempt.request_id, "--job", attempt.job_id, "--reason", "made after all")
    assert "forgotten" in shown(*lead_back, code=2)


def test_only_unchanged_files_of_the_manifest_go(past: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """Not what was changed, is a link, or lies elsewhere, nor what the manifest does not name."""
    changed, linked, strange = (results(past, number) for number in range(3))
    (changed / "results.csv").write_text("mine now")
    (changed / "mine.txt").write_text("mine")
    victim = past.folder / "victim.txt"
    victim.write_bytes((linked / "failures.csv").read_bytes())
    (linked / "failures.csv").unlink()
    (linked / "failures.csv").symlink_to(victim)
    manifest = json.loads((strange / "manifest.json").read_text())
    manifest["files"]["../../../victim.txt"] = hashlib.sha256(victim.read_bytes()).hexdigest()
    (strange / "manifest.json").write_text(json.dumps(manifest))
    assert forget("--before", TOMORROW) == 3
    output = capsys.readouterr().err
    assert sorted(path.name for path in changed.iterdir()) == ["manifest.json", "mine.txt", "results.csv"]
    assert sorted(path.name for path in linked.iterdir()) == ["failures.csv", "manifest.json"]
    assert sorted(path.name for path in strange.iterdir()) == ["manifest.json"]
    assert victim.exists() and results(past, 3).exists()
    for words in (
        "results.csv was changed",
        "failures.csv is a link",
        "victim.txt is no file of this folder",
    ):
        assert words in output


def test_nothing_goes_while_a_run_drives_the_catalog(
    past: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the latest run, a run and a day at once, or without a person's word."""
    held = Overlap("driven", remedy="")

    async def driven(*_: object, **__: object) -> None:
        raise held

    latest, first = past.runs[-1], past.runs[0]
    for arguments in (
        ["--forget", latest, "--yes"],
        ["--forget", first, "--before", TOMORROW, "--yes"],
        ["--forget", first],
    ):
        assert command(["results", *arguments]) == 2
    with monkeypatch.context() as patch:
        patch.setattr("patternmill.runs.lease.acquire_lease", driven)
        assert forget("--before", TOMORROW) == 4
    assert all(told(home).values()) and results(past, 0).exists()


def test_run_that_was_corrected_stays(shop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """The catalog's sheet has rows of both: the source, and a correction of one of them."""
    shop.refresh(sheet(A=AMBER) | {"B": {"prompt": "", "note": "x"}})
    shop.correct("failures.csv", {"B": {"prompt": BLUE}})
    assert forget(shop.runs[0]) == 2
    assert "its sheet has rows of it" in capsys.readouterr().err
    assert forget("--before", TOMORROW) == 0
    assert "Nothing that fits" in capsys.readouterr().out
