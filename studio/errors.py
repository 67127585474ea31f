"""Everything the studio refuses, as one error that is also the answer's body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FieldFault:
    """One field that cannot be used."""

    field: str
    message: str


@dataclass(eq=False)
class Refusal(Exception):
    """A request answered with an error: its HTTP status, a stable code, a sentence, the fields at fault."""

    status: int
    code: str
    message: str
    faults: tuple[FieldFault, ...] = ()
    headers: Mapping[str, str] | None = None

    def body(self) -> dict[str, object]:
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.faults:
            error["fields"] = [vars(one) for one in self.faults]
        return {"error": error}


def invalid_fields(faults: tuple[FieldFault, ...]) -> Refusal:
    message = "; ".join(f"{one.field}: {one.message}" for one in faults)
    return Refusal(400, "invalid_fields", f"The request cannot be used: {message}.", faults)


def unknown(what: str, identifier: str) -> Refusal:
    return Refusal(404, f"unknown_{what}", f"There is no {what} {identifier!r} here.")
