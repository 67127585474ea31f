"""What the verbs that make things pass on of what a person names: confirmations, environments, services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli import launcher, main, watched_run
from patternmill.runs.request import RefreshRequest
from patternmill.states import AttemptState
from tests.unit.cli.ledgers import HERON, HERON_MUG, Past

ROWS = "sku,prompt,category,status,error_code\nH-1,blue herons,Mug,failed,product_failed\n"


@pytest.fixture
def requests(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be run."""
    found: list[Any] = []
    monkeypatch.setattr(
        launcher, "run_request", lambda request, spec, approve, **more: found.append(request) or 0
    )
    return found


@pytest.mark.parametrize(
    ("words", "confirmed"), [([], None), (["duplicates", "production"], "duplicates,production")]
)
def test_several_confirmations(requests: list[Any], words: list[str], confirmed: str | None) -> None:
    """One option each, in any order; the flow gets them as one value of its form."""
    options = [part for word in words for part in ("--confirm", word)]
    for verb in (["import", "spring.csv"], ["refresh", "spring.csv", "--catalog", "spring"]):
        assert main.run([*verb, *options]) == 0
    assert [request.confirm for request in requests] == [confirmed] * 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("import", "x.csv", "--environment", "Pro duction"), "--environment must have lower-case letters"),
        (("retry", "--environment", "Pro duction"), "--environment must have lower-case letters"),
        (("refresh", "x.csv", "--catalog", "../spring"), "--catalog must have letters"),
        # It would buy everything once more.
        (("refresh", "x.csv", "--out", "s3://key:canary@bucket/a"), "--out must be a path, not an address"),
        (("catalog", "spring", "--out", "s3://key:canary@bucket/a"), "must be a path, not an address"),
        (("results", "latest", "--out", "s3://key:canary@bucket/a"), "must be a path, not an address"),
        (("import", "x.csv", "--budget", "much"), "--budget must be an amount, as in 500.00"),
    ],
)
def test_malformed_option_is_refused_in_plain_words(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    """By its option, before a setting is read or a file opened; not by the pattern that it does not match."""
    assert main.run(words) == 2
    shown = capsys.readouterr().err
    assert message in shown and "^" not in shown


def test_parameters_have_no_secrets_of_an_address() -> None:
    """Prefect stores them in clear; nor does a request show them."""
    request = RefreshRequest(source="https://ann:canary@example.com/spring.csv?sig=canary", catalog="spring")
    parameters = watched_run._parameters(request)
    assert parameters["source"] == "https://example.com/spring.csv"
    assert "canary" not in f"{parameters} {request!r}"


def test_check_of_results_is_of_their_environment(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    """The same rows are checked that an import would make."""
    run = past.begin(HERON)
    Path("x.csv").write_text(f"sku,prompt,category,run\nH-1,blue herons,Mug,{run.record.run_id}\n")
    assert main.run(["check", "x.csv", "--environment", "production"]) == 2
    assert "environment staging" in capsys.readouterr().err


def test_check_ignores_the_offer_of_another_service(
    past: Past, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no evidence for this environment's rows."""
    run = past.begin(HERON, HERON_MUG)
    run.attempt(run.pattern("H-1"), AttemptState.INTENDED)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.invalid/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "key")
    Path("spring.csv").write_text("sku,prompt,category\nH-1,blue herons,Mug\n")
    for verb in (["check", "spring.csv"], ["import", "spring.csv", "--plan-only"]):
        assert main.run(verb) == 2
        assert "has asked http://127.0.0.1:9/v1 so far" in capsys.readouterr().err


def test_refresh_takes_the_catalog_of_its_file(
    past: Past, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where an import has made it; else it is named."""
    specs: list[Any] = []
    monkeypatch.setattr(launcher, "run_request", lambda request, spec, approve: specs.append(spec) or 0)
    past.begin(HERON).end()
    Path("Spring.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")
    Path("autumn.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")
    assert main.run(["refresh", "Spring.csv"]) == 0
    assert [spec.catalog for spec in specs] == ["spring"]
    assert main.run(["refresh", "autumn.csv"]) == 2
    assert "There is no catalog 'autumn' in staging yet." in capsys.readouterr().err


def test_whole_import_retires(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[Any] = []
    monkeypatch.setattr(
        launcher, "run_request", lambda request, spec, approve, **more: specs.append(spec) or 0
    )
    Path("spring.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")
    assert main.run(["import", "spring.csv"]) == main.run(["import", "spring.csv", "--whole"]) == 0
    first, whole = specs
    assert first.retire_limit is None
    assert (whole.read_from, whole.retire_limit.count) == ("spring.csv", 20)
