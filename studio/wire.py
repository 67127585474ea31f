"""Reads bodies and forms, and refuses them: each error is an exception that is its answer too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
#: The most bytes of a form.
FORM_LIMIT = 16_000


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
        fields = {"fields": [vars(one) for one in self.faults]} if self.faults else {}
        return {"error": {"code": self.code, "message": self.message, **fields}}


def unknown(what: str, identifier: str) -> Refusal:
    return Refusal(404, f"unknown_{what}", f"There is no {what} {identifier!r} here.")


class Body(BaseModel):
    """Fields that the studio does not know are kept: they count when two bodies are compared."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    def as_sent(self) -> dict[str, object]:
        """Return the body's JSON object, without the defaults of what was left out."""
        return self.model_dump(mode="json", exclude_unset=True)

    def digest(self, operation: str) -> str:
        """Return a digest that is the same for the same operation and body, whatever the order of its keys."""
        canonical = json.dumps(self.as_sent(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{operation}\n{canonical}".encode()).hexdigest()


AnyBody = TypeVar("AnyBody", bound=Body)


def read_body(model: type[AnyBody], raw: bytes) -> AnyBody:
    """Read a request body. Raises Refusal (400) that names every field at fault."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
    if faults[0]["type"] == "json_invalid":
        raise Refusal(400, "malformed_json", f"The body is not JSON that can be read: {faults[0]['msg']}.")
    if not faults[0]["loc"]:
        raise Refusal(400, "malformed_json", "The body has to be a JSON object.")
    fields = tuple(_fault(fault["loc"], fault["type"], fault["msg"]) for fault in faults)
    message = "; ".join(f"{one.field}: {one.message}" for one in fields)
    raise Refusal(400, "invalid_fields", f"The request cannot be used: {message}.", fields)


def _fault(place: tuple[int | str, ...], kind: str, message: str) -> FieldFault:
    plain = message.removeprefix("Value error, ").removeprefix("Input ").replace("should", "has to")
    return FieldFault(".".join(map(str, place)), "is missing" if kind == "missing" else plain)


async def read_raw(request: Request, kind: str, limit: int) -> bytes:
    """Return the body of a request. Raises Refusal: 415 unless it is sent as this type, 413 above so many bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        code = "not_json" if kind == JSON else "not_a_form"
        raise Refusal(415, code, f"The body has to be sent as Content-Type: {kind}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise Refusal(413, "too_large", f"The body is larger than {limit} bytes.")
    return bytes(body)


async def read_form(request: Request) -> dict[str, str]:
    """Return a form's fields. Raises Refusal: 403 from another site, 413, 415."""
    # A browser names the site from which a form was sent.
    sent = request.headers.get("origin")
    if sent is not None and urlsplit(sent).netloc != request.headers.get("host"):
        raise Refusal(403, "foreign_origin", "This form was sent from another site.")
    body = await read_raw(request, FORM, FORM_LIMIT)
    return dict(parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True))
