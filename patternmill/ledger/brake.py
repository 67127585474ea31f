"""The brake: what a person has paused. Every transaction of a purchase reads it, and every lease holder obeys it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from itertools import starmap

from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.ledger.database import Clock, Database, Tables
from patternmill.ledger.records import HELD_LEASES, LOST_AFTER, Lease, is_free
from patternmill.text import moment

_LONGEST_REASON = 200
#: Events about the brake belong to no run.
_NO_RUN = RunId("")
_LIVING_GROUPS = """
SELECT n.environment, n.catalog, g.run_id, g.number FROM run_groups g JOIN runs n ON n.run_id = g.run_id
WHERE g.fence IS NOT NULL AND g.ended_at IS NULL AND g.beat_at > :since AND g.brake < :count ORDER BY g.run_id, g.number
"""


@dataclass(frozen=True)
class Pause:
    """One pause, during which nothing is created; an empty name stands for every environment, or every catalog."""

    environment: str
    #: The catalog, whose orders are paused with it.
    catalog: str
    reason: str
    who: str
    #: The beginning of the pause, in Unix seconds.
    since: float = 0.0

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a reason that is not one printable line."""
        if not self.reason.strip() or not self.reason.isprintable() or len(self.reason) > _LONGEST_REASON:
            raise ConfigurationError(
                f"The reason of a pause is one printable line of at most {_LONGEST_REASON} characters.",
                remedy="Write why, for those whose runs meet it: --reason TEXT.",
            )

    def covers(self, environment: str, catalog: str) -> bool:
        """Return whether it pauses a catalog, or the scope of a catalog's orders."""
        return self.environment in ("", environment) and self.catalog in ("", catalog.partition("/")[0])

    @property
    def scope(self) -> str:
        """Return what is paused, for people."""
        names = {"catalog": repr(self.catalog) if self.catalog else "", "environment": self.environment}
        return " in ".join(f"{kind} {name}" for kind, name in names.items() if name) or "everything"

    @property
    def message(self) -> str:
        """Return who paused what, since when and why, with the command that lifts it."""
        options = {"--catalog": self.catalog, "--environment": self.environment}
        named = [f"{name} {shlex.quote(text)}" for name, text in options.items() if text]
        return (
            f"Paused ({self.scope}) since {moment(self.since)} UTC by {self.who}: {self.reason.removesuffix('.')}. "
            f"`{' '.join(['patternmill unpause', *named])}` lifts it."
        )


class Brake(Tables):
    """The pauses, with a count of their changes; a holder writes the last count that it obeys."""

    def __init__(self, database: Database, now: Clock) -> None:
        super().__init__(database, now)
        #: The count of changes that the last transaction read.
        self.count = 0
        self._pauses: list[Pause] = []

    def look(self, count: int) -> None:
        """Read the pauses again if their count has changed; call this in the transaction that read the count."""
        if count != self.count:
            self._pauses = self.pauses()
        self.count = count

    def pause_of(self, environment: str, catalog: str, *, now: bool = False) -> Pause | None:
        """Return the pause of a catalog, as of the current or last transaction; with `now`, read it anew."""
        pauses = self.pauses() if now else self._pauses
        return next((pause for pause in pauses if pause.covers(environment, catalog)), None)

    def pauses(self) -> list[Pause]:
        """Return what is paused now, the earliest first."""
        query = "SELECT environment, catalog, reason, who, since FROM pauses ORDER BY since"
        return list(starmap(Pause, self.database.rows(query)))

    def has_runs(self, pause: Pause) -> bool:
        """Return whether anything that a pause names has had a run; if not, a name is probably misspelt."""
        run = self._row(
            "SELECT 1 FROM runs WHERE :catalog IN ('', catalog) AND :environment IN ('', environment) LIMIT 1",
            catalog=pause.catalog,
            environment=pause.environment,
        )
        return run is not None or not (pause.catalog or pause.environment)

    def set(self, pause: Pause) -> tuple[Pause, int]:
        """Pause from now on; return the pause with its time, or an earlier one of the same scope, and the count.

        Once this returns, no intent is committed that has not seen the pause.
        """
        with self.database.transaction():
            count = self._count_up()
            pause = replace(pause, since=self.now())
            self.database.execute(
                "INSERT INTO pauses (environment, catalog, reason, who, since) "
                "VALUES (:environment, :catalog, :reason, :who, :since) ON CONFLICT DO NOTHING",
                vars(pause),
            )
            self._record("paused", pause)
            return self._pause_with(pause.environment, pause.catalog) or pause, count

    def lift(self, environment: str, catalog: str, who: str) -> Pause | None:
        """Lift the pause with exactly this scope, and return it; None where there is none."""
        with self.database.transaction():
            self._count_up()
            pause = self._pause_with(environment, catalog)
            if pause is not None:
                where = "WHERE environment = :environment AND catalog = :catalog"
                self.database.execute(f"DELETE FROM pauses {where}", vars(pause))
                self._record("unpaused", replace(pause, who=who))
            return pause

    def _pause_with(self, environment: str, catalog: str) -> Pause | None:
        scope = environment, catalog
        return next((pause for pause in self.pauses() if (pause.environment, pause.catalog) == scope), None)

    def _count_up(self) -> int:
        """Count a change, after waiting for the lock that every transaction of a purchase shares."""
        return int(self.database.rows("UPDATE ledger SET brake = brake + 1 RETURNING brake")[0][0])

    def _record(self, kind: str, pause: Pause) -> None:
        self.record_event(_NO_RUN, kind, detail=json.dumps(vars(pause), ensure_ascii=False))

    def holders_without(self, count: int) -> list[Lease]:
        """Return the leases and executions of groups that may be alive and have not acknowledged a count."""
        query = HELD_LEASES.replace("WHERE", "WHERE brake < :count AND")
        leases = [Lease(*row) for row in self.database.rows(query, count=count)]
        groups = self.database.rows(_LIVING_GROUPS, since=self.now() - LOST_AFTER, count=count)
        return [lease for lease in leases if not is_free(lease)] + [
            Lease(environment, catalog, 0, run_id, group=number)
            for environment, catalog, run_id, number in groups
        ]
