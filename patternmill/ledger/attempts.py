"""Items and the attempts at them: intent before the request, job ID and result as they become known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from patternmill.errors import LedgerError
from patternmill.identifiers import ItemKey, RequestId, RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import Attempt, Intent, NewItem, SpendingLimits
from patternmill.ledger.spending import SpendingTable, day_of
from patternmill.processes import boot_id, uptime
from patternmill.states import ATTEMPT_CHANGES, REDIRECTED, REOPENED, WRITTEN_OFF, AttemptState, Stage

ATTEMPT_COLUMNS = (
    "request_id, item_key, attempt, state, body, job_id, result_id, picture_url, "
    "error_code, error, intended_at, accepted_at, ended_at, uptime"
)
#: Seconds by which clocks may differ before an age by them is not believed.
_CLOCK_TOLERANCE = 120.0
#: The latest jobs whose times count.
_MOST_JOBS = 1000


class ItemTable(Tables):
    """What is to be made, and the attempts at each item."""

    def add_items(self, environment: str, catalog: str, items: Iterable[NewItem]) -> None:
        """Items that are known stay as they are."""
        now = self.now()
        self.database.execute_many(
            "INSERT INTO items (key, environment, catalog, stage, sku, pattern_key, content, picked, created_at) "
            "VALUES (:key, :environment, :catalog, :stage, :sku, :pattern_key, :content, :picked, :now) "
            "ON CONFLICT (key) DO NOTHING",
            (
                vars(item)
                | {"environment": environment, "catalog": catalog, "stage": item.stage.value, "now": now}
                | {"picked": json.dumps([vars(line) for line in item.picked]) if item.picked else None}
                for item in items
            ),
        )

    def item(self, key: ItemKey) -> tuple[Stage, Mapping[str, Any]]:
        """The stage of an item on record, and what is bought."""
        ((stage, content),) = self.database.rows(
            "SELECT stage, content FROM items WHERE key = :key", {"key": key}
        )
        return Stage(stage), json.loads(content)

    def attempts_of(self, key: ItemKey, *, bodies: bool = True) -> tuple[Attempt, ...]:
        columns = ATTEMPT_COLUMNS if bodies else ATTEMPT_COLUMNS.replace("body", ":nothing")
        rows = self.database.rows(
            f"SELECT {columns} FROM attempts WHERE item_key = :key ORDER BY attempt",  # noqa: S608
            {"key": key} if bodies else {"key": key, "nothing": b""},
        )
        return tuple(map(attempt_from, rows))

    def pattern_contents(self, key: ItemKey) -> tuple[Mapping[str, Any], ...]:
        """Of the pattern, then of its refinements up to this one."""
        return self._patterns_before(Stage.REFINEMENT, key)

    def _patterns_before(self, stage: str, key: str | None) -> tuple[Mapping[str, Any], ...]:
        """The contents of the patterns that a refinement is built on, the first one first."""
        if stage != Stage.REFINEMENT or key is None:
            return ()
        found = self._row("SELECT stage, pattern_key, content FROM items WHERE key = :key", key=key)
        assert found is not None, "items are recorded after what they are built on"
        return (*self._patterns_before(found[0], found[1]), json.loads(found[2]))


class AttemptTables(SpendingTable, ItemTable):
    """Every attempt at what is to be made."""

    def last_attempts(self, environment: str, catalog: str) -> Iterator[Attempt]:
        """The last attempt at every item of the catalog, without its body."""
        for values in self.database.stream(
            f"SELECT {ATTEMPT_COLUMNS.replace('body', ':nothing')} FROM attempts a "  # noqa: S608
            "JOIN items i ON i.key = a.item_key "
            "WHERE i.environment = :environment AND i.catalog = :catalog AND a.attempt = "
            "(SELECT max(b.attempt) FROM attempts b WHERE b.item_key = a.item_key)",
            {"environment": environment, "catalog": catalog, "nothing": b""},
        ):
            yield attempt_from(values)

    def job_seconds(self, environment: str) -> dict[Stage, list[float]]:
        """How long the latest jobs took, from intent to end; of those alone that the run which began them saw end."""
        rows = self.database.rows(
            "SELECT a.stage, a.ended_at - a.intended_at FROM ("
            "SELECT i.stage, b.request_id, b.run_id, b.state, b.intended_at, b.ended_at FROM attempts b "
            "JOIN items i ON i.key = b.item_key WHERE i.environment = :environment "
            "AND b.state IN ('succeeded', 'failed') AND b.job_id IS NOT NULL "
            "AND coalesce(b.error_code, '') <> :written_off "
            "ORDER BY b.ended_at DESC LIMIT :most) a WHERE EXISTS (SELECT 1 FROM events e "
            "WHERE e.request_id = a.request_id AND e.run_id = a.run_id AND e.kind = a.state)",
            {"environment": environment, "written_off": WRITTEN_OFF, "most": _MOST_JOBS},
        )
        found: dict[Stage, list[float]] = {}
        for stage, seconds in rows:
            found.setdefault(Stage(stage), []).append(max(0.0, seconds))
        return found

    def attempt(self, request_id: RequestId) -> Attempt | None:
        found = self._row(
            f"SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE request_id = :request_id",  # noqa: S608
            request_id=request_id,
        )
        return attempt_from(found) if found else None

    def age_of(self, attempt: Attempt) -> timedelta | None:
        """How long ago its request was intended, by the clock or by the uptime, whichever is longer.

        None when the clock contradicts itself: it is before the intent, or a later event is.
        """
        by_clock = self.now() - attempt.intended_at
        if by_clock < -_CLOCK_TOLERANCE or self._clock_went_back_after(attempt.request_id):
            return None
        return timedelta(seconds=max(0.0, by_clock, _seconds_since(attempt.uptime)))

    def _clock_went_back_after(self, request_id: RequestId) -> bool:
        found = self._row(
            "SELECT 1 FROM events i JOIN events e ON e.seq > i.seq AND e.at < i.at - :tolerance "
            "WHERE i.seq = (SELECT max(seq) FROM events WHERE request_id = :request_id "
            "AND kind IN ('intended', 'settled')) LIMIT 1",
            request_id=request_id,
            tolerance=_CLOCK_TOLERANCE,
        )
        return found is not None

    def accepted_stages(self, environment: str) -> frozenset[Stage]:
        """The stages of which the service has ever accepted a create in this environment."""
        return frozenset(
            stage for stage in Stage if self._has_accepted(environment, "i.stage = :stage", stage=stage.value)
        )

    def accepted_refinements(self, environment: str, operations: Iterable[str]) -> frozenset[str]:
        """Those of the operations of which the service has ever accepted a create in this environment."""
        of_operation = "i.stage = 'refinement' AND i.content LIKE :content"
        return frozenset(
            operation
            for operation in operations
            if self._has_accepted(environment, of_operation, content=f'%"operation":"{operation}"%')
        )

    def _has_accepted(self, environment: str, items: str, **params: str) -> bool:
        found = self._row(
            "SELECT 1 FROM items i JOIN attempts a ON a.item_key = i.key "  # noqa: S608
            f"WHERE i.environment = :environment AND {items} AND a.job_id IS NOT NULL LIMIT 1",
            environment=environment,
            **params,
        )
        return found is not None

    def intend(self, run_id: RunId, environment: str, intent: Intent, limits: SpendingLimits) -> Attempt:
        """Write the intent of a request, and reserve its price; an intent that is known is returned as it is.

        One that was withdrawn or refused made nothing: it is intended again, with the body of now. What was refused by
        a redirect may have been executed all the same, and keeps its bytes. Raises BudgetReached, and then nothing was
        written.
        """
        known = self.attempt(intent.request_id)
        if known is not None and known.state not in REOPENED:
            return known
        intended = Attempt(
            intent.request_id,
            intent.item_key,
            intent.attempt,
            AttemptState.INTENDED,
            intent.body,
            intended_at=self.now(),
            uptime=_uptime(),
        )
        self.reserve(run_id, environment, intent, limits, day_of(intended.intended_at))
        terms: dict[str, Any] = {
            "run_id": run_id,
            "slot": run_id,
            "price": intent.price,
            "approval_id": limits.approval,
            "intended_at": intended.intended_at,
            "uptime": intended.uptime,
        }
        if known is not None:
            if known.error_code != REDIRECTED:
                terms |= {"body": intent.body, "job_id": None, "accepted_at": None}
            self._update("attempts", {"request_id": intent.request_id}, **terms)
            return self.change(run_id, intent.request_id, AttemptState.INTENDED)
        self._insert("attempts", **_identity(intended), **terms)
        self.record_event(run_id, "intended", intent.request_id, at=intended.intended_at)
        return intended

    def request_of_job(
        self, job_id: str, environment: str, immediate: Stage | None = None
    ) -> RequestId | None:
        """The request that has this job. Environments are different services, which may number their jobs alike.

        `immediate`: the stage of an ID that stands for a job, where there is none.
        """
        found = self._row(
            "SELECT a.request_id FROM attempts a JOIN items i ON i.key = a.item_key "
            "WHERE a.job_id = :job_id AND i.environment = :environment AND (i.stage = :immediate "
            "OR :immediate = '' AND i.stage NOT IN ('reference', 'checkout')) LIMIT 1",
            job_id=job_id,
            environment=environment,
            immediate=immediate.value if immediate else "",
        )
        return RequestId(found[0]) if found else None

    def attempts_with_result(self, result_id: str, environment: str, stage: Stage) -> list[Attempt]:
        """Those that a pattern, product or reference of an environment was made for."""
        found = self.database.rows(
            "SELECT a.request_id FROM attempts a JOIN items i ON i.key = a.item_key "
            "WHERE a.result_id = :result_id AND i.stage = :stage AND i.environment = :environment",
            {"result_id": result_id, "stage": stage.value, "environment": environment},
        )
        return [attempt for (name,) in found if (attempt := self.attempt(RequestId(name))) is not None]

    def change(
        self,
        run_id: RunId,
        request_id: RequestId,
        to: AttemptState,
        *,
        job_id: str | None = None,
        result_id: str | None = None,
        picture_url: str | None = None,
        error_code: str | None = None,
        error: str | None = None,
    ) -> Attempt:
        """Move an attempt to its next state, with its job or result. Raises LedgerError on an illegal change."""
        before = self.attempt(request_id)
        if before is None:
            raise LedgerError(f"Request {request_id} is not in the ledger.")
        job, result = job_id or before.job_id, result_id or before.result_id
        if to not in ATTEMPT_CHANGES[before.state]:
            if before.state is to and (before.job_id, before.result_id) == (job, result):
                return before
            raise LedgerError(f"Request {request_id} is {before.state}; it cannot become {to}.")
        if to in REOPENED:
            self.release_reservation(request_id)
        now = self.now()
        learned: dict[str, Any] = {
            "job_id": job,
            "result_id": result_id,
            "picture_url": picture_url or before.picture_url,
            "error_code": error_code,
            "error": error,
            "accepted_at": now if to is AttemptState.ACCEPTED else before.accepted_at,
            "ended_at": None if to in (AttemptState.INTENDED, AttemptState.ACCEPTED) else now,
        }
        self._update("attempts", {"request_id": request_id}, state=to.value, **learned)
        self.record_event(run_id, to.value, request_id, detail=job_id or result_id or error, at=now)
        return replace(before, state=to, **learned)

    def reopen_for_resend(self, run_id: RunId, request_id: RequestId) -> Attempt:
        """Intend the same request anew as of now, for the next run to resend.

        Raises LedgerError when the attempt's state does not allow it.
        """
        before = self.attempt(request_id)
        if before is None or before.state is not AttemptState.INTENDED:
            before = self.change(run_id, request_id, AttemptState.INTENDED)
        now = self.now()
        self.move_reservation(request_id, day_of(now))
        self._update("attempts", {"request_id": request_id}, intended_at=now, uptime=None, accepted_at=None)
        return replace(before, intended_at=now, accepted_at=None)


def _identity(attempt: Attempt) -> dict[str, Any]:
    """The columns that never change, but for the state, and the body of what certainly made nothing."""
    return {
        "request_id": attempt.request_id,
        "item_key": attempt.item_key,
        "attempt": attempt.attempt,
        "state": attempt.state.value,
        "body": attempt.body,
    }


def _uptime() -> str | None:
    """A clock that cannot be set while the machine is up: its boot, and the seconds since."""
    boot = boot_id()
    return f"{boot} {uptime():.3f}" if boot else None


def _seconds_since(uptime: str | None) -> float:
    """Seconds since an uptime of this very boot; 0 for any other."""
    boot, _, then = (uptime or "").partition(" ")
    now_boot, _, now = (_uptime() or "").partition(" ")
    return float(now) - float(then) if then and boot == now_boot else 0.0


def attempt_from(values: Sequence[Any]) -> Attempt:
    request_id, item_key, attempt, state, body, *rest = values
    return Attempt(RequestId(request_id), ItemKey(item_key), attempt, AttemptState(state), bytes(body), *rest)
