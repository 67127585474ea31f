"""What a part of a spread run is assigned: its rows, and its share of its run's window and rates.

It is in the ledger, so that nothing of it has to be a parameter, and every worker reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import BaseModel, TypeAdapter

from patternmill.engine.options import FailureLimit, RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.planning.partition import shares
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.planning.unstated import UNSTATED, Unstated
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings, load_settings

_OPTIONS = TypeAdapter(RunOptions)


class _Terms(BaseModel):
    """Settings that a part has from its run, not from its worker's environment."""

    create_timeout: timedelta
    in_doubt_limit: timedelta
    job_timeout: timedelta
    #: Its share of them.
    max_in_flight: int
    create_rate: float
    poll_rate: float


@dataclass(frozen=True)
class Assignment:
    """One part, as its process finds it in the ledger."""

    record: RunRecord
    number: int
    positions: tuple[int, ...]
    #: Those of them that a person retries.
    retried: frozenset[int]
    settings: Settings
    options: RunOptions
    #: Of all parts together.
    failure_limit: FailureLimit
    unstated: Unstated = UNSTATED


def assignments(spec: RunSpec, plan: Plan, parts: Sequence[Sequence[PlannedRow]]) -> list[str]:
    """As JSON, in the order of the parts' numbers."""
    windows = shares(spec.options.max_in_flight, len(parts))
    return [
        json.dumps(
            {
                "options": _OPTIONS.dump_python(
                    replace(spec.options, max_in_flight=window, parts=len(parts)), mode="json"
                ),
                "rows": [row.position for row in part],
                "retried": [row.position for row in part if _is_retried(plan, row)],
                "settings": _terms(spec.settings, window, len(parts)).model_dump(mode="json"),
                "unstated": spec.unstated.model_dump(mode="json"),
            }
        )
        for part, window in zip(parts, windows, strict=True)
    ]


def _terms(settings: Settings, window: int, parts: int) -> _Terms:
    return _Terms(
        create_timeout=settings.create_timeout,
        in_doubt_limit=settings.in_doubt_limit,
        job_timeout=settings.job_timeout,
        max_in_flight=window,
        create_rate=settings.create_rate / parts,
        poll_rate=settings.poll_rate / parts,
    )


def _is_retried(plan: Plan, row: PlannedRow) -> bool:
    return any(plan.items[key].reason is Reason.RETRIED for key in row.keys)


def assignment(run_id: RunId, number: int, environment: str) -> Assignment:
    """Read a part from the ledger that this process's settings name. Raises ConfigurationError."""
    settings = load_settings(environment=environment)
    with ledger_if_any(settings) as ledger:
        record = ledger.run(run_id) if ledger is not None else None
        work = ledger.part_work(run_id, number) if ledger is not None else None
    if record is None or work is None or record.environment != environment:
        raise _unknown(run_id, number)
    assigned = json.loads(work)
    terms = _Terms.model_validate(assigned["settings"])
    options = _OPTIONS.validate_python(assigned["options"])
    return Assignment(
        record,
        number,
        tuple(assigned["rows"]),
        frozenset(assigned["retried"]),
        settings.model_copy(update=dict(terms)),
        # A share of all items cannot be judged by those of one part.
        replace(options, failure_limit=FailureLimit()),
        options.failure_limit,
        Unstated.model_validate(assigned.get("unstated", {})),
    )


def require_same_service(assigned: Assignment) -> None:
    """Raise ConfigurationError when this process would ask another service than its run began with."""
    settings, record = assigned.settings, assigned.record
    here = "" if settings.embedded else settings.studio_url or ""
    if _service(settings, here) != _service(settings, record.studio_url):
        raise ConfigurationError(
            f"Run {record.run_id} asks {record.studio_url or 'an embedded studio'}, "
            f"this worker {here or 'an embedded studio'}.",
            remedy="Set the same PATTERNMILL_STUDIO_URL for all workers. Nothing was requested by this one.",
        )


def _service(settings: Settings, url: str) -> str:
    return settings.service_at(url) if url else ""


def _unknown(run_id: RunId, number: int) -> ConfigurationError:
    return ConfigurationError(
        f"The ledger of this worker knows no part {number} of a run {run_id}.",
        remedy="Set the same PATTERNMILL_LEDGER_URL for all workers. Nothing was requested by this one.",
    )
