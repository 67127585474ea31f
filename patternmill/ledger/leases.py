"""Leases: who may write for a key, with heartbeat and fence, and the brake that each transaction reads."""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from patternmill.errors import Halted, LeaseLost, Overlap, Refusal
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database, is_gone
from patternmill.states import Outcome

BEAT = 5.0
#: A holder that has not beaten for so long is taken to be dead, if its process cannot be seen.
TAKEOVER_AFTER = 45.0

_BRAKE = """
SELECT person || ' has paused ' || scope || CASE WHEN reason = '' THEN '' ELSE ' (' || reason || ')' END AS words
FROM brakes WHERE scope IN ('*', :environment, :place) ORDER BY since LIMIT 1
"""
_HOLDER = "SELECT driver, holder, beats FROM leases WHERE key = :key"
#: Takes a lease that is free, or whose holder has not beaten since it was seen.
_TAKE = """
INSERT INTO leases (key, driver, holder) VALUES (:key, :driver, :holder)
ON CONFLICT (key) DO UPDATE SET driver = excluded.driver, holder = excluded.holder, beats = leases.beats + 1
WHERE leases.driver IS NULL OR leases.beats = :seen
"""
#: Fence, proof of life, identity, schema and brake in one statement. A share's lease is worth as much as its run's.
_PROVE = f"""
UPDATE leases SET beats = beats + 1 WHERE key = :key AND driver = :driver
    AND EXISTS (SELECT 1 FROM leases WHERE key = :run_key AND driver = :run_id)
RETURNING (SELECT value FROM facts WHERE name = 'identity') AS identity,
          (SELECT value FROM facts WHERE name = 'schema') AS version, ({_BRAKE}) AS brake,
          (SELECT halt FROM runs WHERE id = :run_id) AS halt
"""
_HALT = "UPDATE runs SET halt = :outcome WHERE id = :run_id"
_FREE = "UPDATE leases SET driver = NULL WHERE key = :key AND driver = :driver"
#: With those of shares of earlier runs, which were worth nothing since this run began: on other machines, they died.
_GIVE_BACK = """
UPDATE leases SET driver = NULL WHERE driver = :driver OR driver NOT LIKE :driver || '%' AND EXISTS (
    SELECT 1 FROM runs WHERE environment || '/' || catalog = :place AND leases.driver LIKE id || '#%')
"""
_END = "UPDATE runs SET ended_at = :at, outcome = :outcome, message = :message WHERE id = :run_id AND ended_at IS NULL"


