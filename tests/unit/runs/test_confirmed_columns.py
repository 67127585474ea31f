"""Files with columns of their own: read as a person confirmed, by every way in, and never otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from patternmill.catalog.column_mapping import checked_columns
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.input_mapping import remember_mapping, remembered_mapping
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest, RetryRequest
from patternmill.runs.retry import select_rows
from patternmill.runs.spec import import_spec, retry_spec
from patternmill.settings import Settings, load_settings
from patternmill.states import Outcome, RowStatus

from .fake_studio import failed
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


def remember(catalog: str = "spring", columns: dict[str, str] = COLUMNS, encoding: str | None = None) -> None:
    mapping = checked_columns(columns, "a test")
    remember_mapping(staging(), catalog, mapping, SheetChoices(encoding=encoding), "ada@desk")


def written(desk: Desk, text: str, name: str = "spring.mapping.toml") -> Path:
    return desk.file(name, text)


def refused(desk: Desk, source: Path, **asked: str) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        desk.run(source, **asked)
    assert desk.service.bought == []
    return caught.value


def request_ids(desk: Desk) -> set[str]:
    with open_ledger(staging()) as ledger:
        return {row[0] for row in ledger.database.rows("SELECT request_id FROM attempts")}


@pytest.mark.parametrize("by_refresh", [False, True])
def test_nothing_is_bought_of_columns_that_nobody_confirmed(desk: Desk, by_refresh: bool) -> None:
    """The refusal names the command that confirms them; the service is not asked for anything."""
    source = desk.file(text=THEIRS)
    with pytest.raises(InputRefused, match=r"`patternmill map .*spring.csv( --catalog spring)?`") as caught:
        (desk.refresh if by_refresh else desk.run)(source)
    assert caught.value.code == "no_known_columns"
    assert desk.service.bought == []


@pytest.mark.parametrize("by_refresh", [False, True])
def test_remembered_columns_are_used(desk: Desk, by_refresh: bool) -> None:
    """By import and refresh; what was read as what is said in the plan and is on record."""
    remember()
    work = (desk.refresh if by_refresh else desk.run)(desk.file(text=THEIRS))
    assert work.ended.outcome is Outcome.COMPLETED
    assert work.checked.notes[0] == (
        "Columns: Art.-Nr. -> sku, Prompt text -> prompt, Produktart -> category, Name -> option:name."
    )
    header = work.published.path("results.csv").read_text("utf-8-sig").splitlines()[0]
    assert header.startswith(HEADER)


def test_mapping_changes_no_request(desk: Desk) -> None:
    """The same rows in the contract's names are the same items: nothing is bought again."""
    remember()
    desk.run(desk.file(text=THEIRS))
    before, bought = request_ids(desk), list(desk.service.bought)
    work = desk.run(desk.file(text=OWN))
    assert (work.ended.outcome, desk.service.bought) == (Outcome.COMPLETED, bought)
    assert request_ids(desk) == before


def test_another_catalogs_columns_are_not_used(desk: Desk) -> None:
    remember("summer")
    assert refused(desk, desk.file(text=THEIRS)).code == "no_known_columns"


def test_failures_come_back_without_a_question(desk: Desk) -> None:
    """By the mapping of their run, also where nothing is remembered any more."""
    remember()
    desk.service.on_follow["ferns"] = [failed(), failed()]
    first = desk.run(desk.file(text=THEIRS))
    assert first.ended.rows[RowStatus.FAILED] == 1
    with open_ledger(staging()) as ledger, ledger.transaction():
        assert ledger.forget_mapping("spring")
    work = desk.run(desk.saved("failures.csv", "x.csv", lambda rows: rows))
    assert work.ended.rows == {RowStatus.SUCCEEDED: 1}


def test_column_with_the_name_of_a_result_is_a_note(desk: Desk) -> None:
    """In the results it is called one, so that they come back."""
    remember(columns={**COLUMNS, "Status": "note"})
    desk.service.on_follow["ferns"] = [failed(), failed()]
    text = "\n".join([f"{HEADER},Status", *(f"{line},sold out" for line in OWN.splitlines()[1:])])
    desk.run(desk.file(text=text))
    written = (desk.folder / "results/spring/latest/failures.csv").read_text("utf-8-sig")
    assert written.startswith(f"{HEADER},note:Status,status,product_id,")
    assert "sold out,failed" in written
    work = desk.run(desk.saved("failures.csv", "x.csv", lambda rows: rows))
    assert work.ended.rows == {RowStatus.SUCCEEDED: 1}
    assert desk.run(desk.saved("results.csv", "y.csv", lambda rows: rows)).ended.outcome is Outcome.COMPLETED


def test_retry_reads_the_rows_as_their_run_did(desk: Desk) -> None:
    """Whatever is confirmed since."""
    remember()
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(text=THEIRS))
    remember(columns={**COLUMNS, "Name": "note"})
    request = RetryRequest(catalog="spring")
    with open_ledger(staging()) as ledger:
        selection = select_rows(ledger, request)
    work = desk._through(Pipeline(retry_spec(request, selection, staging())))
    assert work.ended.outcome is Outcome.COMPLETED
    assert work.ended.record.options["mapping"]["name"] == "option:name"


