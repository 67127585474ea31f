"""Results files that come back, known by their column `run`: they go on where that run was, and nowhere else."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cli import main
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.requests import unsettled
from patternmill.profiles import EmbeddedProfile
from patternmill.runs.request import ImportRequest, RefreshRequest, RetryRequest
from patternmill.runs.run import Run
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.runs.spec import run_spec, runs_of_file
from patternmill.service.outcomes import Refusal
from patternmill.service.studio_api import StudioApi
from patternmill.settings import load_settings
from patternmill.states import AttemptState, Outcome
from patternmill.tables.sheet import NO_CHOICES
from tests.hostile.in_process import ANSWER_LOST, OFFER, InProcessApi, Service, failed

from .workshop import rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
URLS = '{"staging": "http://127.0.0.1:9/v1", "production": "http://127.0.0.1:10/v1"}'

FROM_SETTINGS = StudioApi.from_settings

Cells = dict[str, str]
Edit = Callable[[list[Cells]], list[Cells]]


@dataclass
class Desk:
    """A folder in which commands are given, one after another."""

    folder: Path
    service: Service
    #: The ID of the first run.
    first: str = ""

    def file(self, name: str = "spring.csv", text: str = FOUR) -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def rows(self, file: Path) -> list[Cells]:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return list(csv.DictReader(lines))

    def saved(self, name: str, at: str, edit: Edit) -> Path:
        """A file of the first run, as a person edits it and saves it there."""
        run_id = self.first
        rows = edit(self.rows(self.folder / "results" / "spring" / run_id / name))
        file = self.folder / at.replace("RUN", run_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8-sig", newline="") as lines:
            writer = csv.DictWriter(lines, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return file

    def run(self, source: Path, **asked: Any) -> Run:
        return self._through(Run(run_spec(ImportRequest(file=source, **asked))))

    def run_embedded(self, port: int) -> Run:
        spec = run_spec(ImportRequest(file=self.file()))
        studio = EmbeddedProfile(url=f"http://127.0.0.1:{port}/v1", key=SecretStr("key"))
        return self._through(Run(replace(spec, settings=spec.settings.at(studio))))

    def refresh(self, source: Path, catalog: str = "spring", **asked: Any) -> Run:
        return self._through(Run(run_spec(RefreshRequest(source=str(source), catalog=catalog, **asked))))

    def _through(self, work: Run) -> Run:
        async def main() -> Run:
            async with work:
                await work.run_through()
            return work

        done = asyncio.run(asyncio.wait_for(main(), 30))
        self.first = self.first or done.ended.record.run_id
        return done


def profile(
    monkeypatch: pytest.MonkeyPatch, url: str, environment: str = "staging", formerly: Sequence[str] = ()
) -> None:
    """The only one from now on."""
    its = {"url": url, "key": "key", "formerly": formerly}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({environment: its}))


@pytest.fixture
def desk(service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(service))
    monkeypatch.setenv("PATTERNMILL_HOME", str(home))
    several = {name: {"url": url, "key": "key"} for name, url in json.loads(URLS).items()}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps(several))
    for name in ("ENVIRONMENT", "STUDIO_URL", "API_KEY", "LEDGER_URL"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, service)


def as_it_is(rows: list[Cells]) -> list[Cells]:
    return rows


def changed(**cells: str) -> Edit:
    """Cells of the first row."""
    return lambda rows: [rows[0] | {name.replace("_", ":"): text for name, text in cells.items()}, *rows[1:]]


def without(*names: str) -> Edit:
    return lambda rows: [{name: text for name, text in row.items() if name not in names} for row in rows]


@pytest.fixture
def production(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A run in production, in which the ferns failed; one in staging is newer. Production is configured."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production")
    desk.run(desk.file("other.csv", FOUR.replace("ferns", "moss")), catalog="spring")
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "production")
    return desk


@pytest.mark.parametrize(
    ("at", "edit", "bought"),
    [
        ("results/spring/RUN/failures.csv", as_it_is, ["ferns", "F-1"]),
        ("elsewhere/mended.csv", changed(prompt="tall ferns"), ["tall ferns", "F-1"]),
        ("results/summer/RUN/results.csv", changed(sku=" f-1 ", status="succeeded"), ["ferns", "F-1"]),
        (
            "new-row.csv",
            lambda rows: [*rows, rows[0] | {"sku": "F-9", "prompt": "figs", "run": ""}],
            ["figs", "ferns", "F-1", "F-1"],
        ),
    ],
    ids=lambda value: Path(value).name if isinstance(value, str) else "",
)
def test_failures_go_on_where_their_run_was(production: Desk, at: str, edit: Edit, bought: list[str]) -> None:
    """Wherever the file lies and whatever it is called: the catalog is the ledger's."""
    file = production.saved("failures.csv", at, edit)
    before = len(production.service.bought)
    work = production.run(file)
    record = work.ended.record
    assert (record.catalog, record.environment) == ("spring", "production")
    assert work.spec.settings.studio_url == "http://127.0.0.1:10/v1"
    assert production.service.bought[before:] == bought