@dataclass
class Lease:
    """The right of one run to write for a catalog. Each transaction of the run proves it, and counts as a beat."""

    database: Database
    environment: str
    catalog: str
    driver: str = field(
        default_factory=lambda: f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid4().hex[:6]}"
    )
    #: The order that it is about, and not the whole catalog.
    order: str = ""
    #: The share that it is about, of the run that the driver begins with; and the last event before that run.
    share: int = 0
    first_event: int | None = None
    #: What has paused the catalog, as of the last transaction.
    brake: Halted | None = None
    _beaten_at: float = 0.0
    _watched: dict[str, tuple[int, float]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        if self.share:
            return f"{self.place}#{self.share}"
        return f"{self.environment}/order/{self.order}" if self.order else self.place

    @property
    def place(self) -> str:
        """Return what a pause of the catalog names."""
        return f"{self.environment}/{self.catalog}"

    async def take(self, run: dict[str, Any], write: Callable[[Connection], None]) -> None:
        """Take the lease, put the run on record and write what belongs to that, in one transaction.

        Raises Overlap while another run lives, for which a share waits, and Halted where the catalog is paused.
        """
        seen = next(iter(self.database.read(_HOLDER, key=self.key)), None)
        while seen and seen.driver and not self.is_silent(seen.driver):
            now = next(iter(self.database.read(_HOLDER, key=self.key)), None)
            if now and now.driver == seen.driver and now.beats != seen.beats and not self.share:
                message = f"Another run of {self.catalog} goes on: {now.driver} by {now.holder}."
                raise Overlap("overlap", message, "Wait until it has ended.")
            seen = now
            await asyncio.sleep(min(1.0, TAKEOVER_AFTER / 10))

        def change(connection: Connection) -> None:
            self._take(connection, seen, run)
            write(connection)

        self.database.change(change)
        self._beaten_at = time.monotonic()
        self.database.guard = self.prove

    def _take(self, connection: Connection, seen: Any, run: dict[str, Any]) -> None:
        if found := connection.row(_BRAKE, environment=self.environment, place=self.place):
            raise _paused(found.words)
        holder, beats = f"{socket.gethostname()}:{os.getpid()}", seen.beats if seen else -1
        taken = {"key": self.key, "driver": self.driver, "holder": holder, "seen": beats}
        if connection.execute(_TAKE, **taken) != 1:
            raise Overlap("overlap", f"A run of {self.catalog} has just begun.", "Wait until it has ended.")
        if self.share:
            return
        if seen and seen.driver:
            dead = {"run_id": seen.driver, "at": time.time()}
            connection.execute(_END, **dead, outcome="Crashed", message="Its process died.")
        place = {"environment": self.environment, "catalog": self.catalog}
        connection.insert("runs", id=self.driver, **place, started_at=time.time(), **run)
        about = {"verb": run["verb"], "source": run["source"]}
        connection.facts.append({"event": "run_begun", "run_id": self.driver, **place, **about})

    def is_silent(self, driver: str) -> bool:
        """Return whether a driver's lease is given back, or its holder dead, or silent since long before.

        Call it again and again: beats are watched on this clock, as clocks of machines differ.
        """
        found = self.database.read("SELECT holder, beats FROM leases WHERE driver = :driver", driver=driver)
        if not found or is_gone(found[0].holder):
            return True
        now = time.monotonic()
        beats, since = self._watched.get(driver, (-1, now))
        if found[0].beats != beats:
            self._watched[driver] = found[0].beats, now
            return False
        return now - since > TAKEOVER_AFTER

    def prove(self, connection: Connection) -> tuple[str, str]:
        """Prove the lease within a transaction, and read the brake. Raises LeaseLost."""
        place = {"key": self.key, "place": self.place, "environment": self.environment}
        run = {"run_key": self.place if self.share else self.key, "run_id": run_of(self.driver)}
        if not (found := connection.row(_PROVE, **place, **run, driver=self.driver)):
            raise LeaseLost(
                "lease_lost", f"Another run has taken over {self.catalog}.", "It goes on with it."
            )
        self._beaten_at = time.monotonic()
        self.brake = _paused(found.brake) if found.brake else None
        if found.halt and not self.brake:
            self.brake = Halted(Outcome(found.halt), "stopped", "Its run begins nothing more.")
        return found.identity, found.version

    async def renew(self) -> None:
        """Prove the lease again where that was long ago: the database was away, or this process stood still."""
        if time.monotonic() - self._beaten_at > TAKEOVER_AFTER / 4:
            await self.database.write(lambda connection: None)

    def confirm(self) -> None:
        """Look once more before a purchase leaves: raise what has paused it, or LeaseLost.

        A process that stood still for so long that another may have taken over goes on as if nothing had happened.
        """
        if self.brake:
            raise self.brake
        if time.monotonic() - self._beaten_at > TAKEOVER_AFTER / 2:
            raise LeaseLost("lease_unconfirmed", "This run stood still for too long.", "Run it again.")

    async def keep(self, halt: Callable[[Refusal], None], beaten: Callable[[], None]) -> None:
        """Beat until cancelled, and call `beaten` after each. What a beat meets halts the run."""
        while True:
            await asyncio.sleep(min(BEAT, TAKEOVER_AFTER / 5))
            try:
                await self.database.write(lambda connection: None)
                beaten()
            except Refusal as met:
                halt(met)
                if isinstance(met, LeaseLost):
                    return
            if self.brake:
                halt(self.brake)

    async def tell_shares(self, outcome: str) -> None:
        """Have the shares of the run begin nothing more, as the run ends so."""
        halted = {"run_id": self.driver, "outcome": outcome}
        await self.database.write(lambda connection: connection.execute(_HALT, **halted))

    async def give_back(self, outcome: str, message: str) -> None:
        """End the run on record, and give the lease back, in one transaction."""

        def change(connection: Connection) -> None:
            connection.execute(_END, run_id=self.driver, at=time.time(), outcome=outcome, message=message)
            connection.execute(_GIVE_BACK, driver=self.driver, place=self.key)

        await self.database.write(change)

    async def leave_share(self) -> None:
        """Give the lease of a share back after all that waits to be written, also where its run has lost its own."""
        with suppress(LeaseLost):
            await self.database.write(lambda connection: None)
        self.database.change(lambda connection: connection.execute(_FREE, key=self.key, driver=self.driver))


def run_of(driver: str) -> str:
    """Return the run that a driver is, or is a share of."""
    return driver.partition("#")[0]


def _paused(words: str) -> Halted:
    return Halted(Outcome.PAUSED, "paused", f"{words}.", "`patternmill unpause` lifts it.")
