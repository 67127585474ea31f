"""Bodies: reads those of requests, compares them with earlier ones, and writes answers."""

from __future__ import annotations

import hashlib
import json
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.errors import FieldFault, Refusal, invalid_fields


class Body(BaseModel):
    """Fields that the studio does not know are kept: they count when two bodies are compared."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
#: The most bytes and fields of a form.
FORM_LIMIT = 16_000
FIELDS_LIMIT = 20
AnyBody = TypeVar("AnyBody", bound=BaseModel)


def read_body(model: type[AnyBody], raw: bytes) -> AnyBody:
    """Read a request body. Raises Refusal (400) that names every field at fault."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error) from None


def digest(operation: str, body: Body) -> str:
    """Return a digest that is the same for the same operation and body, whatever the order of its keys."""
    canonical = json.dumps(as_sent(body), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{operation}\n{canonical}".encode()).hexdigest()


def as_sent(body: Body) -> dict[str, object]:
    """Return the body's JSON object, without the defaults of what was left out."""
    return body.model_dump(mode="json", exclude_unset=True)


def read_object(raw: bytes) -> dict[str, object]:
    """Return the JSON object, or an empty one when it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


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
    """Return a form's fields. Raises Refusal: 403 from another site, 413, 415, or 400 when it cannot be read."""
    # A browser names the site from which a form was sent.
    sent = request.headers.get("origin")
    if sent is not None and urlsplit(sent).netloc != request.headers.get("host"):
        raise Refusal(403, "foreign_origin", "This form was sent from another site.")
    body = await read_raw(request, FORM, FORM_LIMIT)
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_LIMIT))
    except ValueError as error:
        raise Refusal(400, "malformed_form", "The form cannot be read.") from error


def refusal_response(refusal: Refusal) -> Response:
    return JSONResponse(refusal.body(), refusal.status, refusal.headers)


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
