"""What the ledger remembers of a catalog before a run: item states, takes, decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from patternmill.engine.item_attempts import FINAL_CODES, is_passing
from patternmill.engine.options import RunOptions
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import Decision, last_decisions, not_overtaken
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import FORGOTTEN, Attempt
from patternmill.planning.items import Item, Scope
from patternmill.planning.memory import LastAttempt, LastDecision, Memory
from patternmill.states import WRITTEN_OFF, AttemptState, Stage


def remember(
    ledger: Ledger,
    scope: Scope,
    options: RunOptions,
    *,
    retries_written_off: bool = False,
    decisions: Iterable[Decision] = (),
) -> Memory:
    """Return what the ledger knows of a catalog.

    `retries_written_off`: items that a person wrote off get another attempt where their rows are retried.
    `decisions`: those that the run will record as it begins, in their order.
    """
    own = scope.environment, scope.catalog
    last = {attempt.item_key: attempt for attempt in ledger.purchases.last_attempts(*own)}
    decisions = tuple(decisions)
    if not last and not decisions:
        return Memory()
    trying = frozenset(
        key
        for key, attempt in last.items()
        if is_passing(attempt)
        or (
            attempt.state is AttemptState.FAILED
            and attempt.attempt < options.attempts
            and attempt.error_code not in FINAL_CODES
        )
    )
    written_off = frozenset(key for key, attempt in last.items() if attempt.error_code == WRITTEN_OFF)
    return Memory(
        last_attempts(last.values()),
        ledger.catalogs.products(*own),
        trying,
        frozenset() if retries_written_off else written_off,
        _last_decisions(ledger, scope, decisions),
        further_takes(ledger, scope),
    )


def last_attempts(attempts: Iterable[Attempt]) -> dict[ItemKey, LastAttempt]:
    """Return the last attempts at items as a plan needs them."""
    return {one.item_key: LastAttempt(one.state, one.attempt, one.result_id) for one in attempts}


def _last_decisions(ledger: Ledger, scope: Scope, new: Iterable[Decision]) -> dict[ItemKey, LastDecision]:
    """Return the latest decision about each take; `new` ones come after all that are on record."""
    recorded = last_decisions(ledger, scope.environment, scope.catalog)
    last = max((decision.sequence for decision in recorded.values()), default=0)
    latest = {item: LastDecision(one.verdict, one.sequence) for item, one in recorded.items()}
    for sequence, decision in enumerate(not_overtaken(new, recorded), start=last + 1):
        latest[decision.item] = LastDecision(decision.verdict, sequence)
    return latest


def further_takes(ledger: Ledger, scope: Scope) -> Mapping[ItemKey, set[int]]:
    """Return by the first take of a pattern the numbers of its other takes."""
    takes = defaultdict[ItemKey, set[int]](set)
    for content in ledger.purchases.contents_of_further_takes(scope.environment, scope.catalog):
        first = {name: value for name, value in content.items() if name != "take"}
        takes[content.get(FORGOTTEN) or Item(Stage.PATTERN, scope, first).key].add(content["take"])
    return takes
