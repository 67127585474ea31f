"""What an import asks before it makes anything, what it says where nobody is asked, and what it passes on."""

from __future__ import annotations

import json
import signal
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cli import launcher, main
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import Approval
from patternmill.ledger.sqlite import SqliteDatabase
from patternmill.planning.offer import Category, Offer, Option
from patternmill.profiles import EmbeddedProfile
from patternmill.runs.command import Command
from patternmill.runs.request import RefreshRequest
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from prefect_host.connection import PrefectConnection
from tests.hostile.in_process import InProcessApi, Service, failed
from tests.unit.cli.ledgers import HERON, Past

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
COLUMNS = {"Art.-Nr.": "sku", "Produktart": "category", "Name": "option:name"}


@pytest.fixture
def service(home: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return an embedded service in memory, without a Prefect server."""
    service = Service(offer=Offer((TOTE,), None))

    @contextmanager
    def available(settings: Settings) -> Iterator[Settings]:
        profile = EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("key"))
        yield settings if settings.profiles else settings.at(profile)

    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(service))
    monkeypatch.setattr(launcher, "available_service", available)
    monkeypatch.setattr("cli.services.available_service", available)
    monkeypatch.setattr("cli.mapping_questions.offer_of", lambda settings: service.offer)
    monkeypatch.setattr(PrefectConnection, "start", lambda connection: None)
    Path("spring.csv").write_text(SHEET, encoding="utf-8")
    return service


def mapping() -> object:
    return tomllib.loads(Path("spring.mapping.toml").read_text(encoding="utf-8"))


def test_import_asks_once_about_columns_words_and_refused_rows(
    service: Service, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What a person has read before the question is not printed again."""
    answers += ["y", "", "n", "y"]
    assert main.run(["import", "spring.csv"]) == 3
    shown = capsys.readouterr().out
    assert mapping() == {"columns": COLUMNS}
    assert service.bought == ["blue herons", "A-1", "A-2"]
    assert shown.count("the prompt is empty") == shown.count("unknown category") == 1
    assert CAUSES in shown and "Next: correct failures.csv" in shown


def test_refused_rows_are_left_out_only_where_a_person_agrees(
    service: Service, answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers += ["y", "^C", "n"]
    assert main.run(["import", "spring.csv"]) == 2
    assert capsys.readouterr().err.endswith("Nothing was made.\n") and service.bought == []


def test_value_that_is_called_no_can_be_chosen(service: Service, answers: list[str]) -> None:
    """It is a choice where a number or a name is asked for."""
    service.offer = Offer((Category("cat_bag", "Bag", (Option("name", ("yes", "no"), True),)),), None)
    Path("spring.csv").write_text("sku,prompt,category,option:name\nA-1,herons,Bag,-\n", encoding="utf-8")
    answers += ["no"]
    assert main.run(["import", "spring.csv"]) == 0
    assert mapping() == {"values": {"-": "no"}}


def test_lines_for_the_mapping_where_nobody_is_asked(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """They can be pasted; with --yes the certain ones are written, and the rows that are ready are made."""
    assert main.run(["import", "spring.csv"]) == 2
    line = '"Produktart" = "category"  # Tote, Lampe'
    assert line in capsys.readouterr().out and service.bought == []
    assert main.run(["import", "spring.csv", "--yes"]) == 3
    shown = capsys.readouterr().out
    assert mapping() == {"columns": COLUMNS}
    assert '\n# "Lampe" = "?"  # Produktart of row 6: Tote\n' in shown
    assert service.bought == ["blue herons", "A-1", "A-2"]


def test_runs_write_one_object(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the plan, or what came of the run; nobody is asked, so what is certain needs --yes."""

    def json_of(words: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main.run([*words.split(), "--json"])
        report: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert report["exit_code"] == code
        return report

    assert json_of("import spring.csv")["error"]["code"] == "missing_column"
    made = json_of("import spring.csv --yes")
    assert (made["exit_code"], made["outcome"]) == (3, "CompletedWithFailures")
    assert made["counts"]["by_status"]["succeeded"] == 2 and Path(made["folder"]).is_dir()
    codes = {cause["code"] for cause in made["causes"]}
    assert codes == {"empty_prompt", "unknown_value", "unknown_category"}
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


@pytest.fixture
def paid(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return a service that costs money, with a sheet of three items: plans of more than two need an approval."""
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "key")
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "2")
    rows = "A-1,blue herons,Tote,A-1\nA-2,blue herons,Tote,A-2\n"
    Path("spring.csv").write_text(f"sku,prompt,category,option:name\n{rows}", encoding="utf-8")
    return service


def approvals(home: Path) -> list[Approval]:
    with Ledger(SqliteDatabase(home / "ledger.sqlite3")) as ledger:
        return ledger.approvals.find()


def test_plan_is_approved_by_its_digest(
    paid: Service, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole digest or its beginning approves it, in either case, and no other text; run again, it buys nothing."""
    command = ["import", "spring.csv", "--yes"]
    assert main.run([*command, "--plan-only", "--json"]) == 0
    digest = json.loads(capsys.readouterr().out)["plan"]["digest"]
    assert main.run(command) == 2
    assert f"--approve {digest[:12]}`" in capsys.readouterr().err
    for wrong in ("", "0" * 12, "short", digest[:11]):
        assert main.run([*command, "--approve", wrong]) == 2
        assert f"The plan's digest is {digest[:12]}" in capsys.readouterr().err
    assert paid.bought == [] and approvals(home) == []
    for _ in range(2):
        assert main.run([*command, "--approve", digest[:12].upper()]) == 0
        (approval,) = approvals(home)
        assert (approval.digest, approval.items, "@" in (approval.who or "")) == (digest, 3, True)
    assert len(paid.bought) == 3 and main.run(command) == 0


@pytest.mark.parametrize("answer", ["y", "n"])
def test_question_shows_what_is_bought(
    paid: Service, home: Path, answers: list[str], capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    """There is one question: about the approval, or else the purchase; there is none where nothing is bought."""
    answers.append(answer)
    assert main.run(["import", "spring.csv"]) == (0 if answer == "y" else 2)
    shown = capsys.readouterr()
    assert shown.out.count("[y/N]") == 1 and "To buy: 1 pattern and 2 products." in shown.out
    assert len(approvals(home)) == (answer == "y")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PATTERNMILL_APPROVE_ABOVE_ITEMS")
        answers.append(answer)
        assert main.run(["import", "spring.csv"]) == (0 if answer == "y" else 2)
    shown = capsys.readouterr()
    assert ("Make 3 items" in shown.out and "in staging? [y/N]" in shown.out) is (answer == "n")
    assert len(paid.bought) == (3 if answer == "y" else 0)


def test_ctrl_c_ends_the_question_at_once(
    paid: Service, home: Path, answers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop, which waits for the answer, would only notice after it."""
    before = signal.getsignal(signal.SIGINT)

    def interrupted(prompt: str) -> str:
        signal.raise_signal(signal.SIGINT)
        return "y"

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    assert main.run(["import", "spring.csv"]) == 130
    assert paid.bought == [] and approvals(home) == []
    assert signal.getsignal(signal.SIGINT) is before


def test_what_a_person_names_is_passed_on(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirmations become the one value of a form; a refresh takes the catalog that an import of its file made."""
    calls: list[Any] = []
    monkeypatch.setattr(launcher, "run_request", lambda *arguments, **more: calls.append(arguments[:2]) or 0)
    past.begin(HERON).end()
    Path("Spring.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")
    confirm = ["--confirm", "duplicates", "--confirm", "production"]
    for words in (["refresh", "Spring.csv"], ["import", "Spring.csv"], ["import", "Spring.csv", "--whole"]):
        assert main.run([*words, *confirm]) == 0
    assert [request.confirm for request, _ in calls] == ["duplicates,production"] * 3
    assert [spec.catalog for _, spec in calls] == ["spring"] * 3
    # An import retires nothing without --whole.
    assert [spec.retire_limit and spec.retire_limit.count for _, spec in calls] == [20, None, 20]


def test_parameters_have_no_secrets_of_an_address() -> None:
    """Prefect stores parameters in clear; a request does not show secrets either."""
    request = RefreshRequest(source="https://ann:canary@example.com/spring.csv?sig=canary", catalog="spring")
    parameters = Command(request).parameters
    assert parameters["source"] == "https://example.com/spring.csv"
    assert "canary" not in f"{parameters} {request!r}"
