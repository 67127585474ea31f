"""What a run's page says is to be done next: only what does something."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from patternmill.runs.results_files import Results
from patternmill.states import RowStatus
from tasks.run_page import next_steps


@pytest.mark.parametrize(
    ("rows", "to_retry", "retry", "correct"),
    [
        ({RowStatus.SUCCEEDED: 3}, {}, False, False),
        ({RowStatus.REFUSED: 2}, {}, False, True),
        ({RowStatus.WAITING: 2}, {}, False, False),
        ({RowStatus.HELD: 2}, {}, False, False),
        ({RowStatus.TO_CHOOSE: 2, RowStatus.DISCARDED: 1}, {}, False, False),
        ({RowStatus.FAILED: 2}, {RowStatus.FAILED: 1}, True, True),
        ({RowStatus.IN_DOUBT: 2}, {RowStatus.IN_DOUBT: 2}, True, False),
    ],
)
def test_next_steps_do_something(
    rows: Mapping[RowStatus, int], to_retry: Mapping[RowStatus, int], *, retry: bool, correct: bool
) -> None:
    ending = cast(Any, SimpleNamespace(rows=rows, record=SimpleNamespace(catalog="spring")))
    text = " ".join(next_steps(ending, Results(Path("results"), (), cast(Any, None), (), to_retry)))
    assert ("retry-failed" in text, "failures.csv" in text) == (retry, correct)
    assert ("2 rows to choose: patternmill look spring" in text) is (RowStatus.TO_CHOOSE in rows)
