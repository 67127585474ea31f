"""The last report of a service is kept in the home, and it is clear when that is not possible."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from patternmill.conformance import watch
from patternmill.conformance.conformance_report import ConformanceReport
from patternmill.errors import ConfigurationError
from patternmill.settings import load_settings

URL = "http://127.0.0.1:9/v1"


def test_full_disk_says_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, chunks: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watch, "write_whole", full)
    settings = load_settings(home=tmp_path, studio_url=URL, api_key="k")
    report = ConformanceReport(
        url=URL,
        checked_at=datetime.now(UTC),
        version="1",
        spend=0,
        feedback=False,
        requests=0,
        bought_at_most=0,
        lines=(),
    )
    with pytest.raises(ConfigurationError, match="No space left on device"):
        watch.compare_with_last(settings, report)
