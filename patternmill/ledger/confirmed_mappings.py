"""Which column is which in the files of a catalog, as a person confirmed it: one mapping a catalog."""

from __future__ import annotations

import json

from patternmill.ledger.database import Tables
from patternmill.ledger.records import ConfirmedMapping


class MappingTable(Tables):
    """The mappings, by the name of their catalog."""

    def confirmed_mapping(self, catalog: str) -> ConfirmedMapping | None:
        found = self._row(
            "SELECT columns, reading, confirmed_by, confirmed_at FROM column_mappings WHERE catalog = :catalog",
            catalog=catalog,
        )
        if found is None:
            return None
        columns, reading, by, at = found
        return ConfirmedMapping(json.loads(columns), json.loads(reading), by, at)

    def confirm_mapping(self, catalog: str, mapping: ConfirmedMapping) -> None:
        """In place of an earlier one. Its time is the ledger's."""
        self.database.execute(
            "INSERT INTO column_mappings (catalog, columns, reading, confirmed_by, confirmed_at) "
            "VALUES (:catalog, :columns, :reading, :by, :now) ON CONFLICT (catalog) DO UPDATE SET "
            "columns = excluded.columns, reading = excluded.reading, "
            "confirmed_by = excluded.confirmed_by, confirmed_at = excluded.confirmed_at",
            {
                "catalog": catalog,
                "columns": json.dumps(dict(mapping.columns)),
                "reading": json.dumps(dict(mapping.reading)),
                "by": mapping.confirmed_by,
                "now": self.now(),
            },
        )

    def forget_mapping(self, catalog: str) -> bool:
        """Whether there was one."""
        forgotten = self.database.execute(
            "DELETE FROM column_mappings WHERE catalog = :catalog", {"catalog": catalog}
        )
        return forgotten > 0
