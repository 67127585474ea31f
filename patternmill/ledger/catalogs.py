"""The rows of catalogs, what became of them, and the last answers of the service about what it offers."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

from patternmill.changes import Known
from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database
from patternmill.states import CatalogRow

_MINE = "environment = :environment AND catalog = :catalog"
_KNOWN = f"""
SELECT key, sku, wants, likeness, content, retired, has_product_id, pattern, take, refusal FROM row_states
WHERE {_MINE}
"""
_ROWS = """
SELECT key, sku, position, number, run, COALESCE(runs.header, '[]') AS header, cells, content, likeness, pattern, take,
    refusal, wants, built_on, has, since, retired, status, code, row_states.message AS message, verdict, note,
    product_id, pattern_id, has_product_id, has_body
FROM row_states LEFT JOIN runs ON runs.id = row_states.run
WHERE row_states.environment = :environment AND row_states.catalog = :catalog ORDER BY position, key
"""
_STORED = f"""
SELECT key, sku, position, number, run, cells, corrects, refusal, wants, retired FROM catalog_rows WHERE {_MINE}
"""
_MADE = "SELECT result_id, body FROM attempts WHERE environment = :environment AND result_id IN (:names...)"
_CORRECTIONS = f"""
SELECT corrects, cells, (SELECT header FROM runs WHERE id = run) AS header FROM catalog_rows
WHERE {_MINE} AND corrects <> '' ORDER BY position
"""
_SHEETS = f"SELECT id, header, mapping FROM runs WHERE {_MINE} ORDER BY started_at"
_RETIRED = """
SELECT likeness, sku FROM row_states WHERE environment = :environment AND retired IS NOT NULL
    AND has_product_id <> '' AND catalog <> :catalog AND NOT EXISTS (
        SELECT 1 FROM catalog_rows AS other
        WHERE other.environment = row_states.environment AND other.likeness = row_states.likeness
            AND other.retired IS NULL
    )
"""
#: Rows of other catalogs that share patterns of one.
_ELSEWHERE = """
SELECT other.pattern, other.catalog, other.sku FROM catalog_rows AS other
WHERE other.environment = :environment AND other.catalog <> :catalog AND other.retired IS NULL AND other.pattern IN (
    SELECT pattern FROM catalog_rows WHERE environment = :environment AND catalog = :catalog AND pattern <> ''
) ORDER BY other.catalog, other.position
"""
_COLUMNS = (
    "key", "sku", "position", "number", "run", "cells", "corrects", "content", "likeness", "pattern", "take", "refusal",
    "wants", "built_on", "since",
)  # fmt: skip
#: What a row wanted before, if that was made, is what it has until the new one is.
_HAS = """has = CASE
        WHEN EXISTS (SELECT 1 FROM attempts WHERE item_id = catalog_rows.wants AND state = 'succeeded')
        THEN catalog_rows.wants ELSE catalog_rows.has
    END"""
#: Gives a row what the sheet says now.
_WRITE = f"""
INSERT INTO catalog_rows (environment, catalog, {", ".join(_COLUMNS)}, has)
VALUES (:environment, :catalog, :{", :".join(_COLUMNS)}, '')
ON CONFLICT (environment, catalog, key) DO UPDATE SET
    {", ".join(map("{0} = excluded.{0}".format, _COLUMNS[1:]))}, retired = NULL,
    {_HAS}
"""
_WANT = f"""
UPDATE catalog_rows SET
    wants = :wants, built_on = :built_on, likeness = :likeness, pattern = :pattern, take = :take, {_HAS}
