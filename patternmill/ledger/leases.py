"""The holders of leases: how a process identifies itself, and whether it is alive."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from patternmill.ledger.records import Lease
from patternmill.processes import birth, machine

LEASES = "SELECT environment, catalog, fence, run_id, holder, beats, stop FROM leases "
HELD_LEASES = f"{LEASES}WHERE holder <> '' ORDER BY environment, catalog"
#: How long a lease without heartbeats is watched before its holder counts as dead.
TAKEOVER_AFTER = timedelta(seconds=20)
#: Seconds without a beat after which the execution of a group counts as lost.
LOST_AFTER = 10.0


def this_process(flow_run_id: str | None = None) -> dict[str, Any]:
    """Return how a holder identifies itself, so that another process of its machine can see whether it is alive.

    `born` is the kernel's start time, as PIDs are reused. `flow_run_id`: of a run that a deployment began, which can be
    begun again.
    """
    pid = os.getpid()
    return {"machine": machine(), "pid": pid, "born": birth(pid), "flow_run_id": flow_run_id}


def holder_of(lease: Lease) -> dict[str, Any]:
    """Return what identifies the process that holds a lease; a released lease has none."""
    return dict(json.loads(lease.holder))


def is_surely_dead(holder: Mapping[str, Any]) -> bool:
    """Return whether a holder ran on this machine and no longer does; False when that cannot be known from here."""
    return bool(holder["machine"] == machine() and birth(holder["pid"]) != holder["born"])


def is_free(lease: Lease) -> bool:
    """Return whether a lease has no holder, or surely a dead one; one of another machine counts as alive."""
    return not lease.holder or is_surely_dead(holder_of(lease))
