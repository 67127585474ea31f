"""The records of the studio: one model for the rows of each table."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NewType

from pydantic import BeforeValidator

from studio import offer
from studio.design import DEFAULT_SIZE, Design, Size, Value
from studio.store.database import Record, read_instant, read_json

#: The account that owns an object; each key belongs to one account.
Account = NewType("Account", str)
DEFAULT_ACCOUNT = Account("default")
#: The kinds of jobs.
Kind = Literal["pattern", "product"]
#: How a create request was answered: with a new object, the object it already had, or an error.
Verdict = Literal["accepted", "repeated", "conflict"]
Instant = Annotated[datetime, BeforeValidator(read_instant)]
Json = Annotated[dict[str, Any], BeforeValidator(read_json)]


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

    job_id: str
    account: Account
    operation: str
    kind: Kind
    request_id: str
    subject: Annotated[Subject, BeforeValidator(read_json)]
    result_id: str
    picture_id: str
    #: The reason, when it is going to fail.
    failure: str | None
    started_at: Instant
    ends_at: Instant

    def is_running(self, now: datetime) -> bool:
        return now < self.ends_at

    def has_succeeded(self, now: datetime) -> bool:
        return self.failure is None and self.ends_at <= now

    @property
    def article(self) -> Article:
        """Return what a product job makes."""
        assert self.subject.article is not None, self.job_id
        return self.subject.article


class CreateRequest(Record):
    """A create that was accepted, and what was created by it."""

    account: Account
    request_id: str
    operation: str
    digest: str
    object_id: str


class RecordLine(Record):
    """One create request that was understood, as it came in. `job_id` is the ID of what was created."""

    at: Instant
    operation: str
    verdict: Verdict
    request_id: str
    job_id: str
    body: Json
    account: Account


class Checkout(Record):
    """A checkout that a buyer is asked to pay: lines as answers have them, with the prices of its creation."""

    checkout_id: str
    account: Account
    page_id: str
    lines: Annotated[list[dict[str, Any]], BeforeValidator(read_json)]
    created_at: Instant
    paid_at: Instant | None = None
    cancelled_at: Instant | None = None


class Order(Record):
    """A paid checkout on its way; the times of its states were settled when it was paid."""

    order_id: str
    checkout_id: str
    account: Account
    paid_at: Instant
    production_at: Instant
    shipped_at: Instant
    delivered_at: Instant
    cancelled_at: Instant | None = None


class Reference(Record):
    """One picture of an account; its file has the name of its digest. Width and height are pixels."""

    reference_id: str
    account: Account
    name: str | None
    picture_id: str
    sha256: str
    width: int
    height: int
    created_at: Instant
    deleted_at: Instant | None = None


class ApiKey(Record):
    """An API key, known by its digest and never by itself."""

    key_id: str
    account: Account
    name: str
    sha256: str
    created_at: Instant
    used_at: Instant | None = None
    revoked_at: Instant | None = None


class SessionRecord(Record):
    """A session of the console: digests of its token and of the API key that opened it."""

    sha256: str
    key_sha256: str
    expires_at: Instant


class Feedback(Record):
    """One report, after redaction."""

    account: Account
    received_at: Instant
    report: Json
