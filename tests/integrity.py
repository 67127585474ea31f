"""The judge of the tests: whether a ledger agrees with itself."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise

from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.checkouts import checkouts
from patternmill.ledger.spending import day_of
from patternmill.states import ATTEMPT_CHANGES, REOPENED, AttemptState, Stage, Verdict

_STATES = frozenset(state.value for state in AttemptState)
#: The queries for problems, by the sentence about each row that they find.
_QUERIES = {
    # The same picture may have the same ID; checkouts have IDs of their own.
    "Job {} belongs to {} requests.": "SELECT a.job_id, count(*) FROM attempts a JOIN items i ON i.key = a.item_key "
    "WHERE a.job_id IS NOT NULL AND i.stage <> 'reference' "
    "GROUP BY a.job_id, CASE i.stage WHEN 'checkout' THEN 1 ELSE 0 END HAVING count(*) > 1",
    "Request {} is attempt {}, and the one before it did not fail.": "SELECT a.request_id, a.attempt FROM attempts a "
    "LEFT JOIN attempts b ON b.item_key = a.item_key AND b.attempt = a.attempt - 1 "
    "WHERE a.attempt > 1 AND (b.state IS NULL OR b.state <> 'failed')",
    # By the order of the record: times of different machines prove nothing.
    "Request {} asks for a {} before what it is built on succeeded.": "SELECT a.request_id, i.stage FROM attempts a "
    "JOIN items i ON i.key = a.item_key WHERE i.pattern_key IS NOT NULL AND NOT EXISTS ("
    "SELECT 1 FROM attempts p JOIN events e ON e.request_id = p.request_id AND e.kind = 'succeeded' "
    "WHERE p.item_key = i.pattern_key AND p.state = 'succeeded' AND e.seq < "
    "(SELECT min(f.seq) FROM events f WHERE f.request_id = a.request_id))",
    "Request {} is on record, and its attempt is gone.": "SELECT DISTINCT e.request_id FROM events e "
    "LEFT JOIN attempts a ON a.request_id = e.request_id WHERE e.request_id IS NOT NULL AND a.request_id IS NULL",
    "Row {} of run {} names an item that is gone.": "SELECT r.sku, r.run_id FROM run_rows r "
    "LEFT JOIN items p ON p.key = r.pattern_key LEFT JOIN items q ON q.key = r.product_key "
    "WHERE r.pattern_key IS NOT NULL AND p.key IS NULL OR r.product_key IS NOT NULL AND q.key IS NULL",
}


def problems(ledger: Ledger) -> Iterator[str]:
    """Yield what is wrong, a sentence each. Reliable only while no run writes."""
    for sentence, query in _QUERIES.items():
        yield from (sentence.format(*row) for row in ledger.database.rows(query))
    for check in (_contents, _money, _approvals, _events, _documents, _checkouts):
        yield from check(ledger)


def _contents(ledger: Ledger) -> Iterator[str]:
    """Check that no two contents share a pattern or product."""
    for result_id, environment, stage in ledger.database.rows(
        "SELECT a.result_id, i.environment, i.stage FROM attempts a JOIN items i ON i.key = a.item_key "
        "WHERE a.result_id IS NOT NULL GROUP BY a.result_id, i.environment, i.stage HAVING count(*) > 1"
    ):
        if stage in (Stage.PATTERN, Stage.PRODUCT):
            first, *others = ledger.purchases.attempts_with_result(result_id, environment, [Stage(stage)])
            if any(not other.is_like(first) for other in others):
                yield f"The {stage} {result_id} is the result of requests which asked for something else."


def _money(ledger: Ledger) -> Iterator[str]:
    """Check what each run booked against the attempts that reserved it."""
    owed: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for environment, stage, currency, run_id, intended_at, price, state in ledger.database.stream(
        "SELECT i.environment, i.stage, a.currency, a.run_id, a.intended_at, a.price, a.state "
        "FROM attempts a JOIN items i ON i.key = a.item_key"
    ):
        if AttemptState(state) not in REOPENED:
            sums = owed[environment, day_of(intended_at), run_id, stage, currency]
            sums[0] += 1
            sums[1] += price
    booked = {
        tuple(scope): [items, amount]
        for *scope, items, amount in ledger.database.rows(
            "SELECT environment, day, run_id, stage, currency, items, amount FROM spending "
            "WHERE items <> 0 OR amount <> 0"
        )
    }
    for scope in booked.keys() | owed.keys():
        if booked.get(scope) != owed.get(scope):
            yield f"{booked.get(scope)} is booked on {scope}, and its attempts come to {owed.get(scope)}."


def _approvals(ledger: Ledger) -> Iterator[str]:
    """Check what was drawn from each approval against the attempts under it."""
    for approval, purchases, amount, owed, owed_amount in ledger.database.rows(
        "SELECT p.id, p.purchases, p.amount, count(a.request_id), coalesce(sum(a.price), 0) FROM approvals p "
        "LEFT JOIN attempts a ON a.approval_id = p.id AND a.state NOT IN ('withdrawn', 'rejected') "
        "GROUP BY p.id, p.purchases, p.amount"
    ):
        if (purchases, amount) != (owed, owed_amount):
            yield f"Approval {approval} has {amount} drawn, and its attempts come to {owed} for {owed_amount}."
    for approval, verdict, request_id, key in ledger.database.rows(
        "SELECT a.approval_id, p.verdict, a.request_id, a.item_key FROM attempts a "
        "LEFT JOIN approvals p ON p.id = a.approval_id WHERE a.approval_id IS NOT NULL"
    ):
        if verdict != Verdict.APPROVED or key not in json.loads(ledger.document(f"plan {approval}") or "[]"):
            yield f"Request {request_id} was bought under an approval that does not cover it."


def _events(ledger: Ledger) -> Iterator[str]:
    """Check that every attempt came to its state by legal changes, each of them on record."""
    recorded = ledger.database.stream(
        "SELECT a.request_id, a.state, e.kind FROM attempts a LEFT JOIN events e "
        "ON e.request_id = a.request_id ORDER BY a.request_id, e.seq"
    )
    for (request_id, state), events in groupby(recorded, key=lambda row: row[:2]):
        kinds = [AttemptState(kind) for _, _, kind in events if kind in _STATES]
        if kinds[:1] != [AttemptState.INTENDED] or kinds[-1] != state:
            yield f"Request {request_id} is {state}, and what is on record is {kinds}."
        for before, after in pairwise(kinds):
            if after not in ATTEMPT_CHANGES[before]:
                yield f"Request {request_id} went from {before} to {after}, which is no legal change."


def _documents(ledger: Ledger) -> Iterator[str]:
    """Check that the inputs of all runs are there, and that documents named by their SHA-256 still have it."""
    known = set()
    for name, raw in ledger.database.stream("SELECT name, raw FROM documents"):
        known.add(name)
        if " " not in name and hashlib.sha256(zlib.decompress(raw)).hexdigest() != name:
            yield f"The document {name} is damaged."
    runs = ledger.runs.find()
    yield from (f"The input of run {run.run_id} is gone." for run in runs if run.input_sha256 not in known)


def _checkouts(ledger: Ledger) -> Iterator[str]:
    """Check that their rows are those of their requests, in the same order, and that only opened ones have orders."""
    for record in checkouts(ledger):
        _, content = ledger.purchases.item(record.key)
        asked = [(line["productId"], line["quantity"]) for line in content["lines"]]
        if asked != [(line.product_id, line.quantity) for line in record.lines]:
            yield f"The rows of checkout item {record.key} are not those that its request names."
        if record.order is not None and record.checkout_id is None:
            yield f"There is an order of checkout item {record.key}, which was never opened."
