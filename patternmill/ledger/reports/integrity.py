"""Whether the ledger is consistent: the database's own check, and its tables against one another."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.order_report import checkouts
from patternmill.ledger.spending import day_of
from patternmill.money import money
from patternmill.states import ATTEMPT_CHANGES, OWN_RESULTS, REOPENED, AttemptState, Stage, Verdict

Check = Callable[[Ledger], Iterator[str]]
_STATES = frozenset(state.value for state in AttemptState)

#: A query, and the sentence about each row that it finds.
_QUERIES = {
    "no two requests share a job": (
        "SELECT a.job_id, count(*) FROM attempts a JOIN items i ON i.key = a.item_key "
        # The same picture may have the same ID; checkouts have IDs of their own.
        "WHERE a.job_id IS NOT NULL AND i.stage <> 'reference' "
        "GROUP BY a.job_id, CASE i.stage WHEN 'checkout' THEN 1 ELSE 0 END "
        "HAVING count(*) > 1 ORDER BY a.job_id",
        "Job {} belongs to {:,} requests.",
    ),
    "a further attempt follows a failed one": (
        "SELECT a.request_id, a.attempt FROM attempts a LEFT JOIN attempts b "
        "ON b.item_key = a.item_key AND b.attempt = a.attempt - 1 "
        "WHERE a.attempt > 1 AND (b.state IS NULL OR b.state <> 'failed') ORDER BY a.request_id",
        "Request {} is attempt {}, and the one before it did not fail.",
    ),
    # By the order of the record: times of different machines prove nothing.
    "items follow what they are built on": (
        "SELECT a.request_id, CASE WHEN i.sku IS NULL THEN 'a ' || i.stage ELSE 'the ' || i.stage || ' ' || i.sku END "
        "FROM attempts a JOIN items i ON i.key = a.item_key "
        "WHERE i.pattern_key IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM attempts p JOIN events e ON e.request_id = p.request_id AND e.kind = 'succeeded' "
        "WHERE p.item_key = i.pattern_key AND p.state = 'succeeded' AND e.seq < "
        "(SELECT min(f.seq) FROM events f WHERE f.request_id = a.request_id)) ORDER BY a.request_id",
        "Request {} asks for {} before what it is built on succeeded.",
    ),
    "events belong to attempts": (
        "SELECT DISTINCT e.request_id FROM events e LEFT JOIN attempts a ON a.request_id = e.request_id "
        "WHERE e.request_id IS NOT NULL AND a.request_id IS NULL",
        "Request {} is on record, and its attempt is gone.",
    ),
    "rows lead to items": (
        "SELECT r.sku, r.run_id FROM run_rows r LEFT JOIN items p ON p.key = r.pattern_key "
        "LEFT JOIN items q ON q.key = r.product_key WHERE r.pattern_key IS NOT NULL AND p.key IS NULL "
        "OR r.product_key IS NOT NULL AND q.key IS NULL ORDER BY r.run_id, r.position",
        "Row {} of run {} names an item that is gone.",
    ),
}


def problems(ledger: Ledger) -> Iterator[str]:
    """What is wrong, a sentence each. Reliable only while no run writes."""
    yield from (f"The database finds: {text}" for text in ledger.database.check())
    for query, sentence in _QUERIES.values():
        yield from (sentence.format(*row) for row in ledger.database.rows(query))
    for check in _CHECKS.values():
        yield from check(ledger)


def _results_are_of_one_content(ledger: Ledger) -> Iterator[str]:
    for result_id, environment, stage in ledger.database.rows(
        "SELECT a.result_id, i.environment, i.stage FROM attempts a JOIN items i ON i.key = a.item_key "
        "WHERE a.result_id IS NOT NULL GROUP BY a.result_id, i.environment, i.stage "
        "HAVING count(*) > 1 ORDER BY a.result_id"
    ):
        if stage not in OWN_RESULTS:
            continue
        first, *others = ledger.attempts_with_result(result_id, environment, Stage(stage))
        for other in others:
            if other.content != first.content:
                yield (
                    f"The {stage} {result_id} is the result of request {first.request_id} and of request "
                    f"{other.request_id}, which asked for something else."
                )


def _money_agrees(ledger: Ledger) -> Iterator[str]:
    """What each run reserved, against the attempts that reserved it."""
    booked = {
        (environment, day, run_id, stage): (items, amount)
        for environment, day, run_id, stage, items, amount in ledger.database.rows(
            "SELECT environment, day, run_id, stage, items, amount FROM spending WHERE items <> 0 OR amount <> 0"
        )
    }
    owed = _owed(ledger)
    for scope in sorted(booked.keys() | owed.keys()):
        if booked.get(scope, (0, 0)) != owed.get(scope, (0, 0)):
            yield (
                f"Run {scope[2]} has {_priced(booked.get(scope))} of {scope[3]}s booked on {scope[1]} "
                f"({scope[0]}), and its attempts come to {_priced(owed.get(scope))}."
            )


def _owed(ledger: Ledger) -> dict[tuple[str, str, str, str], tuple[int, int]]:
    found: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for environment, stage, run_id, intended_at, price, state in ledger.database.stream(
        "SELECT i.environment, i.stage, a.run_id, a.intended_at, a.price, a.state "
        "FROM attempts a JOIN items i ON i.key = a.item_key"
    ):
        if AttemptState(state) not in REOPENED:
            scope = (environment, day_of(intended_at), run_id, stage)
            items, amount = found.get(scope, (0, 0))
            found[scope] = (items + 1, amount + price)
    return found


def _priced(booked: tuple[int, int] | None) -> str:
    items, amount = booked or (0, 0)
    return f"{items:,} for {money(amount, None)}"


def _approvals_agree(ledger: Ledger) -> Iterator[str]:
    """What was drawn from each approval, against the attempts under it."""
    for approval, purchases, amount, owed, owed_amount in ledger.database.rows(
        "SELECT p.id, p.purchases, p.amount, count(a.request_id), coalesce(sum(a.price), 0) FROM approvals p "
        "LEFT JOIN attempts a ON a.approval_id = p.id AND a.state NOT IN ('withdrawn', 'rejected') "
        "GROUP BY p.id, p.purchases, p.amount ORDER BY p.id"
    ):
        # PostgreSQL's sums are decimals.
        if (purchases, amount) != (owed, int(owed_amount)):
            yield (
                f"Approval {approval} has {_priced((purchases, amount))} drawn, and its attempts come to "
                f"{_priced((owed, int(owed_amount)))}."
            )
    bought = ledger.database.rows(
        "SELECT a.approval_id, p.verdict, a.request_id, a.item_key FROM attempts a "
        "LEFT JOIN approvals p ON p.id = a.approval_id WHERE a.approval_id IS NOT NULL "
        "ORDER BY a.approval_id, a.request_id"
    )
    for (approval, verdict), attempts in groupby(bought, key=lambda row: row[:2]):
        plan = ledger.document(f"plan {approval}") if verdict == Verdict.APPROVED else None
        covered = frozenset(json.loads(plan or "[]"))
        for _, _, request_id, _ in (attempt for attempt in attempts if attempt[3] not in covered):
            yield f"Request {request_id} was bought under an approval that does not cover it."


def _events_agree(ledger: Ledger) -> Iterator[str]:
    """Every attempt came to its state by legal changes, each of them on record."""
    recorded = ledger.database.stream(
        "SELECT a.request_id, a.state, e.kind FROM attempts a LEFT JOIN events e "
        "ON e.request_id = a.request_id ORDER BY a.request_id, e.seq"
    )
    for (request_id, state), events in groupby(recorded, key=lambda row: row[:2]):
        kinds = [AttemptState(kind) for _, _, kind in events if kind in _STATES]
        if not kinds or kinds[-1] != state:
            last = kinds[-1].value if kinds else "nothing"
            yield f"Request {request_id} is {state}, and the last thing on record is {last}."
        elif kinds[0] is not AttemptState.INTENDED:
            yield f"Request {request_id} begins with {kinds[0]} on record."
        for before, after in pairwise(kinds):
            if after not in ATTEMPT_CHANGES[before]:
                yield f"Request {request_id} went from {before} to {after}, which is no legal change."


def _documents_are_whole(ledger: Ledger) -> Iterator[str]:
    """Those under their SHA-256 also by that."""
    known = set()
    for name, raw in ledger.database.stream("SELECT name, raw FROM documents WHERE name <> 'schema'"):
        known.add(name)
        if not _is_whole(bytes(raw), name):
            yield f"The document {name} is damaged."
    for record in ledger.runs():
        if record.input_sha256 not in known:
            yield f"The input of run {record.run_id} is gone."


def _is_whole(compressed: bytes, name: str) -> bool:
    try:
        raw = zlib.decompress(compressed)
    except zlib.error:
        return False
    return " " in name or hashlib.sha256(raw).hexdigest() == name


def _checkouts_agree(ledger: Ledger) -> Iterator[str]:
    """Their rows are those that their requests name, in the same order; and only open ones have orders."""
    for record in checkouts(ledger):
        _, content = ledger.item(record.key)
        asked = [(line["productId"], line["quantity"]) for line in content["lines"]]
        if asked != [(line.product_id, line.quantity) for line in record.lines]:
            yield f"The rows of checkout item {record.key} are not those that its request names."
        if record.order is not None and record.checkout_id is None:
            yield f"There is an order of checkout item {record.key}, which was never opened."


_CHECKS: dict[str, Check] = {
    "no two contents share a pattern or product": _results_are_of_one_content,
    "money booked is money asked for": _money_agrees,
    "approvals cover what was bought under them": _approvals_agree,
    "states agree with the record of events": _events_agree,
    "checkouts have the lines of their requests, and orders are of open ones": _checkouts_agree,
    "documents are whole": _documents_are_whole,
}
#: What is checked, for people.
CHECKS = (*_QUERIES, *_CHECKS)
