"""Results files that come back: they go on with the catalog, the environment and the edition of their run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import ConfigurationError, InputRefused
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest, RefreshRequest, RetryRequest
from patternmill.runs.retry import select_rows
from patternmill.runs.settlement import Decision, Settlement, settle
from patternmill.runs.spec import import_spec, origin_of, refresh_spec, retry_spec
from patternmill.service.outcomes import Refused
from patternmill.service.studio_api import StudioApi
from patternmill.settings import load_settings
from patternmill.states import Outcome, RowStatus

from .fake_studio import ANSWER_LOST, FakeStudioApi, Service, failed
from .workshop import rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
URLS = '{"staging": "http://127.0.0.1:9/v1", "production": "http://127.0.0.1:10/v1"}'


@dataclass
class Desk:
    """A folder in which commands are given, one after another."""

    folder: Path
    service: Service

    def file(self, name: str = "spring.csv", text: str = FOUR) -> Path:
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def results(self, name: str = "failures.csv", catalog: str = "spring") -> Path:
        return self.folder / "results" / catalog / "latest" / name

    def copy(self, name: str = "failures.csv", to: str = "mended.csv") -> Path:
        return Path(shutil.copyfile(self.results(name), self.folder / to))

    def run(self, source: Path, **asked: Any) -> Pipeline:
        return self._through(Pipeline(import_spec(ImportRequest(file=source, **asked))))

    def refresh(self, source: Path, catalog: str = "spring", **asked: Any) -> Pipeline:
        return self._through(
            Pipeline(refresh_spec(RefreshRequest(source=str(source), catalog=catalog, **asked)))
        )

    def _through(self, work: Pipeline) -> Pipeline:
        async def main() -> Pipeline:
            async with work:
                await work.run_through()
            return work

        return asyncio.run(asyncio.wait_for(main(), 30))


@pytest.fixture
def desk(service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(
        StudioApi, "from_settings", lambda settings: FakeStudioApi(service, settings.max_in_flight)
    )
    monkeypatch.setenv("PATTERNMILL_HOME", str(home))
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT_URLS", URLS)
    monkeypatch.setenv("PATTERNMILL_API_KEYS", json.dumps(dict.fromkeys([*json.loads(URLS), "third"], "key")))
    monkeypatch.setenv("PATTERNMILL_API_KEY", "key")
    for name in ("ENVIRONMENT", "STUDIO_URL", "LEDGER_URL"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, service)


def edition_with_failures(desk: Desk) -> None:
    """The first edition whole, of the second the ferns failed."""
    source = desk.file()
    desk.run(source)
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(source, edition="second")


@pytest.mark.parametrize("name", ["failures.csv", "results.csv"])
@pytest.mark.parametrize("by_refresh", [False, True])
def test_failures_of_an_edition_stay_in_that_edition(desk: Desk, name: str, by_refresh: bool) -> None:
    """The old product is not reported as this edition's, and the edition is not left."""
    edition_with_failures(desk)
    before = len(desk.service.bought)
    work = (desk.refresh if by_refresh else desk.run)(desk.results(name))
    assert work.ended.record.options["edition"] == "second"
    assert desk.service.bought[before:] == ["ferns", "F-1"]


def test_named_edition_wins(desk: Desk) -> None:
    """Another one, or none: what was made without an edition costs nothing."""
    edition_with_failures(desk)
    before = len(desk.service.bought)
    work = desk.run(desk.results(), edition="")
    assert (work.ended.record.options["edition"], work.ended.outcome) == (None, Outcome.COMPLETED)
    assert desk.service.bought[before:] == []


@pytest.mark.parametrize("by_refresh", [False, True])
def test_copy_without_a_manifest_keeps_the_edition(desk: Desk, by_refresh: bool) -> None:
    """It does not name its edition."""
    edition_with_failures(desk)
    run, copy = (desk.refresh if by_refresh else desk.run), desk.copy()
    with pytest.raises(InputRefused, match=r"'second'.*--edition second.*--edition ''") as caught:
        run(copy, catalog="spring", environment="staging")
    assert caught.value.code == "edition_unknown"
    before = len(desk.service.bought)
    ended = run(copy, catalog="spring", environment="staging", edition="").ended
    assert ended.rows == {RowStatus.SUCCEEDED: 1}
    assert desk.service.bought[before:] == []


def test_copy_with_its_edition_named(desk: Desk) -> None:
    edition_with_failures(desk)
    before = len(desk.service.bought)
    desk.run(desk.copy(), catalog="spring", edition="second")
    assert desk.service.bought[before:] == ["ferns", "F-1"]


def test_older_results_file_keeps_the_later_edition(desk: Desk) -> None:
    """Its manifest names its own edition, none, which the catalog has left behind."""
    source = desk.file()
    desk.service.on_follow["ferns"] = [failed(), failed()]
    older = desk.run(source).published.path("failures.csv")
    desk.run(source, edition="second")
    with pytest.raises(InputRefused, match="edition 'second'"):
        desk.run(older)
    assert desk.run(older, edition="second").ended.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("by_refresh", [False, True])
