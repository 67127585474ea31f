"""Outcomes as Prefect states: the name is the outcome, the message its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prefect import State
from prefect.client.schemas.objects import StateType
from prefect.states import Cancelled, Completed, Failed

from patternmill.engine.engine import Engine
from patternmill.engine.groups import Group
from patternmill.errors import RowFailed
from patternmill.ledger.catalogs import counts_of
from patternmill.money import sums
from patternmill.planning.problems import OF_A_WORD, RowCode
from patternmill.runs.preview import counts_line
from patternmill.runs.run import RunEnding
from patternmill.states import Outcome, RowStatus
from patternmill.tables.totals import Cause
from patternmill.text import counted, joined, plain, plural
from tasks.markup import line

#: A run that a limit, another run or a person stopped has neither succeeded nor failed. One with failed rows counts as
#: failed, as Prefect's own flows with failed tasks do: lists and filters go by the type, automations by the name.
_TYPES = dict.fromkeys(Outcome, StateType.CANCELLED) | {
    Outcome.COMPLETED: StateType.COMPLETED,
    Outcome.COMPLETED_WITH_FAILURES: StateType.FAILED,
    Outcome.FAILED: StateType.FAILED,
}
#: Codes of rows that were refused before anything was asked of the service.
_OF_A_ROW = frozenset(RowCode)


def state_of(outcome: Outcome, message: str) -> State[Any]:
    """Return the state that is named by an outcome."""
    return State(type=_TYPES[outcome], name=outcome.value, message=line(message))


def group_state(engine: Engine, group: Group) -> State[Any]:
    """Return the state of a group that was driven: why its row failed, of several the causes, or why it was halted."""
    made, failures = engine.made(group), engine.failures(group)
    parts = [f"{made:,} of {plural(len(group.rows), 'product')}"]
    if len(failures) == 1:
        ((row, failed),) = failures
        parts.append(f"{plain(row.sku)}: {failure_message(failed)}")
    elif failures:
        causes = Counter(failed.code for _, failed in failures)
        parts.append(", ".join(f"{count:,} {code}" for code, count in causes.most_common()))
    reason = engine.halt.reason or engine.halt.kept_purchase
    unfinished = len(group.rows) - made - len(failures)
    if unfinished and reason is not None:
        parts.append(reason.message)
    message = line(sentences(*parts))
    if failures:
        return Failed(message=message)
    return Cancelled(name="NotStarted", message=message) if unfinished else Completed(message=message)


def failure_message(failed: RowFailed) -> str:
    """Return the error and its remedy, with the job and request that support needs to know."""
    names = {"job": failed.job_id, "request": failed.request_id}
    named = ", ".join(f"{kind} {name}" for kind, name in names.items() if name)
    return f"{failed.code}: {joined(failed.message, failed.remedy)}" + (f" ({named})" if named else "")


def ending_message(ending: RunEnding, causes: Sequence[Cause]) -> str:
    """Say what a refresh found, counts that add up to the rows, money, the reason if there is one, and causes.

    Notifications have it: the first cause is a failure that was paid for, or may have been; then come words that nobody
    knows, as an unattended run has nobody to ask what one means.
    """
    changes = counts_of(ending.record)
    parts = [counts_line(changes)] if changes is not None else []
    parts.append(counts_message(ending.rows))
    if spent := sums(ending.spent.amounts):
        parts.append(f"{spent} spent")
    if ending.record.reason:
        parts.append(ending.record.reason)
    asked_for = [cause for cause in causes if cause.code not in _OF_A_ROW]
    words = [cause for cause in causes if cause.code in OF_A_WORD]
    parts += [f"{cause.count:,} × {plain(cause.message, 120)}" for cause in (*asked_for[:1], *words[:2])]
    return sentences(*parts)


def sentences(*parts: str) -> str:
    """Join parts of a message, some of which end with a full stop."""
    return ". ".join([*(part.removesuffix(".") for part in parts[:-1]), parts[-1]])


def counts_message(rows: Mapping[RowStatus, int]) -> str:
    """Return `24 rows: 22 succeeded, 2 refused`."""
    by_status = {status.words: rows.get(status, 0) for status in RowStatus}
    return f"{plural(sum(rows.values()), 'row')}: {counted(by_status)}"
