"""Sheets as people have them, and where they come from: columns confirmed once, addresses without their secrets."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from cli import main
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.planning.offer import Category, Offer, Option
from patternmill.runs.input import check_command, read_input
from patternmill.runs.request import ImportRequest, RefreshRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import run_spec
from patternmill.settings import load_settings
from patternmill.states import Outcome, RowStatus
from tasks.run_steps import spec_of_flow
from tests.hostile.in_process import failed
from tests.unit.service.sites import Start, answer
from tests.unit.service.sites import start as start

from .workshop import Workshop, rows

OWN = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
HEADER = "Art.-Nr.,Prompt text,Produktart,Name"
THEIRS = OWN.replace("sku,prompt,category,option:name", HEADER)
COLUMNS = {"Art.-Nr.": "sku", "Prompt text": "prompt", "Produktart": "category", "Name": "option:name"}


def remember(columns: dict[str, str] = COLUMNS, more: str = "") -> None:
    """Confirm columns in the home, where each file of the catalog finds them."""
    home = load_settings(environment="staging").home
    home.mkdir(exist_ok=True)
    lines = "".join(f'"{header}" = "{target}"\n' for header, target in columns.items())
    (home / "spring.mapping.toml").write_text(f"[columns]\n{lines}{more}", encoding="utf-8")


@pytest.mark.parametrize("by_refresh", [False, True])
def test_remembered_columns_are_used(shop: Workshop, by_refresh: bool) -> None:
    """By import and refresh; what was read as what is said in the plan. Without them, or changed, all is refused."""
    file = shop.file(THEIRS)
    with pytest.raises(InputRefused, match=r"`patternmill check .*spring.csv"):
        shop.load(file)
    remember()
    shop.refresh() if by_refresh else shop.load(file)
    assert shop.work.ended.outcome is Outcome.COMPLETED
    columns = "Art.-Nr. -> sku, Prompt text -> prompt, Produktart -> category, Name -> option:name"
    assert shop.notes[0] == f"Columns: {columns}."
    header = (shop.work.published.out / "results.csv").read_text("utf-8-sig").splitlines()[0]
    assert header.startswith(HEADER)
    bought = list(shop.service.bought)
    with pytest.raises(InputRefused, match="no longer has the column `prompt text`") as caught:
        shop.load(shop.file(THEIRS.replace("Prompt text", "Text")))
    assert caught.value.code == "mapping_changed" and "`patternmill check" in caught.value.remedy
    shop.load(shop.file(OWN))
    assert shop.service.bought == bought


def test_column_with_the_name_of_a_result_is_a_note(shop: Workshop) -> None:
    """In the results it is called one, so that they come back; a retry reads the rows as their run did."""
    remember({**COLUMNS, "Status": "note"})
    shop.service.on_follow["ferns"] = [failed()] * 2
    shop.load(shop.file("\n".join([f"{HEADER},Status", *(f"{line},sold" for line in OWN.splitlines()[1:])])))
    failures = (shop.folder / "results/spring/latest/failures.csv").read_text("utf-8-sig")
    assert failures.startswith(f"{HEADER},note:Status,status,product_id,")
    assert "sold,failed" in failures
    remember({**COLUMNS, "Name": "note", "Status": "note"})
    shop.retry()
    assert shop.work.record.options["mapping"]["columns"]["Name"] == "option:name"
    assert shop.rows["F-1"] is RowStatus.FAILED
    shop.load(shop.saved("failures.csv", "x.csv"))
    assert shop.work.ended.rows == {RowStatus.SUCCEEDED: 1}


def test_words_are_bought_as_what_they_mean(shop: Workshop) -> None:
    """The same rows in the offer's words are the same requests; failures come back by the words of their run."""
    remember(more='[values]\n"Tasche" = "Tote"\n')
    shop.service.on_follow["ferns"] = [failed()]
    shop.load(shop.file(THEIRS.replace(",Tote,", ",Tasche,")))
    assert shop.rows["F-1"] is RowStatus.FAILED
    bought = list(shop.service.bought)
    (load_settings().home / "spring.mapping.toml").unlink()
    shop.load(shop.file(OWN))
    assert shop.rows["F-1"] is RowStatus.FAILED and shop.service.bought == bought
    shop.load(shop.saved("failures.csv", "x.csv"))
    assert shop.work.ended.rows == {RowStatus.SUCCEEDED: 1}


