"""`patternmill studio --check`, in this process: against the embedded studio, and against what cannot be asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli import main
from patternmill.conformance.checks import CHECKS
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.certificates import write_certificates
from tests.integration.studio.conftest import KEY, StudioProcess
from tests.integration.studio.conftest import studio as studio


@dataclass(frozen=True)
class Checked:
    """How the command ended: the outcome of each check, and what it printed."""

    code: int
    outcomes: dict[str, str]
    printed: str
    complaint: str


Check = Callable[..., Checked]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    monkeypatch.chdir(tmp_path)
    for name in ("ENVIRONMENT", "PROFILES"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATTERNMILL_REQUEST_TIMEOUT", "PT1S")

    def run(url: str, key: str, *options: str) -> Checked:
        monkeypatch.setenv("PATTERNMILL_STUDIO_URL", url)
        monkeypatch.setenv("PATTERNMILL_API_KEY", key)
        code = main.run(["studio", "--check", url, *options])
        captured = capsys.readouterr()
        words = [line.split() for line in captured.out.splitlines()]
        outcomes = {line[1]: line[0] for line in words if line[1] in CHECKS}
        return Checked(code, outcomes, captured.out, captured.err)

    return run


def made(studio: StudioProcess) -> int:
    with sqlite3.connect(studio.home / "studio.db") as database:
        (count,) = database.execute("select count(*) from job").fetchone()
    return int(count)


def test_embedded_studio_does_what_an_import_relies_on(check: Check, studio: StudioProcess) -> None:
    """For free what is free; then with a pattern, a product, a refinement, and one more pattern."""
    before = made(studio)
    free = check(studio.base_url, KEY)
    assert free.code == 0
    assert set(free.outcomes.values()) == {"ok", "skipped"}
    assert made(studio) == before
    found = check(studio.base_url, KEY, "--spend", "14", "--yes")
    assert found.code == 0
    assert found.outcomes == {name: "ok" for name in CHECKS} | {"refinement-repeat": "noted"}
    assert "repeatable" in found.printed and "at most 4 bought" in found.printed
    assert made(studio) == before + 4
    assert KEY not in free.printed + found.printed


def test_spending_is_confirmed(check: Check, studio: StudioProcess) -> None:
    found = check(studio.base_url, KEY, "--spend", "2")
    assert (found.code, found.outcomes) == (2, {})
    assert "--yes" in found.complaint


def test_wrong_key_ends_with_code_2(check: Check, studio: StudioProcess) -> None:
    found = check(studio.base_url, "not-a-key-of-it")
    assert (found.code, found.outcomes) == (2, {})
    assert "PATTERNMILL_API_KEY" in found.complaint


def test_key_goes_to_its_own_address_alone(
    check: Check, studio: StudioProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    check("http://127.0.0.1:9/v1", KEY)
    assert main.run(["studio", "--check", studio.base_url]) == 2
    assert "no key is sent to it" in capsys.readouterr().err


def test_deviation_ends_with_code_1(check: Check, tmp_path: Path) -> None:
    """An independent service, whose repeats of a create are forgotten; and which has no checkouts."""
    forget = Rule("patterns/create", "forget", {}, repeat=True)
    with Hostile(Plan(rules=(forget,)), tmp_path / "service") as service:
        found = check(service.url, service.key, "--spend", "4", "--yes")
    assert found.code == 1
    assert {name for name, outcome in found.outcomes.items() if outcome == "FAILED"} == {
        "pattern-repeat",
        "checkout",
    }
    assert found.complaint == ""


@pytest.mark.parametrize("fault", ["nobody", "expired", "plain"])
def test_service_that_cannot_be_asked_ends_with_code_2(
    fault: str, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens, its certificate is not valid, or it speaks no TLS."""
    certificates = write_certificates(tmp_path / "certificates", expired=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    certificate = None if fault == "plain" else certificates.service
    with Hostile(Plan(), tmp_path / "service", certificate=certificate) as service:
        url = service.url.replace("http://", "https://") if fault == "plain" else service.url
        if fault == "nobody":
            service.stop()
        found = check(url, service.key)
    assert (found.code, found.outcomes) == (2, {})
    assert "Nothing could be checked" in found.complaint
