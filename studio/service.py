"""The studio without HTTP: its operations by resource, and what its pictures show."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from studio.operations.checkouts import Checkouts, Orders
from studio.operations.context import Clock, Context, Fate, FateOf
from studio.operations.feedback import FeedbackOperations
from studio.operations.jobs import Jobs
from studio.operations.patterns import Patterns, Refine
from studio.operations.products import Products
from studio.operations.range import Categories, Models
from studio.operations.references import References
from studio.pace import Pace
from studio.store import Store
from studio.store.records import Subject


def utc_now() -> datetime:
    return datetime.now(UTC)


class Service:
    """All operations, by the group that they are called by. `home` is where uploaded pictures are kept."""

    def __init__(
        self,
        store: Store,
        *,
        home: Path = Path(".studio"),
        environment: str = "staging",
        pace: Pace = Pace.QUICK,
        clock: Clock = utc_now,
        fate_of: FateOf = lambda body, caller: Fate(),
    ) -> None:
        self.store = store
        self.environment = environment
        self.now = clock
        context = Context(store, home, environment, pace, clock, fate_of)
        self.models = Models()
        self.categories = Categories(environment)
        self.jobs = Jobs(context)
        self.references = References(context)
        self.patterns = Patterns(context, self.jobs, self.references)
        self.refine = Refine(self.jobs, self.patterns)
        self.products = Products(context, self.jobs, self.patterns)
        self.checkouts = Checkouts(context, self.products)
        self.orders = Orders(context, self.checkouts)
        self.feedback = FeedbackOperations(context)

    def picture(self, picture_id: str) -> Subject | None:
        """Return what the picture at this address shows, once its job has succeeded."""
        job = self.store.jobs.one(picture_id=picture_id)
        return job.subject if job and job.has_succeeded(self.now()) else None
