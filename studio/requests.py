"""The request body of every operation, with the bounds of its fields.

Only those of CreateFeedback are the interface's; all others are choices of this studio.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue

from studio.design import DEFAULT_MODEL, DEFAULT_SIZE, WHOLE, HexColour, PartSide, Repeats, Share, Size
from studio.wire import Body

REQUEST_ID_LIMIT = 128
#: The most bytes of a picture before it is encoded in base64.
REFERENCE_LIMIT = 5_000_000
#: A character that str.strip() leaves, spelled out because languages differ in what \s matches.
VISIBLE = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _text(limit: int) -> Any:
    """Bound a text, which needs at least one visible character."""
    return Field(min_length=1, max_length=limit, json_schema_extra={"pattern": VISIBLE})


#: An optional field that may not be null; it has no default in the schema or in the request.
LEFT_OUT: Any = Field(default_factory=lambda: None)
NOT_BLANK = AfterValidator(_not_blank)
Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Base64 = Annotated[
    str,
    Field(
        min_length=1, max_length=REFERENCE_LIMIT * 4 // 3 + 4, json_schema_extra={"contentEncoding": "base64"}
    ),
]
RequestIdField = Annotated[str, _text(REQUEST_ID_LIMIT), NOT_BLANK]
Prompt = Annotated[str, _text(4000), NOT_BLANK]
Palette = Annotated[list[HexColour], Field(min_length=1, max_length=12)]
#: Parsers disagree about JSON numbers from 2^53 on.
Seed = Annotated[int, Field(ge=0, lt=2**53), WHOLE]


class CreateBody(Body):
    """The body of a create: safe to send again."""

    requestId: RequestIdField


class Page(Body):
    """A part of a list, newest first: the first one, or the one that `cursor` leads to."""

    limit: Annotated[int, Field(ge=1, le=100), WHOLE] = 50
    cursor: Annotated[str, Field(max_length=200)] = ""


class Nothing(Body):
    """An operation that takes no field."""


class CreatePattern(CreateBody):
    prompt: Prompt
    model: Identifier = DEFAULT_MODEL
    referenceIds: Annotated[tuple[Identifier, ...], Field(max_length=4)] = ()
    size: Size = DEFAULT_SIZE
    seed: Seed | None = None
    palette: Annotated[tuple[HexColour, ...], Field(max_length=12)] = ()


class GetPattern(Body):
    patternId: Identifier


class RefineBody(CreateBody):
    """The body of a change to a pattern, of which a new pattern comes."""

    patternId: Identifier


class EditPattern(RefineBody):
    prompt: Prompt


class RecolorPattern(RefineBody):
    palette: Palette


class CropPattern(RefineBody):
    """Shares of the tile's side, from its upper left corner."""

    x: Share
    y: Share
    width: PartSide
    height: PartSide


class ExtendPattern(RefineBody):
    columns: Repeats
    rows: Repeats


class CreateReference(CreateBody):
    """`data` is the file in base64."""

    data: Base64
    name: Identifier | None = None


class GetReference(Body):
    referenceId: Identifier


class GetModel(Body):
    modelId: Identifier


class GetCategory(Body):
    categoryId: Identifier


class CreateProduct(CreateBody):
    patternId: Identifier
    categoryId: Identifier
    selections: dict[str, str]


class GetProduct(Body):
    productId: Identifier


class GetJob(Body):
    jobId: Identifier


class CheckoutLine(Body):
    productId: Identifier
    quantity: Annotated[int, Field(ge=1, le=1000), WHOLE]


class CreateCheckout(CreateBody):
    lines: Annotated[list[CheckoutLine], Field(min_length=1, max_length=100)]


class GetCheckout(Body):
    checkoutId: Identifier


class ReportedRequest(Body):
    body: JsonValue = LEFT_OUT
    userAgent: Annotated[str, Field(max_length=500)] = LEFT_OUT


class ReportedResponse(Body):
    status: Annotated[int, Field(ge=0, le=599), WHOLE] = LEFT_OUT
    body: JsonValue = LEFT_OUT
    durationMs: Annotated[float, Field(ge=0, allow_inf_nan=False)] = LEFT_OUT


class CreateFeedback(Body):
    """Bounds as the interface has them. `requestId` names the report; it makes nothing safe to repeat."""

    requestId: Annotated[str, Field(min_length=1, max_length=REQUEST_ID_LIMIT)]
    text: Annotated[str, Field(min_length=1, max_length=4000)]
    procedure: Annotated[str, Field(min_length=1, max_length=200)] = LEFT_OUT
    request: ReportedRequest = LEFT_OUT
    response: ReportedResponse = LEFT_OUT
    agent: Annotated[str, Field(min_length=1, max_length=100)] = LEFT_OUT
    reportedAt: AwareDatetime = LEFT_OUT
