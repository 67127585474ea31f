"""What an import asks on a terminal before it makes anything, what it says where nobody is asked, and `--yes`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cli import launcher, main
from patternmill.planning.offer import Category, Offer, Option
from patternmill.profiles import EmbeddedProfile
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from prefect_host.connection import PrefectConnection
from tests.hostile.in_process import InProcessApi, Service, failed

TOTE = Category("cat_tote", "Tote", (Option("name", ("A-1", "A-2", "A-3"), True),))
SHEET = """Art.-Nr.;Prompt;Produktart;Name
A-1;blue herons;Tote;A-1
A-2;blue herons;Tote;A-2
A-3;;Tote;A-3
A-4;green ferns;Tote;A-9
A-5;green ferns;Lampe;A-1
"""
CAUSES = """Causes:
  row 4, Prompt: the prompt is empty; describe the pattern [empty_prompt]
  row 5, Name: unknown value `A-9` for option `name`; offered: A-1, A-2, A-3; use one of these [unknown_value]
  row 6, Produktart: unknown category `Lampe`; offered: Tote; use one of these [unknown_category]
"""


@pytest.fixture
def service(home: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return an embedded service in memory; no Prefect server is started."""
    service = Service(offer=Offer((TOTE,), None))

    @contextmanager
    def available(settings: Settings) -> Iterator[Settings]:
        yield settings.at(EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("key")))

    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(service))
    monkeypatch.setattr(launcher, "available_service", available)
    monkeypatch.setattr("cli.services.available_service", available)
    monkeypatch.setattr("cli.mapping_questions.offer_of", lambda settings: service.offer)
    monkeypatch.setattr(PrefectConnection, "start", lambda connection: None)
    Path("spring.csv").write_text(SHEET, encoding="utf-8")
    return service


def mapping() -> object:
    return tomllib.loads(Path("spring.mapping.toml").read_text(encoding="utf-8"))


COLUMNS = {"Art.-Nr.": "sku", "Produktart": "category", "Name": "option:name"}


def test_import_asks_once_about_columns_words_and_refused_rows(
    service: Service, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers += ["y", "", "n", "y"]
    assert main.run(["import", "spring.csv"]) == 3
    shown = capsys.readouterr().out
    assert mapping() == {"columns": COLUMNS}
    assert service.bought == ["blue herons", "A-1", "A-2"]
    # What was read before the question is not said again.
    assert shown.count("the prompt is empty") == shown.count("unknown category") == 1
    assert CAUSES in shown and "Next: correct failures.csv" in shown


def test_refused_rows_are_left_out_only_where_a_person_agrees(
    service: Service, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers += ["y", "^C", "n"]
    assert main.run(["import", "spring.csv"]) == 2
    assert capsys.readouterr().err.endswith("Nothing was made.\n") and service.bought == []


def test_lines_for_the_mapping_where_nobody_is_asked(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are to be pasted; with --yes the certain ones are written, and the rows that are ready are made."""
    assert main.run(["import", "spring.csv"]) == 2
    line = '"Produktart" = "category"  # Tote, Lampe'
    assert line in capsys.readouterr().out and service.bought == []
    assert main.run(["import", "spring.csv", "--yes"]) == 3
    shown = capsys.readouterr().out
    assert mapping() == {"columns": COLUMNS}
    assert '\n# "Lampe" = "?"  # Produktart of row 6: Tote\n' in shown
    assert service.bought == ["blue herons", "A-1", "A-2"]


def test_runs_write_one_object(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan, or what came of the run; nobody is asked, so that what is certain needs --yes."""

    def json_of(words: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main.run([*words.split(), "--json"])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert found["exit_code"] == code
        return found

    assert json_of("import spring.csv")["error"]["code"] == "missing_column"
    made = json_of("import spring.csv --yes")
    assert (made["exit_code"], made["outcome"]) == (3, "CompletedWithFailures")
    assert made["counts"]["by_status"]["succeeded"] == 2 and Path(made["folder"]).is_dir()
    assert {cause["code"] for cause in made["causes"]} == {
        "empty_prompt",
        "unknown_value",
        "unknown_category",
    }
    assert made["run"] and "spent" in made["money"]
    plan = json_of("refresh spring.csv --catalog spring --plan-only")["plan"]
    assert (plan["items"]["product"], plan["to_buy"], plan["refused"]) == ({"done": 2}, {}, 3)
    service.on_follow["A-3"] = [failed(), failed()]
    Path("spring.csv").write_text(SHEET.replace("A-3;;", "A-3;owls;"))
    assert json_of("import spring.csv --yes")["counts"]["by_status"]["failed"] == 1
    retried = json_of("retry --catalog spring --plan-only")
    assert [row["sku"] for row in retried["rows"]] == ["A-3"] and retried["plan"]["to_buy"] == {"product": 1}
    assert json_of("remake --sku A-1 --plan-only")["plan"]["to_buy"] == {"pattern": 1, "product": 2}
    assert json_of("retry --catalog spring --yes")["counts"]["by_status"]["succeeded"] == 3


def test_skus_that_are_numbers_are_taken_by_yes(service: Service) -> None:
    """As `check --yes` takes them."""
    from tests.unit.tables.sheet_files import workbook

    rows = [["sku", "prompt", "category", "option:name"], [12, "blue herons", "Tote", "A-1"]]
    Path("spring.xlsx").write_bytes(workbook({"Artikel": rows}, {"A2": "00000"}))
    assert main.run(["import", "spring.xlsx"]) == 3 and service.bought == []
    assert main.run(["import", "spring.xlsx", "--yes"]) == 0
    assert mapping() == {"reading": {"sku_numbers": "as shown"}}
    assert service.bought == ["blue herons", "A-1"]