def test_failures_are_made_in_the_environment_of_their_run(desk: Desk, by_refresh: bool) -> None:
    """Production's failures are not bought in staging, and a message says so."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production")
    failures = desk.results()
    assert import_spec(ImportRequest(file=failures)).settings.environment == "production"
    assert (
        refresh_spec(RefreshRequest(source=str(failures), catalog="spring")).settings.environment
        == "production"
    )
    work = (desk.refresh if by_refresh else desk.run)(failures)
    assert work.ended.record.environment == "production"
    assert work.spec.settings.studio_url == "http://127.0.0.1:10/v1"
    assert any("environment production" in note for note in work.checked.notes)


def test_each_environment_keeps_a_link_to_its_latest_results(desk: Desk) -> None:
    """A try in staging does not hide production's results."""
    production = desk.run(desk.file(), environment="production").ended.record.run_id
    staging = desk.run(desk.file(), environment="staging").ended.record.run_id
    folder = desk.folder / "results" / "spring"
    assert (folder / "latest").resolve().name == (folder / "latest-staging").resolve().name == staging
    assert (folder / "latest-production").resolve().name == production


def test_environment_of_the_settings_is_no_choice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """PATTERNMILL_ENVIRONMENT holds for every file, not for this one."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production")
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT", "staging")
    assert desk.run(desk.results()).ended.record.environment == "production"


@pytest.mark.parametrize("by_refresh", [False, True])
def test_other_environment_or_catalog_than_the_manifests_is_refused(desk: Desk, by_refresh: bool) -> None:
    """A results file of production is not bought elsewhere."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production")
    run, before = (desk.refresh if by_refresh else desk.run), len(desk.service.creates)
    with pytest.raises(InputRefused, match=r"environment production.*'staging' is named"):
        run(desk.results(), environment="staging")
    with pytest.raises(InputRefused, match=r"catalog spring.*'summer' is named"):
        run(desk.results(), catalog="summer")
    with pytest.raises(InputRefused, match="'staging' is named"):
        import_spec(ImportRequest(file=desk.results(), environment="staging"))
    assert len(desk.service.creates) == before


def test_copy_of_another_environment_is_refused_until_one_is_named(desk: Desk) -> None:
    """The catalog's name does not imply the environment."""
    desk.service.on_follow["ferns"] = [failed() for _ in range(4)]
    desk.run(desk.file(), environment="production")
    copy, before = desk.copy(), len(desk.service.creates)
    with pytest.raises(InputRefused, match=r"has runs in production.*--environment"):
        desk.run(copy, catalog="spring")
    assert len(desk.service.creates) == before
    assert desk.run(copy, catalog="spring", environment="production").ended.record.environment == "production"


def test_own_file_goes_to_the_requested_scope(desk: Desk) -> None:
    """Also from a folder of results: only a file with the result columns is a results file."""
    desk.run(desk.file(), environment="production", out=desk.folder)
    work = desk.run(desk.file("autumn.csv"), catalog="autumn", environment="staging", out=desk.folder / "out")
    assert (work.spec.catalog, work.spec.settings.environment) == ("autumn", "staging")


def test_unreadable_manifest_is_ignored(desk: Desk) -> None:
    """With the catalog named; the ledger decides then."""
    edition_with_failures(desk)
    failures = desk.results()
    (failures.resolve().parent / "manifest.json").write_text("{}")
    with pytest.raises(InputRefused, match="edition 'second'"):
        desk.run(failures, catalog="spring")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_results_file_is_recognised_in_every_encoding(desk: Desk, encoding: str) -> None:
    """As spreadsheets save it, with blank lines before the header too."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production")
    failures = desk.results()
    text = failures.read_text(encoding="utf-8-sig")
    failures.write_bytes(f"\r\n{text}".encode(encoding))
    spec = import_spec(ImportRequest(file=failures))
    assert (spec.catalog, spec.settings.environment) == ("spring", "production")


def test_pipe_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That would wait for a writer, before the refusal of pipes could be said."""
    os.mkfifo(tmp_path / "spring.csv")
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("opened"))
    assert origin_of(tmp_path / "spring.csv") is None


def test_other_service_under_the_same_environment_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its offer is read: products of the one are not reported as the other's."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT_URLS")
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    desk.run(desk.file())
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")

    async def offer(self: FakeStudioApi) -> Any:
        raise AssertionError("the key was sent")

    with monkeypatch.context() as context:
        context.setattr(FakeStudioApi, "offer", offer)
        with pytest.raises(ConfigurationError, match=r"127.0.0.1:9/v1 so far.*studio.example/v1") as caught:
            desk.run(desk.file())
    assert "PATTERNMILL_SAME_SERVICE" in caught.value.remedy
    both = '["http://127.0.0.1:9/v1", "https://studio.example/v1"]'
    assert f"PATTERNMILL_SAME_SERVICE='{both}'" in caught.value.remedy
    monkeypatch.setenv("PATTERNMILL_SAME_SERVICE", both)
    assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED
    with pytest.raises(ConfigurationError, match="belongs to the environment 'staging'"):
        desk.run(desk.file(), environment="production")


