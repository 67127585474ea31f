"""Forgets what the rows of ended runs contained: prompts, files and notes. What identity and money need stays.

An item keeps its key, what it is built on, and its attempts with their IDs, states and prices. The content of a pattern
becomes the key of its first take and its number, and the body of its request a digest. Rows keep skus, items and
statuses, so that counts stay right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import FORGOTTEN, RunRecord, digest_of_body
from patternmill.ledger.reports.run_lookup import had_lease
from patternmill.ledger.row_outcomes import RowOutcome
from patternmill.states import Stage
from patternmill.text import moment

#: The arguments of json.dumps that give the canonical form of an item's content.
_CANONICAL: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
#: Returns the first take of a pattern by the content that its takes share.
FirstTake = Callable[[Mapping[str, Any]], ItemKey]

#: Holds for a sku that the catalog has, or still waits for.
_IS_OF_CATALOG = "retired_at IS NULL AND (product_key IS NOT NULL OR gone_at IS NULL)"
#: The products that a catalog has, and those that its rows ask for: their rows stay.
_OF_CATALOG = f"""
SELECT i.key FROM catalog_rows c JOIN items i ON i.key IN (c.requested_key, c.product_key)
WHERE c.environment = :environment AND c.catalog = :catalog AND {_IS_OF_CATALOG}
"""
_GONE_ROWS = f"""
SELECT requested_key, sku_key, row, requested FROM catalog_rows
WHERE environment = :environment AND catalog = :catalog AND NOT ({_IS_OF_CATALOG})
"""
_UPDATE_GONE_ROW = """
UPDATE catalog_rows SET row = :row, requested = :requested
WHERE environment = :environment AND catalog = :catalog AND sku_key = :sku_key
"""
#: Selects the items with an attempt whose exact bytes may be sent again.
_OPEN = """
SELECT a.item_key FROM attempts a JOIN items i ON i.key = a.item_key
WHERE i.environment = :environment AND i.catalog = :catalog
AND (a.state IN ('intended', 'accepted', 'held') OR (a.state = 'rejected' AND a.error_code = 'redirected'))
"""
_NAMED_BY_RUN = """
SELECT pattern_key FROM run_rows WHERE run_id = :run_id UNION SELECT product_key FROM run_rows WHERE run_id = :run_id
UNION SELECT item_key FROM attempts WHERE run_id = :run_id
"""
_ITEMS = """
SELECT key, stage, pattern_key, content FROM items
WHERE environment = :environment AND catalog = :catalog AND stage <> 'checkout'
"""
_SHORTEN_ATTEMPT = "UPDATE attempts SET body = :body, error = NULL WHERE request_id = :request_id"
_SHORTEN_ROW = (
    "UPDATE run_rows SET row = :row, outcome = :outcome WHERE run_id = :run_id AND position = :position"
)
#: Clears the details of events that quote a row, or what the service said about it.
_WORDS = "UPDATE events SET detail = NULL WHERE request_id = :request_id AND kind IN ('failed', 'rejected', 'held')"
_ANSWERS = "DELETE FROM events WHERE request_id = :request_id AND kind = 'answered'"
_DECISIONS = "SELECT seq, detail FROM events WHERE request_id = :request_id AND decision > ''"
#: The rows of a run that can be forgotten.
_ROWS = f"""
SELECT position, row, outcome FROM run_rows
WHERE run_id = :run_id AND row NOT LIKE :forgotten AND coalesce(product_key, '') NOT IN ({_OF_CATALOG})
"""
_REFERENCES = "SELECT content FROM items WHERE stage = 'reference'"
_NOTES_OF_APPROVALS = """
UPDATE approvals SET note = NULL
WHERE environment = :environment AND catalog = :catalog AND digest = :digest AND verdict <> 'waiting'
"""


@dataclass(frozen=True)
class Forgettable:
    """The things that can be forgotten of some runs of one catalog."""

    environment: str
    catalog: str
    runs: tuple[RunRecord, ...]
    #: Items that no other run, no open request and no row of the catalog needs.
    items: Mapping[ItemKey, Stage]
    #: The number of rows that would be forgotten, by run.
    rows: Mapping[RunId, int]

    @property
    def told_items(self) -> int:
        """Return how many items contain words; a product has no words except in its attempts."""
        return sum(stage is not Stage.PRODUCT for stage in self.items.values())

    @property
    def scope(self) -> dict[str, str]:
        """Return the catalog as parameters of queries."""
        return {"environment": self.environment, "catalog": self.catalog}


def never_forgotten(ledger: Ledger, environment: str, catalog: str) -> set[RunId]:
    """Return the runs of a catalog that stay: the latest, those that make up its sheet, and those without an end."""
    runs = ledger.runs.find(environment=environment, catalog=catalog)
    latest = [run.run_id for run in runs if had_lease(run)][:1]
    without_end = [run.run_id for run in runs if run.outcome is None]
    return {*latest, *without_end, *ledger.catalogs.sheet_runs(environment, catalog)}


def find_forgettable(
    ledger: Ledger, environment: str, catalog: str, runs: Collection[RunRecord]
) -> Forgettable:
    """Return what can be forgotten of ended runs of a catalog. Writes nothing."""
    scope = {"environment": environment, "catalog": catalog}
    ids = {run.run_id for run in runs}
    rows = ledger.database.rows
    needed = {key for query in (_OF_CATALOG, _OPEN) for (key,) in rows(query, scope)}
    for run in ledger.runs.find(environment=environment, catalog=catalog):
        if run.run_id not in ids and FORGOTTEN not in run.options:
            needed.update(key for (key,) in rows(_NAMED_BY_RUN, run_id=run.run_id) if key is not None)
    items = rows(_ITEMS, scope)
    parents = {key: parent for key, _, parent, _ in items}
    for key in list(needed):
        while (parent := parents.get(key)) is not None and parent not in needed:
            needed.add(parent)
            key = parent
    unneeded = {
        ItemKey(key): Stage(stage)
        for key, stage, _, content in items
        if key not in needed and FORGOTTEN not in json.loads(content)
    }
    counts = {run.run_id: len(_forgettable_rows(ledger, run)) for run in runs}
    return Forgettable(environment, catalog, tuple(runs), unneeded, counts)


def forget(ledger: Ledger, what: Forgettable, first_take: FirstTake) -> None:
    """Forget what was found; call this inside a transaction with the catalog's lease."""
    for key, stage in what.items.items():
        _forget_item(ledger, key, stage, first_take)
    for run in what.runs:
        for position, row, outcome in _forgettable_rows(ledger, run):
            words = {"row": _without_words(row), "outcome": _short(outcome)}
            ledger.database.execute(_SHORTEN_ROW, words, run_id=run.run_id, position=position)
        _forget_run(ledger, run, what.scope)
    for requested_key, sku_key, *contents in ledger.database.rows(_GONE_ROWS, what.scope):
        if requested_key in what.items:
            row, requested = map(_without_prompt, contents)
            ledger.database.execute(
                _UPDATE_GONE_ROW, what.scope, sku_key=sku_key, row=row, requested=requested
            )
    _forget_documents(ledger, what.runs)


