"""Setting and lifting the brake, which every transaction of a run reads."""

import asyncio
import getpass
import time

from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database, is_gone

_SET = """
INSERT INTO brakes (scope, since, person, reason) VALUES (:scope, :since, :person, :reason)
ON CONFLICT (scope) DO UPDATE SET since = excluded.since, person = excluded.person, reason = excluded.reason
"""
_LIVING = """
SELECT driver, beats, holder FROM leases
WHERE driver IS NOT NULL AND (
    :scope = '*' OR key = :scope OR key LIKE :scope || '/%' OR key LIKE :scope || '#%'
    OR EXISTS (SELECT 1 FROM runs WHERE id = driver AND environment || '/' || catalog = :scope)
)
"""
_ON = """
SELECT scope, person || ' has paused ' || scope || CASE WHEN reason = '' THEN '' ELSE ' (' || reason || ')' END AS words
FROM brakes WHERE scope IN ('*', :environment, :place) ORDER BY since
"""
_LIFT = "DELETE FROM brakes WHERE scope = :scope"


async def pause(database: Database, scope: str, reason: str, patience: float = 60.0) -> list[str]:
    """Set the brake, and wait until each living run has met it. Return the runs that have not in time."""

    def change(connection: Connection) -> dict[str, int]:
        connection.execute(_SET, scope=scope, since=time.time(), person=getpass.getuser(), reason=reason)
        living = connection.rows(_LIVING, scope=scope)
        return {lease.driver: lease.beats for lease in living if not is_gone(lease.holder)}

    # Alone: no transaction that has not read the brake goes on, so a run's next beat says that it has.
    unmet, until = database.change(change, alone=True), time.monotonic() + patience
    while unmet and time.monotonic() < until:
        await asyncio.sleep(0.2)
        living = [lease for lease in database.read(_LIVING, scope=scope) if not is_gone(lease.holder)]
        now = {lease.driver: lease.beats for lease in living}
        unmet = {driver: beats for driver, beats in unmet.items() if now.get(driver) == beats}
    return list(unmet)


def brakes_on(database: Database, environment: str, catalog: str) -> list[dict[str, str]]:
    """Return scope and words of what has paused a catalog."""
    place = f"{environment}/{catalog}"
    return [row._asdict() for row in database.read(_ON, environment=environment, place=place)]


def unpause(database: Database, scope: str) -> bool:
    """Lift the brake; return whether there was one."""
    return database.change(lambda connection: connection.execute(_LIFT, scope=scope)) > 0
