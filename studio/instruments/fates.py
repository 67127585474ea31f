"""What becomes of a job against its usual course: settled, like its end, when it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from studio.requests import CreateBody
from studio.store import Account

#: How long a job takes that never ends.
NEVER = timedelta(days=365_000)


@dataclass(frozen=True)
class Fate:
    """`failure`: the reason why the job is going to fail; `takes`: how long it runs. None: as usual."""

    failure: str | None = None
    takes: timedelta | None = None


#: The fate of the job that a new create request starts, by operation, body and account.
FateOf = Callable[[str, CreateBody, Account], Fate]
USUAL = Fate()


def usual_fate(operation: str, body: CreateBody, account: Account) -> Fate:
    return USUAL