@pytest.mark.parametrize(
    ("edit", "asked", "code", "says"),
    [
        (changed(run="20270101-120000-abcdef"), {}, "unknown_run", "20270101-120000-abcdef"),
        (changed(run=""), {}, "unknown_run", "no run in its column"),
        (as_it_is, {"environment": "staging"}, "other_environment", "production.*'staging' is named"),
        (as_it_is, {"catalog": "summer"}, "other_catalog", "spring.*'summer' is named"),
        (without("run"), {}, "reserved_column", "'status'|`status`"),
    ],
)
def test_refused_results(production: Desk, edit: Edit, asked: dict[str, str], code: str, says: str) -> None:
    """Before anything is spent."""
    before = len(production.service.creates)
    with pytest.raises(InputRefused, match=says) as caught:
        production.run(production.saved("failures.csv", "x.csv", edit), **asked)
    assert caught.value.code == code
    assert len(production.service.creates) == before


def test_file_never_chooses_the_environment(production: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody mailed it: its run was in production, and staging is what this machine is set to."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT")
    before, file = len(production.service.creates), production.saved("failures.csv", "mailed.csv", as_it_is)
    with pytest.raises(InputRefused, match=r"environment production.*'staging' is configured") as refused:
        production.run(file)
    assert "--environment production" in refused.value.remedy
    assert len(production.service.creates) == before
    production.run(file, environment="production")
    assert len(production.service.creates) > before


