"""The answer of every operation: what a caller may rely on to be there."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from studio.wire import FieldFault

#: An instant in UTC: `2026-01-31T12:00:00.000Z`.
Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Url = Annotated[str, Field(json_schema_extra={"format": "uri"})]
OrderStatus = Literal["paid", "in_production", "shipped", "delivered", "cancelled"]


class ErrorDetail(TypedDict):
    code: str
    message: str
    fields: NotRequired[list[FieldFault]]


class ErrorAnswer(TypedDict):
    """Every answer with a status of 400 or above."""

    error: ErrorDetail


class JobResult(TypedDict):
    """`patternId` of a pattern, `productId` of a product."""

    patternId: NotRequired[str]
    productId: NotRequired[str]
    imageUrl: Url


class JobAnswer(TypedDict):
    jobId: str
    kind: Literal["pattern", "product"]
    status: Literal["running", "succeeded", "failed"]
    result: JobResult | None
    error: NotRequired[dict[Literal["message"], str]]


class ListedJob(JobAnswer):
    operation: str
    requestId: str
    createdAt: Instant
    endedAt: Instant | None


class Page(TypedDict):
    """`nextCursor` leads to the next part of a list; on the last one it is null."""

    nextCursor: str | None


class JobPage(Page):
    jobs: list[ListedJob]


class Money(TypedDict):
    """`amount` in minor units: 1990 of EUR are 19.90."""

    amount: int
    currency: str


class PatternAnswer(TypedDict):
    """`parentPatternId` and `change` say which pattern it was refined from, and how; null for a first one."""

    patternId: str
    prompt: str
    model: str
    seed: int | None
    size: int
    palette: list[str]
    referenceIds: list[str]
    parentPatternId: str | None
    change: dict[str, Any] | None
    imageUrl: Url
    createdAt: Instant


class PatternPage(Page):
    patterns: list[PatternAnswer]


class ReferenceAnswer(TypedDict):
    referenceId: str
    name: str | None
    sha256: str
    width: int
    height: int
    imageUrl: Url
    createdAt: Instant


class ReferencePage(Page):
    references: list[ReferenceAnswer]


class DeletedReference(TypedDict):
    referenceId: str
    deleted: Literal[True]


class ModelAnswer(TypedDict):
    modelId: str
    name: str
    description: str


class ModelList(TypedDict):
    models: list[ModelAnswer]


class CategorySummary(TypedDict):
    """`priceFrom` is the least that a product of it costs."""

    categoryId: str
    name: str
    description: str
    priceFrom: Money


class CategoryList(TypedDict):
    categories: list[CategorySummary]


class OptionAnswer(TypedDict):
    """Surcharges are minor units by value."""

    name: str
    label: str
    required: bool
    values: list[str]
    default: NotRequired[str]
    surcharges: dict[str, int]


class CategoryAnswer(CategorySummary):
    options: list[OptionAnswer]


class ProductAnswer(TypedDict):
    productId: str
    patternId: str
    categoryId: str
    selections: dict[str, str]
    price: Money
    imageUrl: Url
    patternImageUrl: Url
    createdAt: Instant


class ProductPage(Page):
    products: list[ProductAnswer]


class PricedLine(TypedDict):
    productId: str
    description: str
    quantity: int
    unitPrice: Money
    total: Money


class CheckoutAnswer(TypedDict):
    checkoutId: str
    checkoutUrl: Url
    status: Literal["open", "paid", "cancelled"]
    lines: list[PricedLine]
    total: Money
    createdAt: Instant


class OrderEvent(TypedDict):
    status: OrderStatus
    at: Instant


class OrderAnswer(TypedDict):
    """`history` has every state that it has reached, oldest first. Of a cancelled checkout only the status."""

    orderId: NotRequired[str]
    checkoutId: str
    status: OrderStatus
    lines: NotRequired[list[PricedLine]]
    total: NotRequired[Money]
    history: NotRequired[list[OrderEvent]]
    createdAt: NotRequired[Instant]
    paidAt: NotRequired[Instant]


class OrderPage(Page):
    orders: list[OrderAnswer]


class FeedbackAnswer(TypedDict):
    requestId: Annotated[str, Field(min_length=1, max_length=128)]
