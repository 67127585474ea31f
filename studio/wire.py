"""How the body of a request is read, compared with an earlier one, and refused when it does not fit."""

from __future__ import annotations

import hashlib
import json
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from studio.errors import FieldFault, Refusal, invalid_fields


class Body(BaseModel):
    """Fields that the studio does not know are kept: they count when two bodies are compared."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


AnyBody = TypeVar("AnyBody", bound=BaseModel)


def read_body(model: type[AnyBody], raw: bytes) -> AnyBody:
    """Read a request body. Raises Refusal (400) that names every field at fault."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error) from None


def digest(operation: str, body: Body) -> str:
    """The same for the same operation and body, whatever the order of its keys."""
    canonical = json.dumps(as_sent(body), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{operation}\n{canonical}".encode()).hexdigest()


def as_sent(body: Body) -> dict[str, object]:
    """The body's JSON object, without the defaults of what was left out."""
    return body.model_dump(mode="json", exclude_unset=True)


def _refusal(error: ValidationError) -> Refusal:
    faults = error.errors(include_url=False, include_input=False)
    if faults[0]["type"] == "json_invalid":
        return Refusal(400, "malformed_json", f"The body is not JSON that can be read: {faults[0]['msg']}.")
    if not faults[0]["loc"]:
        return Refusal(400, "malformed_json", "The body has to be a JSON object.")
    return invalid_fields(tuple(_fault(fault["loc"], fault["type"], fault["msg"]) for fault in faults))


def _fault(place: tuple[int | str, ...], kind: str, message: str) -> FieldFault:
    name = ".".join(str(part) for part in place)
    if kind == "missing":
        return FieldFault(name, "is missing")
    return FieldFault(
        name, message.removeprefix("Value error, ").removeprefix("Input ").replace("should", "has to")
    )
