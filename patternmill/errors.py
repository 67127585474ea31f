"""The errors of the library, split by what their reader does next.

PatternmillError
├── InputRefused          fix the file: nothing was read beyond the fault, nothing was spent
├── ConfigurationError    fix a setting, a key or an address: nothing was spent
├── ApprovalNeeded        a person has to agree to the plan first: nothing was spent
├── ServiceStopped        the service (or our view of it) does not let the run go on: see why, then run again
├── NotStarted            nothing was begun for an item, because the run was stopped: run again
├── RowFailed             one item ended without its pattern or product: fix the row, or retry it
├── LedgerError           the durable memory cannot be trusted or written: the run stops before the next purchase
│   ├── LedgerUnavailable its database does not answer just now: tried again for a while, then the run stops
│   ├── Overlap           another run holds this catalog: wait for it, or look at it
│   └── Fenced            another run took this catalog over while this one stood still: this one stops
└── BudgetReached         a limit set by a person holds the next purchase back: raise it, then run again

Every one says what happened, where, and what to do.
"""

from __future__ import annotations


class PatternmillError(Exception):
    """What happened, with a stable `code` and what to do about it (`remedy`)."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class InputRefused(PatternmillError):
    """The file as a whole cannot be used."""

    code = "input_refused"


class ConfigurationError(PatternmillError):
    """A setting is missing, malformed or contradicts another."""

    code = "configuration"


class ApprovalNeeded(PatternmillError):
    """The plan is above what may be bought without a person's word."""

    code = "approval_needed"


class ServiceStopped(PatternmillError):
    """No new item may be begun; what runs is finished."""

    code = "service_stopped"


class RowFailed(PatternmillError):
    """An item ended without what it was to make. Raised by the steps, so that their task runs read as failed.

    `request_id` and `job_id` are those of its last attempt. `is_final` says that the item came to its end so;
    else the next run goes on with it.
    """

    code = "failed"

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


class NotStarted(PatternmillError):
    """An item was not begun, and certainly nothing was sent for it."""

    code = "not_started"


class LedgerError(PatternmillError):
    """The ledger is missing, damaged, full or of another version."""

    code = "ledger"


class LedgerUnavailable(LedgerError):
    """The ledger's database cannot be reached, or was lost: what was under way may be done again."""

    code = "ledger_away"


class Overlap(LedgerError):
    """Another run holds this catalog."""

    code = "overlap"


class Fenced(LedgerError):
    """This run lost its hold on the catalog; none of its later writes count."""

    code = "fenced"


class BudgetReached(PatternmillError):
    """The next purchase would pass a limit that a person set."""

    code = "budget_reached"
