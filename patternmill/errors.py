"""Refusals: each says what happened and what to do about it, and ends the command with its exit code."""

from patternmill.states import Outcome


class Refusal(Exception):
    """An expected end of a command. `code` is for programs; message and remedy are for people."""

    exit_code = 2

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(code, message, remedy)
        self.code, self.message, self.remedy = code, message, remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class InputRefused(Refusal):
    """The sheet or its mapping cannot be used as a whole."""


class Overlap(Refusal):
    """Another run holds the lease."""

    exit_code = 4


class LeaseLost(Refusal):
    """Another run has taken the lease, or the ledger is no longer the one that was opened."""

    exit_code = 1


class LedgerFault(Refusal):
    """The database of the ledger cannot be used, for now or at all."""

    exit_code = 1

    def __init__(self, place: str, words: str, *, passing: bool = False) -> None:
        remedy = "Nothing that it acknowledged is lost. Mend the cause, then run the same command again."
        super().__init__("ledger_unavailable", f"The ledger {place} cannot be used: {words}.", remedy)
        self.args = place, words
        #: Whether it may be over soon: a lost connection, a lock.
        self.passing = passing


class Halted(Refusal):
    """Nothing more is begun. `outcome` says how the run ends."""

    exit_code = 3

    def __init__(self, outcome: Outcome, code: str, message: str, remedy: str = "") -> None:
        super().__init__(code, message, remedy)
        self.args = outcome, code, message, remedy
        self.outcome = outcome