def test_results_of_another_ledger_are_refused(production: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older backup, or another folder, knows nothing of what the file's rows have bought."""
    file = production.saved("results.csv", "x.csv", as_it_is)
    monkeypatch.setenv("PATTERNMILL_HOME", str(production.folder / "new"))
    with pytest.raises(InputRefused, match=f"{production.first}, which this ledger lacks") as caught:
        production.run(file)
    assert caught.value.code == "unknown_run"


def test_ledgers_of_one_home_know_of_each_other(desk: Desk) -> None:
    """A try at the embedded studio, which has a ledger of its own, before the first real import: nothing is missing."""
    desk.run_embedded(9)
    assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED
    file = desk.saved("results.csv", "x.csv", as_it_is)
    with pytest.raises(InputRefused, match="which this ledger lacks"):
        desk.run(file)


def test_source_has_no_column_run(desk: Desk) -> None:
    """A refresh follows its source; a sheet that is from no run is not taken for results."""
    lines = FOUR.splitlines()
    text = "\n".join([f"{lines[0]}, Run ", *(f"{line},3" for line in lines[1:])])
    with pytest.raises(InputRefused, match="note:run") as caught:
        desk.refresh(desk.file(text=text))
    assert caught.value.code == "reserved_column"
    with pytest.raises(InputRefused, match="note:run"):
        desk.run(desk.file(text=text))
    assert desk.service.creates == []


def test_catalog_is_written_whole_at_the_end_of_each_run(production: Desk) -> None:
    """For feeds: of each environment a file, with the rows that this run did not have too."""
    production.run(production.saved("failures.csv", "x.csv", as_it_is))
    folder = production.folder / "results" / "spring"
    rows = {row["sku"]: row["prompt"] for row in production.rows(folder / "catalog-production.csv")}
    assert rows == {"H-1": "herons", "H-2": "herons", "F-1": "ferns", "O-1": "owls"}
    assert {row["prompt"] for row in production.rows(folder / "catalog.csv")} == {"herons", "moss", "owls"}
    assert [row["sku"] for row in production.rows(folder / "latest" / "results.csv")] == ["F-1"]


def test_pipe_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would wait for a writer, before the refusal of pipes could be said."""
    settings = load_settings()
    os.mkfifo(tmp_path / "spring.csv")
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("opened"))
    assert runs_of_file(tmp_path / "spring.csv", NO_CHOICES, settings) == []


def test_other_service_under_the_same_environment_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its offer is read: products of the one are not reported as the other's."""
    profile(monkeypatch, "http://127.0.0.1:9/v1")
    desk.run(desk.file())
    profile(monkeypatch, "https://studio.example/v1")

    monkeypatch.setattr(desk.service, "offer", None)  # to read it would fail
    with pytest.raises(ConfigurationError, match=r"127.0.0.1:9/v1 so far.*studio.example/v1") as caught:
        desk.run(desk.file())
    monkeypatch.setattr(desk.service, "offer", OFFER)
    assert '"formerly": ["http://127.0.0.1:9/v1"]' in caught.value.remedy
    profile(monkeypatch, "https://studio.example/v1", formerly=["http://127.0.0.1:9/v1"])
    assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED
    profile(monkeypatch, "https://studio.example/v1", "production", ["http://127.0.0.1:9/v1"])
    with pytest.raises(ConfigurationError, match="belongs to the environment 'staging'"):
        desk.run(desk.file(), environment="production")


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
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked there, not even what it offers."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
            self.send_error(404)

        do_POST = do_GET

    profile(monkeypatch, "http://127.0.0.1:9/v1")
    desk.service.on_create["ferns"] = [ANSWER_LOST]
    desk.run(desk.file())
    desk.file("new.csv")
    monkeypatch.setenv("PATTERNMILL_IN_DOUBT_LIMIT", "PT0.001S")
    with open_ledger(load_settings()) as ledger:
        request_id = unsettled(ledger, timedelta(0))[0].attempt.request_id
    monkeypatch.setattr(StudioApi, "from_settings", FROM_SETTINGS)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        profile(monkeypatch, url)
        monkeypatch.setenv("PREFECT_API_URL", f"{url}/none")  # no server of our own is started
        for verb in VERBS:
            assert main.run(verb.replace("REQUEST", request_id).split()) == 2, verb
            assert "127.0.0.1:9/v1" in capsys.readouterr().err, verb
        server.shutdown()
    assert not [request for request in requests if "Bearer" in request]


def test_other_name_of_the_same_service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues in its own environment, and is refused under another."""
    profile(monkeypatch, "http://127.0.0.1:9/v1")
    desk.run(desk.file())
    before = len(desk.service.bought)
    profile(monkeypatch, "http://localhost:9/v1/")
    assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED
    profile(monkeypatch, "http://localhost:9/v1/", "production")
    with pytest.raises(ConfigurationError, match="belongs to the environment 'staging'"):
        desk.run(desk.file(), environment="production")
    assert len(desk.service.bought) == before


def test_address_that_accepted_nothing_binds_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped first address refused every request."""
    profile(monkeypatch, "http://127.0.0.1:10/v1")
    for prompt in ("herons", "ferns", "owls"):
        desk.service.on_create[prompt] = [Refusal(AttemptState.REJECTED, "invalid", "no")]
    desk.run(desk.file())
    assert desk.service.bought == []
    profile(monkeypatch, "http://127.0.0.1:9/v1")
    desk.run(desk.file())


def test_what_a_person_wrote_off_is_bought_again_by_a_retry_alone(desk: Desk) -> None:
    """Not by importing the files in which its row has failed since."""
    desk.service.on_create["ferns"] = [ANSWER_LOST]
    desk.run(desk.file())
    with open_ledger(load_settings()) as ledger:
        word, never = Settlement(Decision.WRITE_OFF, "refunded", "A. Weaver"), timedelta(0)
        assert not asyncio.run(settle(ledger, unsettled(ledger, never), word, limit=never))
    before = desk.service.bought
    desk.run(desk.file())
    for name in ("failures.csv", "results.csv"):
        desk.run(desk.folder / "results" / "spring" / "latest" / name)
        assert desk.service.bought == before
    desk._through(Run(run_spec(RetryRequest())))
    assert desk.service.bought == [*before, "ferns", "F-1"]
