"""The events by which task runs are recorded: made without validation, and valid all the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from prefect import State
from prefect.client.schemas.objects import StateType
from prefect.events import Event

from prefect_host.task_runs import TaskRunRecord, ending_event, running_event, task_run_id

BEGAN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ENDED = BEGAN + timedelta(seconds=75)
FAILED = State[Any](
    type=StateType.FAILED, name="Failed", message="Zerschlagener Krug … \u00e9", timestamp=ENDED
)


@pytest.mark.parametrize("end", [FAILED, State[Any](type=StateType.COMPLETED, timestamp=ENDED)])
def test_events_are_what_validation_would_make_of_them(end: State[Any]) -> None:
    record = TaskRunRecord(task_run_id("run", "item"), "product \u00b7 A-1", "make_item", BEGAN, ENDED, end)
    for event in (running_event(record, uuid4()), ending_event(record, uuid4())):
        text = event.model_dump_json()
        validated = Event.model_validate_json(text)
        assert validated == event
        assert validated.model_dump_json() == text