def test_mapping_file_next_to_the_source_goes_first(desk: Desk) -> None:
    """Before what is remembered."""
    remember(columns={**COLUMNS, "Prompt text": "note", "Name": "prompt"})
    written(desk, TOML)
    assert desk.run(desk.file(text=THEIRS)).ended.outcome is Outcome.COMPLETED
    assert "herons" in desk.service.bought


def test_named_mapping_file_goes_before_all(desk: Desk) -> None:
    written(desk, TOML.replace('"prompt"', '"note"').replace("option:name", "prompt"))
    named = written(desk, TOML, "agreed.toml")
    desk.run(desk.file(text=THEIRS), mapping=named)
    assert "herons" in desk.service.bought


def test_mapping_file_may_say_how_the_file_is_read(desk: Desk) -> None:
    named = written(desk, f'{TOML}[reading]\nencoding = "cp1252"\nworksheet = "Artikel"\n')
    spec = import_spec(ImportRequest(file=desk.file(text=THEIRS), mapping=named, worksheet="Other"))
    assert spec.choices.completed(spec.usual_choices) == SheetChoices(encoding="cp1252", worksheet="Other")


def test_remembered_reading_is_used(desk: Desk) -> None:
    remember(encoding="cp1252")
    source = desk.file()
    source.write_bytes(THEIRS.replace("herons", "Käuze").encode("cp1252"))
    desk.run(source)
    assert "Käuze" in desk.service.bought
    assert remembered_mapping(staging(), "summer").choices == NO_CHOICES


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_remembered_encoding_garbles_no_file_that_shows_its_own(desk: Desk, encoding: str) -> None:
    """One day the sheet is saved as UTF-8: what was confirmed for the old bytes is not read into the new ones."""
    remember(encoding="cp1252")
    source = desk.file()
    source.write_bytes(THEIRS.replace("herons", "Käuze").encode(encoding))
    desk.run(source)
    assert "Käuze" in desk.service.bought


@pytest.mark.parametrize(
    ("header", "change"),
    [
        ("Art.-Nr.,Text,Produktart,Name", "`prompt text`, which was `prompt`, is gone"),
        ("Art.-Nr.,Prompt text,Produktart,Titel", "`name`, which was `option:name`, is gone"),
        ("Art.-Nr.,Prompt text,Produktart,Name,Farbe", "`Farbe` is new and looks like an option"),
    ],
)
def test_changed_columns_are_refused_before_anything_is_bought(desk: Desk, header: str, change: str) -> None:
    """By what changed, and with the command that confirms the columns as they are now."""
    remember()
    extra = ",red" if header.endswith("Farbe") else ""
    text = "\n".join([header, *(line + extra for line in OWN.splitlines()[1:])])
    error = refused(desk, desk.file(text=text))
    assert error.code == "mapping_changed"
    assert change in error.message
    assert "`patternmill map" in error.remedy


def test_new_column_that_is_no_option_is_carried(desk: Desk) -> None:
    remember()
    text = "\n".join([f"{HEADER},Bemerkung", *(f"{line},neu" for line in OWN.splitlines()[1:])])
    assert desk.run(desk.file(text=text)).ended.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns\n", "no TOML"),
        ('[columns]\n"Name" = 3\n', "both in quotes"),
        ('[columns]\n"Name" = "colour"\n', "`colour`, for the column `Name`, is no column of a catalog"),
        ('[columns]\n"A" = "sku"\n"B" = "sku"\n', "`A` and `B` are both to be `sku`"),
        ('[columns]\n"Status" = "prompt"\n', "the results write a column `Status`"),
        ('[reading]\nheader_row = "3"\n', "`header_row` under [reading] has to be a number"),
        ('[reading]\nsheet = "A"\n', "`sheet` under [reading] is not known"),
        ('[colums]\n"A" = "sku"\n', "`colums`, which means nothing there"),
    ],
)
def test_faults_of_a_mapping_file_are_named(desk: Desk, text: str, message: str) -> None:
    named = written(desk, text)
    with pytest.raises(ConfigurationError) as caught:
        desk.run(desk.file(text=THEIRS), mapping=named)
    assert message in caught.value.message
    assert "spring.mapping.toml" in caught.value.message


def test_missing_mapping_file_is_refused(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.toml cannot be read: No such file"):
        desk.run(desk.file(text=OWN), mapping=tmp_path / "nowhere.toml")


def test_confirmed_mapping_is_kept_until_it_is_forgotten(desk: Desk) -> None:
    """The last one counts; who confirmed it and when is on record."""
    remember(columns={"A": "sku"})
    remember(encoding="cp1252")
    with open_ledger(staging()) as ledger:
        known = ledger.confirmed_mapping("spring")
        assert known is not None
        assert (known.confirmed_by, known.reading) == ("ada@desk", {"encoding": "cp1252"})
        assert known.columns["prompt text"] == "prompt"
        assert known.confirmed_at == pytest.approx(ledger.now(), abs=60)
        with ledger.transaction():
            assert ledger.forget_mapping("spring")
            assert not ledger.forget_mapping("spring")
        assert ledger.confirmed_mapping("spring") is None
