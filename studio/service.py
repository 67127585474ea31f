"""The studio without HTTP: its operations by resource, and what its pictures show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from studio.instruments.fates import FateOf, usual_fate
from studio.operations.checkouts import Checkouts
from studio.operations.context import Clock, Context
from studio.operations.feedback import FeedbackOperations
from studio.operations.jobs import Jobs
from studio.operations.patterns import Patterns, design_of
from studio.operations.products import Products, article_of
from studio.operations.range import Range
from studio.operations.references import References
from studio.pace import Pace
from studio.pictures import PictureOrder
from studio.requests import DEFAULT_SIZE
from studio.store import Job, Store


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Picture:
    """What is at the address of a picture, and how wide it is unless asked otherwise, in pixels."""

    order: PictureOrder
    width: int


class Service:
    """All operations. `home` is where uploaded pictures are kept."""

    def __init__(
        self,
        store: Store,
        *,
        home: Path = Path(".studio"),
        environment: str = "staging",
        pace: Pace = Pace.QUICK,
        clock: Clock = utc_now,
        fate_of: FateOf = usual_fate,
    ) -> None:
        self._clock = clock
        self.store = store
        context = Context(store, home, environment, pace, clock, fate_of)
        self.range = Range(context)
        self.jobs = Jobs(context)
        self.references = References(context)
        self.patterns = Patterns(context, self.jobs, self.references)
        self.products = Products(context, self.jobs, self.patterns)
        self.checkouts = Checkouts(context, self.products)
        self.feedback = FeedbackOperations(context)

    def now(self) -> datetime:
        return self._clock()

    def picture(self, picture_id: str) -> Picture | None:
        """The picture at this address, once its job has succeeded."""
        job = self.store.jobs.of_picture(picture_id)
        if job is None or not job.has_succeeded(self._clock()):
            return None
        return Picture(_order(job), int(str(job.subject.get("size", DEFAULT_SIZE))))


def _order(job: Job) -> PictureOrder:
    if job.kind == "pattern":
        return PictureOrder(design_of(job.subject))
    article = article_of(job)
    return PictureOrder(design_of(job.subject), article.category.key, article.selections)
