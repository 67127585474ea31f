"""What a part of a spread run is assigned: its rows, and its share of the window, the rates and the terms of its run.

It goes through the ledger, so that nothing of it has to be a parameter, and every worker reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from patternmill.engine.options import FailureLimit, RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, has_ledger, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.partition import shares
from patternmill.planning.plan import Plan, PlannedRow, Reason
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings, load_settings

#: Settings of the wire that hold for a run as its coordinator has them, whatever a worker's environment says.
_TERMS = {"create_timeout", "in_doubt_limit", "job_timeout"}
_OPTIONS = TypeAdapter(RunOptions)


@dataclass(frozen=True)
class Assignment:
    """One part, as its process finds it in the ledger."""

    record: RunRecord
    number: int
    positions: tuple[int, ...]
    #: Those of them whose failed items a person asked for again.
    retried: frozenset[int]
    settings: Settings
    options: RunOptions
    #: Holds over all parts together.
    failure_limit: FailureLimit


def assignments(spec: RunSpec, plan: Plan, parts: Sequence[Sequence[PlannedRow]]) -> list[str]:
    """What each part is assigned, in the order of their numbers, as JSON."""
    settings, options = spec.settings, spec.options
    windows = shares(options.max_in_flight, len(parts))
    terms = settings.model_dump(mode="json", include=_TERMS)
    return [
        json.dumps(
            {
                "options": _OPTIONS.dump_python(replace(options, max_in_flight=window), mode="json"),
                "rows": [row.position for row in part],
                "retried": [row.position for row in part if _is_retried(plan, row)],
                "settings": terms
                | {
                    "max_in_flight": window,
                    "create_rate": settings.create_rate / len(parts),
                    "poll_rate": settings.poll_rate / len(parts),
                },
            }
        )
        for part, window in zip(parts, windows, strict=True)
    ]


def _is_retried(plan: Plan, row: PlannedRow) -> bool:
    assert row.pattern is not None and row.product is not None, "a row to do has items"
    return Reason.RETRIED in (plan.patterns[row.pattern].reason, plan.products[row.product].reason)


def assignment(run_id: RunId, number: int, environment: str) -> Assignment:
    """Read a part from the ledger that this process's settings name. Raises ConfigurationError."""
    settings = load_settings(environment=environment)
    if not has_ledger(settings):
        raise _unknown(run_id, number)
    with open_ledger(settings) as ledger:
        return _read(ledger, run_id, number)


def _read(ledger: Ledger, run_id: RunId, number: int) -> Assignment:
    record, work = ledger.run(run_id), ledger.part_work(run_id, number)
    if record is None or work is None:
        raise _unknown(run_id, number)
    assigned = json.loads(work)
    settings = load_settings(environment=record.environment, **assigned["settings"])
    options = _OPTIONS.validate_python(assigned["options"])
    return Assignment(
        record,
        number,
        tuple(assigned["rows"]),
        frozenset(assigned["retried"]),
        settings,
        # What a part alone has met says nothing of a share of all.
        replace(options, failure_limit=FailureLimit()),
        options.failure_limit,
    )


def require_same_service(assigned: Assignment) -> None:
    """Raise ConfigurationError when this process would ask another service than its run began with."""
    settings, record = assigned.settings, assigned.record
    here = "" if settings.embedded else settings.studio_url or ""
    if _service(settings, here) != _service(settings, record.studio_url):
        raise ConfigurationError(
            f"Run {record.run_id} asks {record.studio_url or 'an embedded studio'}, "
            f"this worker {here or 'an embedded studio'}.",
            remedy="Give all workers the same PATTERNMILL_STUDIO_URL. Nothing was asked for by this one.",
        )


def _service(settings: Settings, url: str) -> str:
    """Empty for an embedded studio."""
    return settings.service_at(url) if url else ""


def with_address(assigned: Assignment, settings: Settings) -> Assignment:
    """The assignment, with the service's address and key looked up."""
    return replace(assigned, settings=settings)


def _unknown(run_id: RunId, number: int) -> ConfigurationError:
    return ConfigurationError(
        f"The ledger of this worker knows no part {number} of a run {run_id}.",
        remedy="Give all workers the same PATTERNMILL_LEDGER_URL. Nothing was asked for by this one.",
    )