WHERE {_MINE} AND key = :key
"""
_RETIRE = f"UPDATE catalog_rows SET retired = :at WHERE {_MINE} AND key = :key AND retired IS NULL"
_FORGET = f"DELETE FROM catalog_rows WHERE {_MINE} AND key = :key"
_REMEMBER = """
INSERT INTO offers (environment, category_id, answer, read_at) VALUES (:environment, :category_id, :answer, :at)
ON CONFLICT (environment, category_id) DO UPDATE SET answer = excluded.answer, read_at = excluded.read_at
"""
_RECALL = "SELECT answer FROM offers WHERE environment = :environment AND category_id = :category_id"


def known_rows(database: Database, environment: str, catalog: str) -> list[Known]:
    """Return the rows of a catalog as a plan compares them with a sheet."""
    return list(map(Known._make, database.read(_KNOWN, environment=environment, catalog=catalog)))


def retired_skus(database: Database, environment: str, catalog: str) -> dict[str, str]:
    """Return a sku by each likeness that only retired rows of other catalogs have."""
    return dict(database.read(_RETIRED, environment=environment, catalog=catalog))


def stored_rows(database: Database, environment: str, catalog: str) -> dict[str, Any]:
    """Return what is stored of each row, by key."""
    rows = database.read(_STORED, environment=environment, catalog=catalog)
    return dict(zip(map(attrgetter("key"), rows), rows, strict=True))


def corrections(database: Database, environment: str, catalog: str) -> list[Any]:
    """Return header and cells of each row that was corrected in an import, and the cells that it corrects."""
    return database.read(_CORRECTIONS, environment=environment, catalog=catalog)


def sheets(database: Database, environment: str, catalog: str) -> list[Any]:
    """Return header and mapping of the sheet of each run, the oldest first."""
    return database.read(_SHEETS, environment=environment, catalog=catalog)


def catalog_rows(database: Database, environment: str, catalog: str) -> list[CatalogRow]:
    """Return the rows of a catalog as they are now, retired ones too, by position."""
    found = database.read(_ROWS, environment=environment, catalog=catalog)
    ids, rows = set[str](), list[CatalogRow]()
    for row in found:
        if row.has_body and not row.product_id:
            ids.add(json.loads(row.has_body)["patternId"])
    prompts: dict[str, str] = {}
    for one in database.read(_MADE, sorted(ids), environment=environment) if ids else []:
        prompts[one.result_id] = json.loads(one.body).get("prompt", "")
    for row in found:
        if row.refusal:
            refusal = json.loads(row.refusal)
            why = f"{refusal['message']}; {refusal['remedy']}"
            row = row._replace(code=refusal["code"], message=why)
        rows.append(CatalogRow(*row[:-1], *_made_of(json.loads(row.has_body or "{}"), prompts)))
    return rows


def _made_of(body: Mapping[str, Any], prompts: Mapping[str, str]) -> Sequence[str]:
    """Return the pattern's ID and, where its prompt was asked for, the content that a product's body says."""
    pattern = body.get("patternId", "")
    if pattern not in prompts:
        return pattern, ""
    said = {"prompt": prompts[pattern], "category": body["categoryId"], "selections": body["selections"]}
    return pattern, json.dumps(said, ensure_ascii=False)


def shared_elsewhere(database: Database, environment: str, catalog: str) -> dict[str, list[str]]:
    """Return the living rows of other catalogs that share a pattern of this one, by pattern, in words."""
    found: dict[str, list[str]] = {}
    for row in database.read(_ELSEWHERE, environment=environment, catalog=catalog):
        found.setdefault(row.pattern, []).append(f"{row.catalog}: {row.sku}")
    return found


def write_rows(
    connection: Connection, environment: str, catalog: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Write rows that differ from what is stored."""
    place = {"environment": environment, "catalog": catalog, "since": time.time()}
    connection.execute_many(_WRITE, list(map(place.__or__, map(dict, rows))))


def want_rows(
    connection: Connection, environment: str, catalog: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Let rows that are on record want other items; what they say stays as it is."""
    place = {"environment": environment, "catalog": catalog}
    connection.execute_many(_WANT, list(map(place.__or__, map(dict, rows))))


def drop_rows(
    connection: Connection, environment: str, catalog: str, gone: Collection[str], replaced: Collection[str]
) -> None:
    """Retire the rows that are gone, and forget those without a usable sku that a new sheet replaces."""
    place = {"environment": environment, "catalog": catalog}
    connection.execute_many(_RETIRE, [{**place, "key": key, "at": time.time()} for key in gone])
    connection.execute_many(_FORGET, [{**place, "key": key} for key in replaced])


def remember_offers(connection: Connection, environment: str, answers: Mapping[str, Any]) -> None:
    """Keep answers about the offer by category ID; the ID is empty for the list of categories."""
    values, place = list[dict[str, Any]](), {"environment": environment, "at": time.time()}
    for name, answer in answers.items():
        values.append({**place, "category_id": name, "answer": json.dumps(answer)})
    connection.execute_many(_REMEMBER, values)


def recall_offer(database: Database, environment: str, category_id: str) -> Any:
    """Return the last answer about the offer, or None where there never was one."""
    found = database.read(_RECALL, environment=environment, category_id=category_id)
    return json.loads(found[0].answer) if found else None
