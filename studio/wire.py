"""The request bodies of the interface, and how a body that does not fit is told to its sender."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from studio.errors import FieldFault, Refusal, invalid_fields

#: Bounds that the interface leaves open: choices of this studio.
REQUEST_ID_LIMIT = 128
PROMPT_LIMIT = 4000


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Identifier = Annotated[str, Field(min_length=1, max_length=200)]
RequestIdField = Annotated[str, Field(min_length=1, max_length=REQUEST_ID_LIMIT), AfterValidator(_not_blank)]


class Body(BaseModel):
    """Fields that the studio does not know are kept: they count when two bodies are compared."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class CreatePattern(Body):
    requestId: RequestIdField
    prompt: Annotated[str, Field(min_length=1, max_length=PROMPT_LIMIT), AfterValidator(_not_blank)]


class CreateProduct(Body):
    requestId: RequestIdField
    patternId: Identifier
    categoryId: Identifier
    selections: dict[str, str]


class GetJob(Body):
    jobId: Identifier


class ListCategories(Body):
    pass


class GetCategory(Body):
    categoryId: Identifier


AnyBody = TypeVar("AnyBody", bound=Body)


def read_body(model: type[AnyBody], raw: bytes) -> AnyBody:
    """Read a request body. Raises Refusal (400) that names every field at fault."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error) from None


def digest(operation: str, body: Body) -> str:
    """The same for the same operation and body, whatever the order of its keys."""
    canonical = json.dumps(body.model_dump(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{operation}\n{canonical}".encode()).hexdigest()


def _refusal(error: ValidationError) -> Refusal:
    faults = error.errors(include_url=False, include_input=False)
    if faults[0]["type"] == "json_invalid":
        return Refusal(400, "malformed_json", f"The body is not JSON that can be read: {faults[0]['msg']}.")
    if not faults[0]["loc"]:
        return Refusal(400, "malformed_json", "The body has to be a JSON object.")
    return invalid_fields(tuple(_fault(fault["loc"], fault["type"], fault["msg"]) for fault in faults))


def _fault(place: tuple[int | str, ...], kind: str, said: str) -> FieldFault:
    name = ".".join(str(part) for part in place)
    if kind == "missing":
        return FieldFault(name, "is missing")
    return FieldFault(
        name, said.removeprefix("Value error, ").removeprefix("Input ").replace("should", "has to")
    )