def test_remembered_encoding_garbles_no_file_that_shows_its_own(shop: Workshop) -> None:
    """One day the sheet is saved as UTF-8: what was confirmed for the old bytes is not read into the new ones."""
    remember(more='[reading]\nencoding = "cp1252"\n')
    shop.load(shop.file(THEIRS.replace("herons", "Käuze")))
    assert "Käuze" in shop.service.bought


# -- sheets as people write them

MADE_OF = Option("fabric", ("linen", "velvet")), Option("finish", ("glossy", "matte"))
CATEGORIES = (
    Category("cat_cushion", "Cushion", (Option("size", ("50x50", "40x40")), MADE_OF[0])),
    Category("cat_mug", "Mug", (Option("size", ("11oz",)), MADE_OF[1])),
)
PRODUCTS = ("Kissen;50x50;Samt;", "Tasse;11oz;;glänzend", "Kissen;40x40;Leinen;")


def german_excel(prompts: Sequence[str]) -> bytes:
    header = "Art.-Nr.;Motivbeschreibung;Produktart;Größe;Stoff;Oberfläche;Bemerkung\r\n"
    rows = (
        f'K-{number:03};{prompt};{PRODUCTS[number % 3]};"für Müller; eilt"\r\n'
        for number, prompt in enumerate(prompts)
    )
    return "".join([header, *rows]).encode("cp1252")


def workbook(prompts: Sequence[str]) -> bytes:
    """Return a workbook with a title, two worksheets, a header of two rows, and categories merged across rows."""
    book, content = Workbook(), io.BytesIO()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    rows = [
        [f"W-{number}", prompt, None, "50x50", "Leinen", 12.9] for number, prompt in enumerate(prompts, 1)
    ]
    rows[0][2] = "Kissen"
    header = ["Artikelnr.", "Motiv", "Warengruppe", "Ausführung", "", "Preis"]
    for line in (["Sommer 2027"], [], header, ["", "", "", "Größe (cm)", "Stoff", ""], *rows):
        sheet.append(line)
    merged = (f"{column}3:{column}4" for column in "ABCF")
    for cells in ("A1:F1", "D3:E3", *merged, f"C5:C{4 + len(prompts)}"):
        sheet.merge_cells(cells)
    book.create_sheet("Hinweise").append(["Spalte", "Bedeutung"])
    book.save(content)
    return content.getvalue()


WRITERS = {"herbst.csv": german_excel, "sommer.xlsx": workbook}


@pytest.mark.parametrize("name", WRITERS)
def test_sheet_is_accepted_by_one_command(
    shop: Workshop, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first time needs replies, and a week later none."""
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "")
    shop.service.offer = Offer(CATEGORIES, None)
    prompts = [f"blue herons {number}" for number in range(6)]
    for changed in (0, 2):
        file = shop.folder / name
        file.write_bytes(WRITERS[name]([f"{text} anew" for text in prompts[:changed]] + prompts[changed:]))
        assert main.run(["check", str(file)]) == 0
        shown = capsys.readouterr().out
        assert f"{name}: 6 rows, all accepted" in shown and (not changed or "?" not in shown)
        preview = asyncio.run(Run(run_spec(ImportRequest(file=file))).preview())
        assert preview.plan.purchases().total() == 12


# -- addresses

SECRET = "?signature=canary-two"


@pytest.mark.parametrize("way", ["address", "bearer"])
def test_secrets_of_an_address_are_sent_to_it_alone_and_kept_nowhere(
    shop: Workshop, home: Path, start: Start, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """User, password, signature, and the bearer of a source of the settings."""
    site, path = start(), f"/spring.csv{SECRET}" if way == "address" else "/spring.csv"
    site.answers(path, answer(200, OWN.encode()))
    sources = {"nightly": {"address": f"{site.url}{path}", "bearer": "canary-one"}}
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps(sources))
    named = f"{site.url.replace('//', '//ann:canary-one@')}{path}" if way == "address" else "nightly"
    shop.refresh(source=named)
    assert shop.work.ended.outcome is Outcome.COMPLETED
    basic = "Basic " + base64.b64encode(b"ann:canary-one").decode()
    assert set(site.sent("Authorization")) == {basic if way == "address" else "Bearer canary-one"}
    for folder in (shop.folder, home):
        for file in filter(Path.is_file, folder.rglob("*")):
            assert b"canary" not in file.read_bytes(), file


@pytest.mark.parametrize("place", ["ann:canary@example.com/a.csv", "example.com/a.csv?sig=canary"])
def test_address_with_a_secret_is_refused_as_a_parameter(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Under a name of the settings it is accepted, and its secret is shown nowhere."""
    url = f"https://{place}"
    for request in (ImportRequest(file=url), RefreshRequest(source=url, catalog="s")):
        with pytest.raises(ConfigurationError, match="PATTERNMILL_SOURCES") as refused:
            spec_of_flow(request)
        assert "canary" not in str(refused.value) and "canary" not in repr(request)
    address = f"http://{place.replace('example.com', '127.0.0.1:9')}"
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({"nightly": address}))
    with pytest.raises(InputRefused) as unreached:
        shop.refresh(source="nightly")
    assert "http://127.0.0.1:9/a.csv" in str(unreached.value) and "canary" not in str(unreached.value)


