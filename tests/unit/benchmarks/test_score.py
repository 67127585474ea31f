"""The score of a measurement is read rightly from the service's record: a wrong measure makes every figure wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.__main__ import score
from tests.hostile.record import Record


def test_score(tmp_path: Path) -> None:
    """Lag runs from a job's end to the first poll that sees it; the longest row bounds, or the work of the window."""
    record = Record(tmp_path / "record")
    pattern, product = {"prompt": "herons"}, {"patternId": "pat", "categoryId": "mug", "selections": {}}
    for job, at, ends, operation, body in (
        ("1", 100, 110, "patterns", pattern),
        ("2", 115, 118, "products", product),
    ):
        record.write(
            "created", at, jobId=job, requestId=job, operation=f"{operation}/create", body=body, fate=None
        )
        for polled in (at + 1, ends + 2.5, ends + 4):
            if polled > ends and polled < ends + 3:
                record.write("ended", ends, jobId=job, status="succeeded", resultId="pat")
            record.write(
                "request", polled, operation="jobs/get", jobId=job, requestId=None, status=200, fault=None, rules=[]
            )  # fmt: skip
    record.close()
    found = score(record.path, 100)
    assert (found["jobs"], found["unseen"], found["requests"]) == (2, 0, {"jobs/get": 6})
    assert (found["span"], found["shortest"]) == (20.5, pytest.approx(13.0))
    assert score(record.path, 1)["shortest"] == pytest.approx(13.0)
    assert found["kinds"]["pattern"] == {"jobs": 1, "polls_mean": 3.0, "lag_median": 2.5, "lag_p95": 2.5}
