"""Results files that come back, known by their column `run`: they go on where that run was, and nowhere else."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cli import main
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.ledger.reports.requests import unsettled
from patternmill.profiles import EmbeddedProfile
from patternmill.runs.origin import runs_of_file
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.settlement import Resolution
from patternmill.runs.spec import run_spec
from patternmill.service.outcomes import Refusal
from patternmill.service.studio_api import StudioApi
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Outcome
from patternmill.tables.sheet import NO_CHOICES
from tests.hostile.in_process import ANSWER_LOST, failed
from tests.unit.service.sites import Start
from tests.unit.service.sites import start as start

from .workshop import Edit, Workshop, read_rows, rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
FROM_SETTINGS = StudioApi.from_settings


def profile(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: str = "staging", formerly: Sequence[str] = ()
) -> None:
    """Set the only profile from now on."""
    its = {"url": url, "key": "key", "formerly": formerly}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({environment: its}))


def changed(**cells: str) -> Edit:
    """Change cells of the first row."""
    return lambda rows: [rows[0] | cells, *rows[1:]]


@pytest.fixture
def production(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Return a workshop set to production, with a run there in which the ferns failed and a newer one in staging."""
    shop.service.on_follow["ferns"] = [failed()]
    shop.load(shop.file(FOUR), environment="production")
    shop.load(shop.file(FOUR.replace("ferns", "moss"), "other.csv"), catalog="spring")
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "production")
    return shop


@pytest.mark.parametrize(
    ("at", "edit", "bought"),
    [
        ("results/spring/RUN/failures.csv", changed(), ["ferns", "F-1"]),
        ("elsewhere/mended.csv", changed(prompt="tall ferns"), ["tall ferns", "F-1"]),
        ("results/summer/RUN/results.csv", changed(sku=" f-1 ", status="succeeded"), ["ferns", "F-1"]),
        (
            "new-row.csv",
            lambda rows: [*rows, rows[0] | {"sku": "F-9", "prompt": "figs", "run": ""}],
            ["figs", "ferns", "F-1", "F-1"],
        ),
    ],
    ids=["as it is", "edited", "moved", "new row"],
)
def test_failures_go_on_where_their_run_was(
    production: Workshop, at: str, edit: Edit, bought: list[str]
) -> None:
    """Wherever the file lies and whatever it is called: the catalog is the ledger's."""
    before = len(production.service.bought)
    production.load(production.saved("failures.csv", at, edit))
    record = production.work.record
    assert (record.catalog, record.environment) == ("spring", "production")
    assert production.work.spec.settings.studio_url == "http://127.0.0.1:10/v1"
    assert production.service.bought[before:] == bought


@pytest.mark.parametrize(
    ("edit", "asked", "code", "says"),
    [
        (changed(run="20270101-120000-abcdef"), {}, "unknown_run", "20270101-120000-abcdef, which this"),
        (changed(run=""), {}, "unknown_run", "no run in its column"),
        (changed(), {"environment": "staging"}, "other_environment", "production.*'staging' is named"),
        (changed(), {"catalog": "summer"}, "other_catalog", "spring.*'summer' is named"),
        (changed(), {"whole": True}, "not_whole", "--whole is named"),
        (
            lambda rows: [{key: row[key] for key in row if key != "run"} for row in rows],
            {},
            "reserved_column",
            "status",
        ),
    ],
)
def test_refused_results(
    production: Workshop, edit: Edit, asked: dict[str, Any], code: str, says: str
) -> None:
    """Before anything is spent."""
    before = len(production.service.creates)
    with pytest.raises(InputRefused, match=says) as caught:
        production.load(production.saved("failures.csv", "x.csv", edit), **asked)
    assert caught.value.code == code
    assert len(production.service.creates) == before


def test_file_never_chooses_the_environment(production: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody mailed it: its run was in production, and staging is what this machine is set to."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT")
    before, file = len(production.service.creates), production.saved("failures.csv", "mailed.csv")
    with pytest.raises(InputRefused, match=r"environment production.*'staging' is configured") as refused:
        production.load(file)
    assert "--environment production" in refused.value.remedy
    assert len(production.service.creates) == before
    production.load(file, environment="production")
    assert len(production.service.creates) > before


def test_results_of_another_ledger_are_refused(shop: Workshop) -> None:
    """The embedded studio's is another one, and is not missed by the first real import."""
    spec = run_spec(ImportRequest(file=shop.file(FOUR)))
    studio = EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("key"))
    shop.through(Run(replace(spec, settings=spec.settings.at(studio))))
    shop.load(shop.file(FOUR))
    assert shop.work.ended.outcome is Outcome.COMPLETED
    with pytest.raises(InputRefused, match=f"{shop.runs[0]}, which this ledger lacks"):
        shop.load(shop.saved("results.csv", "x.csv"))


