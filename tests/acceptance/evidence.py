"""The invariants, checked from outside after a hostile run: the service's record, the results files, the ledger."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from patternmill.ledger.ledger import Ledger, open_database
from tests.acceptance.harness import Room
from tests.hostile import Audit, audit
from tests.hostile.record import lines_of
from tests.integrity import problems


@dataclass(frozen=True)
class Evidence:
    """The traces that a run left in its room."""

    room: Room
    ledger_url: str | None = None

    @cached_property
    def audit(self) -> Audit:
        return audit(self.room.service.record, self.room.rows, self.room.service.plan)

    @cached_property
    def results(self) -> list[dict[str, str]]:
        with (self.room.out / "results.csv").open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def statuses(self) -> list[str]:
        return [row["status"] for row in self.results]

    def ledger(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the ledger."""
        with self._open() as ledger:
            return ledger.database.rows(sql)

    def _open(self) -> Ledger:
        url = self.ledger_url or f"sqlite:///{self.room.folder / self.room.home}/ledger.sqlite3"
        return Ledger(open_database(url))

    def faults_of_record(self) -> list[str]:
        """Return the faults of the run that the service's record alone shows."""
        return [*self._bought_twice(), *self._rows_lost(), *self._wrong_goods(), *self._unmade()]

    def faults(self, *, all_made: bool = True) -> list[str]:
        """Return each broken invariant as a sentence; `all_made`: the run is over and nothing final prevented a row."""
        faults = [
            *self._bought_twice(),
            *self._rows_lost(),
            *self._wrong_goods(),
            *self._broken_files(),
            *self._broken_ledger(),
            *self._called_after_the_end(),
            *self._lost_jobs(),
        ]
        return [*faults, *self._unmade()] if all_made else faults

    def _bought_twice(self) -> list[str]:
        found = [f"bought twice: {p.content} as {p.request_id}" for p in self.audit.double_purchases]
        found += [f"two jobs for one request: {name}" for name in self.audit.requests_with_two_jobs]
        return found + [f"two bodies under one request ID: {name}" for name in self.audit.changed_bodies]

    def _rows_lost(self) -> list[str]:
        wanted = [row.sku for row in self.room.rows]
        found = [row["sku"] for row in self.results]
        return [] if found == wanted else [f"{len(wanted)} rows in, {len(found)} out, or in another order"]

    def _wrong_goods(self) -> list[str]:
        made = {row["sku"]: row["product_id"] for row in self.results if row["product_id"]}
        faults = self.audit.wrong_products(made)
        prompts = {row.sku: row.pattern_text for row in self.room.rows}
        for row in self.results:
            if row["status"] == "succeeded" and not row["product_id"]:
                faults.append(f"{row['sku']} succeeded without a product")
            pattern = self.audit.patterns.get(row["pattern_id"])
            if row["pattern_id"] and (pattern is None or pattern.prompt != prompts[row["sku"]]):
                faults.append(f"{row['sku']}: {row['pattern_id']} is not its pattern")
        return faults

    def _broken_files(self) -> list[str]:
        """Return what is wrong with the files: the manifest is written last and names the others by their digests."""
        return broken_files(self.room.out)

    def _broken_ledger(self) -> list[str]:
        with self._open() as ledger:
            return list(problems(ledger))

    def _called_after_the_end(self) -> list[str]:
        """Return the calls about requests that have ended in the ledger; a failed job may be polled before a retry."""
        ended = "SELECT request_id, max(at) FROM events WHERE kind {} GROUP BY request_id"
        ends = dict(self.ledger(ended.format("IN ('succeeded', 'failed')")))
        failed = {request for request, _ in self.ledger(ended.format("= 'failed'"))}
        jobs = dict(self.ledger("SELECT job_id, request_id FROM attempts WHERE job_id IS NOT NULL"))
        faults = []
        for line in lines_of(self.room.service.record):
            if line["event"] != "request":
                continue
            request = line["requestId"] or jobs.get(line["jobId"])
            if line["operation"] == "jobs/get" and request in failed:
                continue
            # A poll may have been sent when the end was written.
            known_since = ends.get(request, math.inf) + (0.1 if line["operation"] == "jobs/get" else 0.0)
            if line["at"] > known_since:
                late = line["at"] - ends[request]
                faults.append(f"{line['operation']} for {request} {late:.3f} s after its end was known")
        return faults

    def _lost_jobs(self) -> list[str]:
        known = {name for pair in self.ledger("SELECT job_id, result_id FROM attempts") for name in pair}
        open_requests = {
            r for (r,) in self.ledger("SELECT request_id FROM attempts WHERE state <> 'succeeded'")
        }
        return [
            f"paid and forgotten: {p.job_id} of {p.request_id}"
            for p in self.audit.purchases
            if known.isdisjoint({p.job_id, p.result_id} - {None}) and p.request_id not in open_requests
        ]

    def _unmade(self) -> list[str]:
        faults = [f"{row['sku']} is {row['status']}" for row in self.results if row["status"] != "succeeded"]
        faults += [f"never bought: {goods}" for goods in self.audit.never_bought()]
        return faults + [f"not ended: {purchase.job_id}" for purchase in self.audit.unfinished]


def broken_files(out: Path) -> list[str]:
    """Return what is wrong with the results files of a run that ended."""
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    known = {*manifest["files"], "manifest.json"}
    faults = [
        f"left behind: {path.name}" for path in out.iterdir() if path.is_file() and path.name not in known
    ]
    for name, sha256 in manifest["files"].items():
        if hashlib.sha256((out / name).read_bytes()).hexdigest() != sha256:
            faults.append(f"{name} differs from the manifest")
    return faults
