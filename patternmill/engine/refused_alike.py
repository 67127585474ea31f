"""Is it the row, or is it us? Different items that are refused in the same way, with no acceptance between them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from patternmill.engine.progress import Halt, HaltReason
from patternmill.identifiers import ItemKey, RequestId
from patternmill.planning.items import Item
from patternmill.service.jobs import CREATES
from patternmill.service.outcomes import No
from patternmill.states import REFUSED_ALIKE, UNCLEAR_REFUSAL, Outcome
from patternmill.text import plural

#: So many different items say that it may not be about the row.
ENOUGH = 3


class RefusedAlike:
    """Counts the refusals of one run, and halts it where they may be about the account.

    From then on nothing is begun. What is on its way is still answered: an acceptance of the same kind lifts the halt.
    """

    def __init__(self, halt: Halt, to_make: Iterable[Item] = ()) -> None:
        """`to_make`: all items of the run, where there may be few."""
        self._halt = halt
        self._to_make = Counter(map(kind_of, to_make))
        #: By kind and by how they were refused: requests since one of the kind was last accepted.
        self._refused = defaultdict[str, defaultdict[str, dict[ItemKey, RequestId]]](
            lambda: defaultdict(dict)
        )
        self._unanswered = Counter[str]()
        self._suspects: set[str] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        #: How often the run was halted for it.
        self.halts = 0

    @property
    def is_settled(self) -> bool:
        """False while the run is halted and an acceptance may still lift that."""
        return self._settled.is_set()

    async def settled(self) -> None:
        await self._settled.wait()

    @contextmanager
    def sending(self, item: Item) -> Iterator[None]:
        """From before a create until its answer is on record."""
        kind = kind_of(item)
        self._unanswered[kind] += 1
        try:
            yield
        finally:
            self._unanswered[kind] -= 1
            if not any(self._unanswered[kind] for kind in self._suspects):
                self._settled.set()

    def accepted(self, item: Item) -> None:
        self._refused.pop(kind_of(item), None)
        self._suspects.discard(kind_of(item))
        if not self._suspects:
            self._halt.lift(REFUSED_ALIKE)
            self._settled.set()

    def refused(self, item: Item, request_id: RequestId, no: No) -> list[RequestId]:
        """Return the requests refused in the same way, where it may not be about their rows; else none."""
        kind = kind_of(item)
        alike = self._refused[kind][no.alike]
        alike[item.key] = request_id
        if len(alike) < min(ENOUGH, self._to_make[kind] or ENOUGH):
            return []
        if len(alike) >= ENOUGH and kind not in self._suspects:
            self.halts += 1
            self._suspects.add(kind)
            self._settled.clear()
            self._halt.begin(_reason(item, len(alike), no))
        return list(alike.values())


def kind_of(item: Item) -> str:
    """Return the operation that makes an item."""
    return item.operation or CREATES[item.stage]


def _reason(item: Item, count: int, no: No) -> HaltReason:
    known = " once you know that nothing exists for them" if no.code == UNCLEAR_REFUSAL else ""
    message = (
        f"{plural(count, item.stage)} in a row were refused in the same way. {no.message} If that is about these rows, "
        f"correct them{known}; if it is about the account, run the same command again."
    )
    return HaltReason(Outcome.FAILED, REFUSED_ALIKE, message)
