"""What the verbs that make things pass on of what a person names: confirmations, environments, services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli import launcher, main
from patternmill.runs.command import Command
from patternmill.runs.request import RefreshRequest
from tests.unit.cli.ledgers import HERON, Past


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


def test_parameters_have_no_secrets_of_an_address() -> None:
    """Prefect stores them in clear; nor does a request show them."""
    request = RefreshRequest(source="https://ann:canary@example.com/spring.csv?sig=canary", catalog="spring")
    parameters = Command(request).parameters
    assert parameters["source"] == "https://example.com/spring.csv"
    assert "canary" not in f"{parameters} {request!r}"


def test_catalog_and_what_is_retired(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh takes the catalog that an import of its file has made; an import retires nothing without --whole."""
    specs: list[Any] = []
    monkeypatch.setattr(
        launcher, "run_request", lambda request, spec, approve, **more: specs.append(spec) or 0
    )
    past.begin(HERON).end()
    Path("Spring.csv").write_text("sku,prompt,category\nH-1,herons,Mug\n")
    for words in (["refresh", "Spring.csv"], ["import", "Spring.csv"], ["import", "Spring.csv", "--whole"]):
        assert main.run(words) == 0
    assert [spec.catalog for spec in specs] == ["spring"] * 3
    assert [spec.retire_limit and spec.retire_limit.count for spec in specs] == [20, None, 20]
