"""The checkouts of orders: one a name, with its address and the order that it became."""

import time
from typing import Any

from patternmill.ledger.connections import Connection
from patternmill.ledger.database import Database

_FIND = """
SELECT checkouts.*, attempts.state, attempts.result_id, attempts.code, attempts.message, attempts.request_id
FROM checkouts LEFT JOIN attempts ON attempts.item_id = checkouts.item_id AND attempts.number = (
    SELECT MAX(number) FROM attempts WHERE item_id = checkouts.item_id
)
WHERE checkouts.environment = :environment AND checkouts.name = :name
"""
#: Gives a name other lines only where those that were seen came to nothing.
_CLAIM = """
INSERT INTO checkouts (environment, name, catalog, item_id, pieces, at)
VALUES (:environment, :name, :catalog, :item_id, :pieces, :at)
ON CONFLICT (environment, name) DO UPDATE SET
    catalog = excluded.catalog, item_id = excluded.item_id, pieces = excluded.pieces, at = excluded.at
WHERE checkouts.item_id IN (excluded.item_id, :seen)
"""
_ORDERED = "UPDATE checkouts SET made_order = :made_order WHERE environment = :environment AND name = :name"


def find_checkout(database: Database, environment: str, name: str) -> Any:
    """Return the checkout of a name with its last attempt, whose fields are None before there is one; None: no such."""
    return next(iter(database.read(_FIND, environment=environment, name=name)), None)


def claim(connection: Connection, *, seen: str, **checkout: Any) -> bool:
    """Give a name to a checkout; False where the name has others by now. `seen`: the item that may be replaced."""
    return connection.execute(_CLAIM, **checkout, seen=seen, at=time.time()) == 1


def note_order(database: Database, environment: str, name: str, made_order: str) -> None:
    """Keep what became of a checkout, in the service's words."""
    values = {"environment": environment, "name": name, "made_order": made_order}
    database.change(lambda connection: connection.execute(_ORDERED, **values))
