"""Files with columns of their own: read as a person confirmed, by every way in, and never otherwise."""

from __future__ import annotations

import pytest

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.request import RetryRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import Settings, load_settings
from patternmill.states import Outcome, RowStatus
from tests.hostile.in_process import failed

from .test_origin import Desk
from .test_origin import desk as desk
from .workshop import rows

PAIRS = (("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
OWN = rows(*PAIRS)
HEADER = "Art.-Nr.,Prompt text,Produktart,Name"
THEIRS = OWN.replace("sku,prompt,category,option:name", HEADER)
COLUMNS = {"Art.-Nr.": "sku", "Prompt text": "prompt", "Produktart": "category", "Name": "option:name"}
TOML = "[columns]\n" + "".join(f'"{header}" = "{target}"\n' for header, target in COLUMNS.items())


def staging() -> Settings:
    return load_settings(environment="staging")


def remember(columns: dict[str, str] = COLUMNS, encoding: str | None = None) -> None:
    """In the home, where each file of the catalog finds it."""
    lines = "".join(f'"{header}" = "{target}"\n' for header, target in columns.items())
    reading = f'[reading]\nencoding = "{encoding}"\n' if encoding else ""
    staging().home.mkdir(exist_ok=True)
    (staging().home / "spring.mapping.toml").write_text(f"[columns]\n{lines}{reading}", encoding="utf-8")


def request_ids(desk: Desk) -> set[str]:
    with open_ledger(staging()) as ledger:
        return {row[0] for row in ledger.database.rows("SELECT request_id FROM attempts")}


@pytest.mark.parametrize("by_refresh", [False, True])
def test_remembered_columns_are_used(desk: Desk, by_refresh: bool) -> None:
    """By import and refresh; what was read as what is said in the plan and is on record."""
    remember()
    work = (desk.refresh if by_refresh else desk.run)(desk.file(text=THEIRS))
    assert work.ended.outcome is Outcome.COMPLETED
    assert work.checked.notes[0] == (
        "Columns: Art.-Nr. -> sku, Prompt text -> prompt, Produktart -> category, Name -> option:name."
    )
    header = (work.published.out / "results.csv").read_text("utf-8-sig").splitlines()[0]
    assert header.startswith(HEADER)


def test_column_with_the_name_of_a_result_is_a_note(desk: Desk) -> None:
    """In the results it is called one, so that they come back."""
    remember(columns={**COLUMNS, "Status": "note"})
    desk.service.on_follow["ferns"] = [failed(), failed()]
    text = "\n".join([f"{HEADER},Status", *(f"{line},sold out" for line in OWN.splitlines()[1:])])
    desk.run(desk.file(text=text))
    failures = (desk.folder / "results/spring/latest/failures.csv").read_text("utf-8-sig")
    assert failures.startswith(f"{HEADER},note:Status,status,product_id,")
    assert "sold out,failed" in failures
    work = desk.run(desk.saved("failures.csv", "x.csv", lambda rows: rows))
    assert work.ended.rows == {RowStatus.SUCCEEDED: 1}
    assert desk.run(desk.saved("results.csv", "y.csv", lambda rows: rows)).ended.outcome is Outcome.COMPLETED


def test_retry_reads_the_rows_as_their_run_did(desk: Desk) -> None:
    """Whatever is confirmed since."""
    remember()
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(text=THEIRS))
    remember(columns={**COLUMNS, "Name": "note"})
    work = desk._through(Run(run_spec(RetryRequest(catalog="spring"))))
    assert work.ended.outcome is Outcome.COMPLETED
    assert work.ended.record.options["mapping"]["columns"]["Name"] == "option:name"


def test_words_are_bought_as_what_they_mean(desk: Desk) -> None:
    """The same rows in the offer's words are the same requests; failures come back by the words of their run."""
    desk.file("spring.mapping.toml", f'{TOML}[values]\n"Tasche" = "Tote"\n')
    desk.service.on_follow["ferns"] = [failed(), failed()]
    text = THEIRS.replace(",Tote,", ",Tasche,")
    assert text != THEIRS
    first = desk.run(desk.file(text=text))
    assert first.ended.rows[RowStatus.FAILED] == 1
    bought, before = list(desk.service.bought), request_ids(desk)
    (desk.folder / "spring.mapping.toml").unlink()
    assert desk.run(desk.file(text=OWN)).ended.rows[RowStatus.FAILED] == 1
    assert (desk.service.bought, request_ids(desk)) == (bought, before)
    work = desk.run(desk.saved("failures.csv", "x.csv", lambda rows: rows))
    assert work.ended.rows == {RowStatus.SUCCEEDED: 1}


def test_remembered_encoding_garbles_no_file_that_shows_its_own(desk: Desk) -> None:
    """One day the sheet is saved as UTF-8: what was confirmed for the old bytes is not read into the new ones."""
    remember(encoding="cp1252")
    source = desk.file()
    source.write_bytes(THEIRS.replace("herons", "Käuze").encode())
    desk.run(source)
    assert "Käuze" in desk.service.bought


def test_changed_columns_are_refused_before_anything_is_bought(desk: Desk) -> None:
    """By what changed, and with the command that confirms the columns as they are now."""
    with pytest.raises(InputRefused, match=r"`patternmill check .*spring.csv"):
        desk.run(desk.file(text=THEIRS))
    remember()
    with pytest.raises(InputRefused, match="no longer has the column `prompt text`") as caught:
        desk.run(desk.file(text=THEIRS.replace("Prompt text", "Text")))
    assert caught.value.code == "mapping_changed" and "`patternmill check" in caught.value.remedy
    assert desk.service.bought == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns\n", "no TOML"),
        ('[columns]\n"Name" = 3\n', "`Name` under [columns] cannot be `3`"),
        ('[columns]\n"Name" = "colour"\n', "`colour`, for the column `Name`, is no column of a catalog"),
        ('[columns]\n"Status" = "prompt"\n', "the results write a column `Status`"),
        ('[reading]\nheader = "3"\n', "`header` under [reading] cannot be `3`"),
        ('[reading]\nsheet = "A"\n', "`sheet` under [reading] cannot be `A`"),
        ('[colums]\n"A" = "sku"\n', "`colums`, which means nothing there"),
    ],
)
def test_faults_of_a_mapping_file_are_named(desk: Desk, text: str, message: str) -> None:
    named = desk.file("spring.mapping.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        desk.run(desk.file(text=THEIRS), mapping=named)
    assert message in caught.value.message
    assert "spring.mapping.toml" in caught.value.message
