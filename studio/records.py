"""Defines what the studio keeps: one model for each kind of record."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from studio import offer
from studio.answers import PricedLine
from studio.design import DEFAULT_SIZE, Design, HexColour, Size, Value
from studio.store import Instant, Record

#: The kinds of jobs.
Kind = Literal["pattern", "product"]


class Article(Value):
    """An article for sale: a pattern on a category's thing, with the value of each of its options."""

    pattern_id: str
    #: The category's key, which is the same in all environments.
    category_key: str
    selections: dict[str, str]

    @property
    def category(self) -> offer.Category:
        return next(one for one in offer.CATEGORIES if one.key == self.category_key)

    @property
    def price(self) -> int:
        """Return the price in minor units."""
        return self.category.price(self.selections)

    @property
    def description(self) -> str:
        return f"{self.category.name}, {', '.join(self.selections.values())}"


class Subject(Value):
    """The subject of a job: a pattern, or an article with its design."""

    design: Design
    size: Size = DEFAULT_SIZE
    reference_ids: tuple[str, ...] = ()
    #: The pattern that this one was refined from.
    parent_id: str | None = None
    article: Article | None = None


class Job(Record):
    """One piece of work, whose end was settled when it was accepted."""

    KEYS = ("job_id", "result_id", "picture_id")
    FOUND_BY = ("subject.design.prompt",)

    job_id: str
    operation: str
    kind: Kind
    request_id: str
    subject: Subject
    result_id: str
    picture_id: str
    #: The reason, when it is going to fail.
    failure: str | None
    started_at: Instant
    ends_at: Instant

    def has_succeeded(self, now: datetime) -> bool:
        return self.failure is None and self.ends_at <= now

    @property
    def article(self) -> Article:
        """Return what a product job makes."""
        assert self.subject.article is not None, self.job_id
        return self.subject.article


class CreateRequest(Record):
    """A create that was accepted, a digest of its operation and body, and what was created by it."""

    KEYS = ("request_id",)

    request_id: str
    digest: str
    object_id: str


class Checkout(Record):
    """A checkout that a buyer is asked to pay: lines as answers have them, with the prices of its creation."""

    KEYS = ("checkout_id", "page_id")

    checkout_id: str
    page_id: str
    lines: list[PricedLine]
    created_at: Instant
    paid_at: Instant | None = None
    cancelled_at: Instant | None = None

    @property
    def status(self) -> Literal["open", "paid", "cancelled"]:
        if self.paid_at is not None:
            return "paid"
        return "open" if self.cancelled_at is None else "cancelled"


class Order(Record):
    """A paid checkout on its way; when it reaches each state was settled when it was paid."""

    KEYS = ("order_id", "checkout_id")

    order_id: str
    checkout_id: str
    #: When it is paid, in production, shipped and delivered.
    times: tuple[Instant, Instant, Instant, Instant]
    cancelled_at: Instant | None = None


class Reference(Record):
    """An uploaded picture, whose file has the name `picture_id`. Sizes are pixels, colours the largest share first."""

    KEYS = ("reference_id", "picture_id")

    reference_id: str
    name: str | None
    picture_id: str
    sha256: str
    width: int
    height: int
    colours: tuple[HexColour, ...]
    created_at: Instant
    deleted_at: Instant | None = None


class ApiKey(Record):
    """An API key, known by its digest and never by itself."""

    KEYS = ("key_id", "sha256")

    key_id: str
    name: str
    sha256: str
    created_at: Instant
    used_at: Instant | None = None
    revoked_at: Instant | None = None


class Feedback(Record):
    """One report, after redaction."""

    received_at: Instant
    report: dict[str, Any]
