"""The command, in this process, with a home of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import main
from patternmill.conformance.check_results import CheckOutcome
from patternmill.conformance.conformance_report import CheckLine, ConformanceReport

Check = Callable[..., "Checked"]


@dataclass(frozen=True)
class Checked:
    """How the command ended. `report` is None when the service could not be asked."""

    code: int
    printed: str
    complaint: str
    report: ConformanceReport | None

    @property
    def lines(self) -> dict[str, CheckLine]:
        assert self.report is not None, self.complaint
        return {line.check: line for line in self.report.lines}

    @property
    def deviations(self) -> set[str]:
        return {name for name, line in self.lines.items() if line.outcome is CheckOutcome.DEVIATES}


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Check a service as a person does, only faster."""
    monkeypatch.chdir(tmp_path)
    for name in ("ENVIRONMENT", "STUDIO_URL", "API_KEYS", "ENVIRONMENT_URLS"):
        monkeypatch.delenv(f"PATTERNMILL_{name}", raising=False)
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "home"))

    def run(url: str, key: str, *options: str, **settings: Any) -> Checked:
        monkeypatch.setenv("PATTERNMILL_API_KEY", key)
        for name, value in settings.items():
            monkeypatch.setenv(f"PATTERNMILL_{name.upper()}", str(value))
        file = tmp_path / "report.json"
        file.unlink(missing_ok=True)
        code = main.run(["conformance", url, "--rate", "100", "--json", str(file), *options])
        captured = capsys.readouterr()
        report = ConformanceReport(**json.loads(file.read_text())) if file.exists() else None
        return Checked(code, captured.out, captured.err, report)

    return run