def test_sheet_at_an_address_is_imported(
    shop: Workshop, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its catalog is named after it, or as --catalog says; the refresh of that address then has nothing to buy."""
    site = start()
    address, export = f"{site.url}/new%20linens.csv", f"{site.url}/export?token=canary"
    for path in ("/new%20linens.csv", "/export?token=canary"):
        site.answers(path, answer(200, OWN.encode()))
    shop.load(address)
    spec = shop.work.spec
    assert (spec.catalog, spec.source, len(shop.rows)) == ("new-linens", address, 4)
    shop.refresh(source=address, catalog="new-linens")
    assert shop.changes == {"unchanged": 4}
    with pytest.raises(ConfigurationError, match="--catalog"):
        run_spec(ImportRequest(file=export))
    shop.load(export, catalog="new-linens")
    assert len(shop.service.bought) == 7
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({"nightly": export}))
    spec = run_spec(ImportRequest(file="nightly"), by_deployment=True)
    assert check_command(spec) == "patternmill check nightly --catalog nightly"
    spec = run_spec(ImportRequest(file=shop.file(OWN, "...csv"), catalog="spring"))
    assert check_command(spec).endswith("/...csv --catalog spring"), "no catalog can be named after it"


def test_check_reads_an_address_and_a_name(
    shop: Workshop, start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answers are kept in the home, where the import of the same address reads them."""
    site = start()
    address = f"{site.url}/linens.csv?sig=canary"
    site.answers("/linens.csv?sig=canary", answer(200, OWN.replace("sku", "Art.-Nr.").encode()))
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps({"linens": address}))
    assert main.run(["check", address]) == 2
    assert "canary" not in "".join(capsys.readouterr())
    assert main.run(["check", "linens", "--yes"]) == 0
    assert read_input(run_spec(ImportRequest(file=address))).columns.sku == 0
    site.answers("/results.csv", answer(200, OWN.replace("option:name", "run").encode()))
    with pytest.raises(InputRefused) as refused:
        read_input(run_spec(ImportRequest(file=f"{site.url}/results.csv")))
    assert refused.value.code == "reserved_column" and "from a file" in refused.value.remedy


@pytest.mark.parametrize(("status", "code"), [(404, "file_missing"), (500, "file_unreadable")])
def test_unavailable_source_retires_nothing(shop: Workshop, start: Start, status: int, code: str) -> None:
    """It is refused whole."""
    site = start()
    site.answers("/spring.csv", answer(200, OWN.encode()))
    shop.refresh(source=f"{site.url}/spring.csv")
    site.answers("/spring.csv", answer(status, b"sorry"))
    with pytest.raises(InputRefused) as refused:
        shop.refresh(source=f"{site.url}/spring.csv")
    assert refused.value.code == code
    assert len(shop.has()) == 4
