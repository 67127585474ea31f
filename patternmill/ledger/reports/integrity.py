"""Whether the ledger is consistent: the database's own check, and its tables against one another."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.order_report import checkouts
from patternmill.ledger.spending import day_of
from patternmill.money import money
from patternmill.states import ATTEMPT_CHANGES, OWN_RESULTS, REOPENED, AttemptState, Stage, Verdict
from patternmill.text import plural

Check = Callable[[Ledger], Iterator[str]]
_STATES = frozenset(state.value for state in AttemptState)


def problems(ledger: Ledger) -> Iterator[str]:
    """What is wrong, a sentence each. Reliable only while no run writes."""
    yield from (f"The database finds: {text}" for text in ledger.database.check())
    for check in CHECKS.values():
        yield from check(ledger)


def _jobs_are_of_one_request(ledger: Ledger) -> Iterator[str]:
    for job_id, count in ledger.database.rows(
        "SELECT a.job_id, count(*) FROM attempts a JOIN items i ON i.key = a.item_key "
        # The same picture may have the same ID; checkouts have IDs of their own.
        "WHERE a.job_id IS NOT NULL AND i.stage <> 'reference' "
        "GROUP BY a.job_id, CASE i.stage WHEN 'checkout' THEN 1 ELSE 0 END "
        "HAVING count(*) > 1 ORDER BY a.job_id"
    ):
        yield f"Job {job_id} belongs to {plural(count, 'request')}."


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


def _attempts_follow_failures(ledger: Ledger) -> Iterator[str]:
    for request_id, attempt in ledger.database.rows(
        "SELECT a.request_id, a.attempt FROM attempts a LEFT JOIN attempts b "
        "ON b.item_key = a.item_key AND b.attempt = a.attempt - 1 "
        "WHERE a.attempt > 1 AND (b.state IS NULL OR b.state <> 'failed') ORDER BY a.request_id"
    ):
        yield f"Request {request_id} is attempt {attempt}, and the one before it did not fail."


def _needs_come_first(ledger: Ledger) -> Iterator[str]:
    """By the order of the record: times of different machines prove nothing."""
    for request_id, stage, sku in ledger.database.rows(
        "SELECT a.request_id, i.stage, i.sku FROM attempts a JOIN items i ON i.key = a.item_key "
        "WHERE i.pattern_key IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM attempts p JOIN events e ON e.request_id = p.request_id AND e.kind = 'succeeded' "
        "WHERE p.item_key = i.pattern_key AND p.state = 'succeeded' AND e.seq < "
        "(SELECT min(f.seq) FROM events f WHERE f.request_id = a.request_id)) ORDER BY a.request_id"
    ):
        what = f"the {stage} {sku}" if sku else f"a {stage}"
        yield f"Request {request_id} asks for {what} before what it is built on succeeded."


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
    for request_id, key, approval, verdict in ledger.database.rows(
        "SELECT a.request_id, a.item_key, a.approval_id, p.verdict FROM attempts a "
        "LEFT JOIN approvals p ON p.id = a.approval_id WHERE a.approval_id IS NOT NULL "
        "ORDER BY a.approval_id, a.request_id"
    ):
        if verdict != Verdict.APPROVED or key not in ledger.approval_items(approval):
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


def _events_have_attempts(ledger: Ledger) -> Iterator[str]:
    for (request_id,) in ledger.database.rows(
        "SELECT DISTINCT e.request_id FROM events e LEFT JOIN attempts a ON a.request_id = e.request_id "
        "WHERE e.request_id IS NOT NULL AND a.request_id IS NULL"
    ):
        yield f"Request {request_id} is on record, and its attempt is gone."


def _rows_have_items(ledger: Ledger) -> Iterator[str]:
    for key in ("pattern_key", "product_key"):
        for run_id, sku in ledger.database.rows(
            f"SELECT r.run_id, r.sku FROM run_rows r LEFT JOIN items i ON i.key = r.{key} "  # noqa: S608
            f"WHERE r.{key} IS NOT NULL AND i.key IS NULL ORDER BY r.run_id, r.position"
        ):
            yield f"Row {sku} of run {run_id} names an item that is gone."


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


CHECKS: dict[str, Check] = {
    "no two requests share a job": _jobs_are_of_one_request,
    "no two contents share a pattern or product": _results_are_of_one_content,
    "a further attempt follows a failed one": _attempts_follow_failures,
    "items follow what they are built on": _needs_come_first,
    "money booked is money asked for": _money_agrees,
    "approvals cover what was bought under them": _approvals_agree,
    "states agree with the record of events": _events_agree,
    "events belong to attempts": _events_have_attempts,
    "rows lead to items": _rows_have_items,
    "checkouts have the lines of their requests, and orders are of open ones": _checkouts_agree,
    "documents are whole": _documents_are_whole,
}
