"""Records a task run in the Prefect UI after the fact, with the times and the end that it had."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid5

from prefect import State
from prefect.client.schemas.objects import StateType
from prefect.events import Event, RelatedResource, Resource

_NAMESPACE = UUID("c4a1f0c5-1f0e-5c0e-9b44-61f1d2c0a7be")


@dataclass(frozen=True)
class TaskRunRecord:
    """A task run as it should be recorded; `end` is None while it runs."""

    id: UUID
    name: str
    #: What its runs have in common, as Prefect has it.
    task_key: str
    began: datetime
    #: None while it runs; then with its state, which may be dated later.
    ended: datetime | None = None
    end: State[Any] | None = None
    #: The nested flow run that it is in; None: in the run's own.
    flow_run_name: str | None = None


def task_run_id(*names: str) -> UUID:
    """The same for the same names, so that recording twice changes nothing."""
    return uuid5(_NAMESPACE, "\n".join(names))


def ending_event(record: TaskRunRecord, flow_run_id: UUID) -> Event:
    """What Prefect emits at the end of a task run of this flow run: enough for all of it, its times included."""
    assert record.end is not None, "it has ended"
    return _event(record, record.end, flow_run_id)


def running_event(record: TaskRunRecord, flow_run_id: UUID) -> Event:
    """That it runs, under the name that it has now."""
    running = State[Any](type=StateType.RUNNING, name="Running", timestamp=datetime.now(UTC))
    return _event(record, running, flow_run_id)


def _event(record: TaskRunRecord, state: State[Any], flow_run_id: UUID) -> Event:
    """In the form that Prefect's server reads in the events of its own task engine.

    Not validated, as nothing in it comes from elsewhere: that takes most of the time of making one.
    """
    name, type_ = state.name or state.type.value, state.type.value
    return Event.model_construct(
        id=uuid5(record.id, f"{name}\n{record.name}\n{state.timestamp.isoformat()}"),
        occurred=cast(Any, state.timestamp),
        event=f"prefect.task-run.{name}",
        resource=Resource.model_construct(
            {
                "prefect.resource.id": f"prefect.task-run.{record.id}",
                "prefect.resource.name": record.name,
                "prefect.run-count": "1",
                "prefect.state-message": state.message or "",
                "prefect.state-name": name,
                "prefect.state-timestamp": state.timestamp.isoformat(),
                "prefect.state-type": type_,
                "prefect.orchestration": "client",
            }
        ),
        related=[
            RelatedResource.model_construct(
                {
                    "prefect.resource.id": f"prefect.flow-run.{flow_run_id}",
                    "prefect.resource.role": "flow-run",
                }
            )
        ],
        payload={
            "intended": {"from": None, "to": type_},
            "initial_state": None,
            "validated_state": {
                "type": type_,
                "name": name,
                "message": state.message,
                "state_details": {},
                "data": None,
            },
            "task_run": _task_run(record, state),
        },
    )


def _task_run(record: TaskRunRecord, state: State[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": record.name,
        "task_key": record.task_key,
        "dynamic_key": record.id.hex,
        "empirical_policy": {"max_retries": 0, "retry_delay_seconds": 0.0},
        "tags": [],
        "task_inputs": {},
        "run_count": 1,
        "flow_run_run_count": 1,
        "expected_start_time": record.began.isoformat(),
        "start_time": record.began.isoformat(),
    }
    if state.is_final() and record.ended is not None:
        found["end_time"] = record.ended.isoformat()
        found["total_run_time"] = (record.ended - record.began).total_seconds()
    return found
