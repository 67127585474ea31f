"""Who may have an SQLite file locked, and what a person does about it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from patternmill.errors import LedgerUnavailable
from patternmill.processes import birth, described, is_stopped, machine


def locked(path: str, leases: Iterable[tuple[str, str, str]]) -> LedgerUnavailable:
    """`leases` are those that are held, each with its run, catalog and holder (JSON of a process)."""
    runs = {}
    for run_id, catalog, text in leases:
        holder = json.loads(text)
        pid = holder["pid"]
        if pid != os.getpid() and holder["machine"] == machine() and birth(pid) == holder["born"]:
            runs[pid] = f"run {run_id} of {catalog!r} in {described(pid)}"
    if not runs:
        return LedgerUnavailable(
            f"The ledger {path} is locked by another program, which cannot be seen from here.",
            remedy=f"Nothing is lost. See who has it open (`fuser {path}`), then run the same command again.",
        )
    stopped = [pid for pid in runs if is_stopped(pid)]
    named = [f"{runs[pid]}, which is stopped" for pid in stopped]
    named += [name for pid, name in runs.items() if pid not in stopped]
    if stopped:
        remedy = f"resume it (`kill -CONT {stopped[0]}`) or end it (`kill -KILL {stopped[0]}`)"
    else:
        remedy = f"wait for it, or end it (`kill {next(iter(runs))}`)"
    return LedgerUnavailable(
        f"The ledger {path} is locked. It is open in {'; '.join(named)}.",
        remedy=f"Nothing is lost: {remedy}, then run the same command again.",
    )
