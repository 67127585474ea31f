"""The errors of the library, split by what their reader does next.

PatternmillError
├── InputRefused           fix the file: nothing was read past the fault, nothing was spent
├── ConfigurationError     fix a setting, a key or an address: nothing was spent
│   └── SeveralCatalogs    name the catalog that is meant
├── ApprovalNeeded         a person has to approve the plan first: nothing was spent
├── Overtaken              a newer run of the catalog has ended the question about this plan: begin it anew
├── Paused                 a person has paused what would be bought: run again once it is lifted
├── ServiceStopped         the service (or our view of it) stops the run: see why, then run again
├── NotStarted             nothing was begun for an item, because the run was stopped: run again
├── RowFailed              an item ended without its pattern or product: fix the row, or retry it
├── LedgerError            the ledger cannot be trusted or written: the run stops before the next purchase
│   ├── LedgerUnavailable  its database does not answer: tried again for a while, then the run stops
│   ├── Overlap            another run has the catalog's lease: wait for it, or look at it
│   └── LeaseLost          another run acquired the lease while this one was unresponsive: this one stops
└── BudgetReached          a limit that a person set does not cover the next purchase: raise it, then run again

Each says what happened, where, and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

_MOST_CATALOGS = 20


class PatternmillError(Exception):
    """An expected failure: what happened, with a stable `code` and what to do about it (`remedy`)."""

    code = "error"

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code

    def __init__(self, message: str, *, code: str | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class InputRefused(PatternmillError, code="input_refused"):
    """The file as a whole cannot be used."""


class ConfigurationError(PatternmillError, code="configuration"):
    """A setting is missing, malformed or contradicts another."""


class SeveralCatalogs(ConfigurationError, code="which_catalog"):
    """A command needs one of several catalogs; `scopes` has their names and environments."""

    def __init__(self, scopes: Iterable[tuple[str, str]]) -> None:
        self.scopes = sorted(scopes)
        options = [f"  --catalog {shlex.quote(name)} --environment {where}" for name, where in self.scopes]
        more = [f"  … and {len(options) - _MOST_CATALOGS:,} more"] if options[_MOST_CATALOGS:] else []
        super().__init__(
            "\n".join(["Several catalogs here:", *options[:_MOST_CATALOGS], *more, ""]),
            remedy="Choose one with --catalog and --environment; `look` takes the name alone.",
        )


class ApprovalNeeded(PatternmillError, code="approval_needed"):
    """The plan exceeds what may be bought without a person's approval; `lines` say what it buys and why it waits."""

    def __init__(self, lines: Sequence[str], remedy: str) -> None:
        super().__init__(" ".join(lines), remedy=remedy)
        self.lines = tuple(lines)


class Overtaken(PatternmillError, code="overtaken"):
    """A newer run of the catalog has ended the question about a plan, and a reply to it no longer counts."""


class ServiceStopped(PatternmillError, code="service_stopped"):
    """No new item may be begun; what is in flight is finished."""


class NotStarted(PatternmillError, code="not_started"):
    """An item was not begun, and certainly nothing was sent for it."""


class RowFailed(PatternmillError, code="failed"):
    """An item ended without what it was to make. Task runs of items raise it, so that they fail.

    `request_id` and `job_id` are those of its last attempt. With `is_final` the item will not be made; otherwise the
    next run resumes it.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        remedy: str = "",
        request_id: str | None = None,
        job_id: str | None = None,
        is_final: bool = False,
    ) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.request_id = request_id
        self.job_id = job_id
        self.is_final = is_final


class Paused(PatternmillError, code="paused"):
    """A person has paused the catalog, its environment or everything, and nothing was sent."""


class LedgerError(PatternmillError, code="ledger"):
    """The ledger is missing, damaged, full or of another version."""


class LedgerUnavailable(LedgerError, code="ledger_away"):
    """The ledger's database cannot be reached, or was lost: what was in progress may be repeated."""


class Overlap(LedgerError, code="overlap"):
    """Another run has the catalog's lease."""


class LeaseLost(LedgerError, code="fenced"):
    """This run lost its lease; none of its later writes count."""


class BudgetReached(PatternmillError, code="budget_reached"):
    """The next purchase would exceed a limit that a person set."""