def test_pictures_of_results_are_found_from_the_folder_of_their_source(shop: Workshop) -> None:
    """By `check` as by the import, wherever the results lie."""
    (shop.folder / "heron.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    shop.load(shop.file("sku,prompt,category,option:name,reference\nH-1,herons,Tote,h,heron.png\n"))
    file = shop.saved("results.csv", "elsewhere/x.csv")
    assert main.run(["check", str(file)]) == 0
    shop.load(file)
    assert shop.work.ended.outcome is Outcome.COMPLETED


def test_source_has_no_column_run(shop: Workshop) -> None:
    """A sheet that is from no run is not taken for results."""
    lines = FOUR.splitlines()
    shop.file("\n".join([f"{lines[0]}, Run ", *(f"{line},3" for line in lines[1:])]))
    for command in (shop.refresh, lambda: shop.load(shop.folder / "spring.csv")):
        with pytest.raises(InputRefused, match="note:run"):
            command()
    assert shop.service.creates == []


def test_catalog_is_written_whole_at_the_end_of_each_run(production: Workshop) -> None:
    """For feeds, each environment has a file, with the rows that this run did not have too."""
    production.load(production.saved("failures.csv", "x.csv"))
    folder = production.folder / "results" / "spring"
    rows = {row["sku"]: row["prompt"] for row in read_rows(folder / "catalog-production.csv")}
    assert rows == {"H-1": "herons", "H-2": "herons", "F-1": "ferns", "O-1": "owls"}
    assert {row["prompt"] for row in read_rows(folder / "catalog.csv")} == {"herons", "moss", "owls"}
    assert [row["sku"] for row in read_rows(folder / "latest" / "results.csv")] == ["F-1"]


def test_pipe_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would wait for a writer, before the refusal of pipes could be said."""
    settings = load_settings()
    os.mkfifo(tmp_path / "spring.csv")
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("opened"))
    assert runs_of_file(tmp_path / "spring.csv", NO_CHOICES, settings) == []


# -- the service of an environment


def test_service_of_an_environment(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one that accepted its requests, by whichever of its names, and no other: refused before it is asked."""
    profile(monkeypatch, "http://127.0.0.1:10/v1")
    shop.service.on_create["foxes"] = [Refusal(AttemptState.REJECTED, "invalid", "no")]
    shop.load(shop.file(rows(("X-1", "foxes")), "other.csv"))
    assert shop.service.bought == [], "an address that accepted nothing binds nothing"
    profile(monkeypatch, "http://127.0.0.1:9/v1")
    shop.load(shop.file(FOUR))
    profile(monkeypatch, "http://localhost:9/v1/")
    shop.load(shop.file(FOUR))
    before = len(shop.service.bought)
    profile(monkeypatch, "https://studio.example/v1")
    with monkeypatch.context() as patch:
        patch.setattr(shop.service, "offer", None)  # to read it would fail
        with pytest.raises(ConfigurationError, match=r"127.0.0.1:9/v1 so far.*studio.example/v1") as caught:
            shop.load(shop.file(FOUR))
    assert '"formerly": ["http://127.0.0.1:9/v1"]' in caught.value.remedy
    profile(monkeypatch, "https://studio.example/v1", formerly=["http://127.0.0.1:9/v1"])
    shop.load(shop.file(FOUR))
    for url in ("https://studio.example/v1", "http://localhost:9/v1/"):
        profile(monkeypatch, url, "production", ["http://127.0.0.1:9/v1"])
        with pytest.raises(ConfigurationError, match="belongs to the environment 'staging'"):
            shop.load(shop.file(FOUR), environment="production")
    assert len(shop.service.bought) == before


VERBS = (
    "check spring.csv",
    "offer",
    "import spring.csv",
    "import spring.csv --plan-only",
    "import new.csv --yes",
    "refresh spring.csv --catalog spring",
    "retry --yes",
    "remake --sku H-1",
    "order --sku H-1",
    "settle REQUEST --job job_1 --reason said",
    "explain REQUEST --report --yes",
)


def test_no_verb_sends_the_key_to_another_service(
    shop: Workshop, start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked there, not even what it offers."""
    other = start()
    profile(monkeypatch, "http://127.0.0.1:9/v1")
    shop.service.on_create["ferns"] = [ANSWER_LOST]
    shop.load(shop.file(FOUR))
    shop.file(FOUR, "new.csv")
    monkeypatch.setenv("PATTERNMILL_IN_DOUBT_LIMIT", "PT0.001S")
    with shop.ledger() as ledger:
        request_id = unsettled(ledger, timedelta(0))[0].attempt.request_id
    monkeypatch.setattr(StudioApi, "from_settings", FROM_SETTINGS)
    profile(monkeypatch, f"{other.url}/v1")
    monkeypatch.setenv("PREFECT_API_URL", f"{other.url}/none")  # no server of our own is started
    for verb in VERBS:
        assert main.run(verb.replace("REQUEST", request_id).split()) == 2, verb
        assert "127.0.0.1:9/v1" in capsys.readouterr().err, verb
    assert "Bearer" not in str(other.seen)


def test_what_a_person_wrote_off_is_bought_again_by_a_retry_alone(shop: Workshop) -> None:
    """Not by importing the files in which its row has failed since."""
    shop.service.on_create["ferns"] = [ANSWER_LOST]
    shop.load(shop.file(FOUR))
    shop.settle(Resolution.WRITE_OFF)
    before = shop.service.bought
    shop.load(shop.file(FOUR))
    for name in ("failures.csv", "results.csv"):
        shop.load(shop.folder / "results" / "spring" / "latest" / name)
        assert shop.service.bought == before
    shop.retry()
    assert shop.service.bought == [*before, "ferns", "F-1"]