def _forget_item(ledger: Ledger, key: ItemKey, stage: Stage, first_take: FirstTake) -> None:
    """Forget what an item is made of, and what was said about the attempts at it."""
    database = ledger.database
    if stage in (Stage.REFERENCE, Stage.PATTERN, Stage.REFINEMENT):
        _, content = ledger.purchases.item(key)
        rest = json.dumps(_rest(key, content, first_take), **_CANONICAL)
        database.execute("UPDATE items SET content = :content WHERE key = :key", key=key, content=rest)
    for attempt in ledger.purchases.attempts_of(key):
        about = {"request_id": attempt.request_id}
        body = attempt.body if stage is Stage.PRODUCT else digest_of_body(attempt.body)
        database.execute(_SHORTEN_ATTEMPT, about, body=body)
        database.execute(_WORDS, about)
        database.execute(_ANSWERS, about)
        for seq, detail in database.rows(_DECISIONS, about):
            without_note = orjson.dumps({**orjson.loads(detail), "note": ""}).decode()
            database.execute(
                "UPDATE events SET detail = :detail WHERE seq = :seq", seq=seq, detail=without_note
            )


def _rest(key: ItemKey, content: Mapping[str, Any], first_take: FirstTake) -> Mapping[str, Any]:
    """Return the part of an item's content that stays, which links it to other items."""
    if "take" not in content:
        links = {name: content[name] for name in ("sha256", "operation", "pattern") if name in content}
        return {FORGOTTEN: key, **links}
    first = {name: value for name, value in content.items() if name != "take"}
    return {FORGOTTEN: first_take(first), "take": content["take"]}


def _forgettable_rows(ledger: Ledger, run: RunRecord) -> list[tuple[Any, ...]]:
    """Return the position, row and outcome of each row of a run that can be forgotten."""
    return ledger.database.rows(_ROWS, vars(run), forgotten=f'{{"{FORGOTTEN}": %')


def _without_words(row: str) -> str:
    """Return the JSON of a row with only its decision and the codes of the reasons for which it was refused."""
    content = json.loads(row)
    rest = {name: content[name] for name in ("decision",) if name in content}
    if "problems" in content:
        codes = [problem["code"] for problem in content["problems"]]
        rest["problems"] = [{"code": code, "message": "", "remedy": ""} for code in codes]
    return json.dumps({FORGOTTEN: True, **rest})


def _short(outcome: str | None) -> str | None:
    """Return the JSON of an outcome without its reason and remedy."""
    return outcome and replace(RowOutcome.parse(outcome), error=None, remedy=None).as_json()


def _without_prompt(row: str | None) -> str | None:
    """Return the JSON of a row's content without its prompt and refinements; it can still be read as a content."""
    return row and json.dumps({**json.loads(row), "prompt": "", "refinements": []}, ensure_ascii=False)


def _forget_run(ledger: Ledger, run: RunRecord, scope: Mapping[str, str]) -> None:
    """Forget the notes, the reason and the groups of a run, and mark it as forgotten."""
    options = {name: value for name, value in run.options.items() if name != "notes"}
    options[FORGOTTEN] = run.options.get(FORGOTTEN) or moment(ledger.now())
    ledger.runs.update(replace(run, options=options, reason=None))
    ledger.database.execute("DELETE FROM run_groups WHERE run_id = :run_id", run_id=run.run_id)
    _forget_document(ledger, f"changes {run.run_id}")
    if digest := run.options.get("approval", {}).get("digest"):
        ledger.database.execute(_NOTES_OF_APPROVALS, scope, digest=digest)


def _forget_documents(ledger: Ledger, runs: Collection[RunRecord]) -> None:
    """Delete inputs and pictures that no run or item of any catalog needs any more."""
    contents = [json.loads(text) for (text,) in ledger.database.rows(_REFERENCES)]
    needed = {run.input_sha256 for run in ledger.runs.find() if FORGOTTEN not in run.options}
    needed |= {content["sha256"] for content in contents if FORGOTTEN not in content}
    unneeded = {run.input_sha256 for run in runs}
    unneeded |= {content["sha256"] for content in contents if FORGOTTEN in content}
    for name in unneeded - needed:
        _forget_document(ledger, name)


def _forget_document(ledger: Ledger, name: str) -> None:
    ledger.database.execute("DELETE FROM documents WHERE name = :name", name=name)