def test_other_name_of_the_same_service(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It continues in its own environment, and is refused under another."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT_URLS")
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    desk.run(desk.file())
    before = len(desk.service.bought)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://localhost:9/v1/")
    assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED
    with pytest.raises(ConfigurationError, match="belongs to the environment 'staging'"):
        desk.run(desk.file(), environment="production")
    assert len(desk.service.bought) == before


def test_environments_that_shared_a_service_before_are_accepted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each keeps its products; an older version took two names of one service for two."""
    for environment in ("staging", "production"):
        desk.run(desk.file(), environment=environment)
    with open_ledger(load_settings(), must_exist=True) as ledger, ledger.transaction():
        ledger.database.execute("UPDATE runs SET record = REPLACE(record, '127.0.0.1:10', 'localhost:9')")
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT_URLS")
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://localhost:9/v1")
    for environment in ("staging", "production"):
        desk.run(desk.file(), environment=environment)
    with pytest.raises(ConfigurationError, match="belongs to the environment"):
        desk.run(desk.file(), environment="third")


def test_address_that_accepted_nothing_binds_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped first address refused every request."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT_URLS")
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:10/v1")
    for prompt in ("herons", "ferns", "owls"):
        desk.service.on_create[prompt] = [Refused("invalid", "no")]
    desk.run(desk.file())
    assert desk.service.bought == []
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    desk.run(desk.file())


def test_embedded_studio_binds_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command has one on another port."""
    monkeypatch.delenv("PATTERNMILL_ENVIRONMENT_URLS")
    monkeypatch.setenv("PATTERNMILL_EMBEDDED", "true")
    for port in (9, 10):
        monkeypatch.setenv("PATTERNMILL_STUDIO_URL", f"http://127.0.0.1:{port}/v1")
        assert desk.run(desk.file()).ended.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("name", ["failures.csv", "results.csv"])
def test_older_file_restores_no_old_content(desk: Desk, name: str) -> None:
    """A row corrected since is refused as superseded; unchanged rows are tried again."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.service.on_follow["owls"] = [failed(), failed()]
    first = desk.run(desk.file()).published.out
    desk.run(desk.file("better.csv", FOUR.replace("ferns", "tall ferns")), catalog="spring")
    bought = len(desk.service.bought)
    work = desk.run(first / name)
    found = {row.sku: row for row in work.checked.problems}
    assert found["F-1"].code.value == "superseded"
    assert "asked for it with other content" in found["F-1"].message
    assert desk.service.bought[bought:] == ["owls", "O-1"]
    with open_ledger(load_settings(), must_exist=True) as ledger:
        has = {row.sku: row.content.prompt for row in ledger.catalog_rows("staging", "spring")}
    assert has == {"H-1": "herons", "H-2": "herons", "F-1": "tall ferns", "O-1": "owls"}


def test_edited_row_of_an_older_file_is_a_new_request(desk: Desk) -> None:
    """It is to change once more."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    first = desk.run(desk.file()).published.out
    desk.run(desk.file("better.csv", FOUR.replace("ferns", "tall ferns")), catalog="spring")
    failures = first / "failures.csv"
    failures.write_bytes(failures.read_bytes().replace(b"ferns", b"small ferns"))
    assert desk.run(failures).ended.outcome is Outcome.COMPLETED
    assert desk.service.bought[-2:] == ["small ferns", "F-1"]


@pytest.mark.parametrize("by_refresh", [False, True])
def test_failures_without_result_columns_keep_their_scope(desk: Desk, by_refresh: bool) -> None:
    """Whoever corrects a file may delete foreign columns."""
    desk.service.on_follow["ferns"] = [failed(), failed()]
    desk.run(desk.file(), environment="production", edition="second")
    failures = desk.results()
    header, line = failures.read_text("utf-8-sig").splitlines()[:2]
    width = header.split(",").index("status")
    failures.write_text("\n".join(",".join(text.split(",")[:width]) for text in (header, line)) + "\n")
    work = (desk.refresh if by_refresh else desk.run)(failures)
    assert (work.ended.record.environment, work.ended.record.options["edition"]) == ("production", "second")


def test_what_a_person_wrote_off_is_bought_again_by_a_retry_alone(desk: Desk) -> None:
    """Not by importing the files in which its row has failed since."""
    desk.service.on_create["ferns"] = [ANSWER_LOST]
    desk.run(desk.file())
    with open_ledger(load_settings()) as ledger:
        [request_id] = [
            request
            for (request,) in ledger.database.rows("SELECT request_id FROM attempts WHERE state = 'intended'")
        ]
        word = Settlement(request_id, Decision.WRITE_OFF, "refunded", "A. Weaver")
        asyncio.run(settle(ledger, word, limit=timedelta(0)))
    before = desk.service.bought
    desk.run(desk.file())
    for name in ("failures.csv", "results.csv"):
        desk.run(desk.results(name))
        assert desk.service.bought == before
    with open_ledger(load_settings()) as ledger:
        chosen = select_rows(ledger, RetryRequest())
    desk._through(Pipeline(retry_spec(RetryRequest(), chosen, load_settings())))
    assert desk.service.bought == [*before, "ferns", "F-1"]
