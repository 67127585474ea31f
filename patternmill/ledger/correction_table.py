"""The corrections of each catalog, and which of them were merged into a run's input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from patternmill.catalog.row_corrections import Correction, CorrectionEnd
from patternmill.identifiers import RunId
from patternmill.ledger.database import Tables
from patternmill.ledger.records import RunRecord

_COLUMNS = "source_row, corrected, sku, field, was, value, run_id, at, ended_at, ended"


class CorrectionTable(Tables):
    """What was corrected is never deleted: a correction ends, with the reason."""

    def corrections(self, environment: str, catalog: str, *, ended: bool = False) -> list[Correction]:
        """Those that hold, in the order in which they came; with `ended`, all that there ever were."""
        found = self.database.rows(
            f"SELECT {_COLUMNS} FROM corrections WHERE environment = :environment AND catalog = :catalog "  # noqa: S608
            f"{'' if ended else 'AND ended_at IS NULL'} ORDER BY at, run_id, sku, source_row, field",
            {"environment": environment, "catalog": catalog},
        )
        return [_correction(*values) for values in found]

    def active_corrections(self) -> list[tuple[str, str, int]]:
        """How many hold: environment, catalog, count."""
        rows = self.database.rows(
            "SELECT environment, catalog, count(*) FROM corrections WHERE ended_at IS NULL "
            "GROUP BY environment, catalog ORDER BY catalog, environment"
        )
        return [(environment, catalog, count) for environment, catalog, count in rows]

    def add_corrections(self, record: RunRecord, added: Sequence[Correction]) -> None:
        """Those of a run's input. The row's other corrections lead to what identifies it now."""
        scope = {"environment": record.environment, "catalog": record.catalog}
        rows = [
            scope
            | {"source_row": one.source_row, "corrected": one.row, "sku": one.sku, "field": one.column}
            | {"was": one.was, "value": one.value, "run_id": record.run_id, "at": self.now()}
            for one in added
        ]
        self.database.execute_many(
            "INSERT INTO corrections (environment, catalog, source_row, corrected, sku, field, was, value, run_id, at) "
            "VALUES (:environment, :catalog, :source_row, :corrected, :sku, :field, :was, :value, :run_id, :at)",
            rows,
        )
        self.database.execute_many(
            "UPDATE corrections SET corrected = :corrected, sku = :sku WHERE environment = :environment "
            "AND catalog = :catalog AND source_row = :source_row AND ended_at IS NULL",
            ({name: row[name] for name in (*scope, "source_row", "corrected", "sku")} for row in rows),
        )

    def end_corrections(
        self, environment: str, catalog: str, ended: Iterable[tuple[Correction, CorrectionEnd]]
    ) -> None:
        self.database.execute_many(
            "UPDATE corrections SET ended_at = :now, ended = :ended WHERE environment = :environment "
            "AND catalog = :catalog AND source_row = :source_row AND field = :field AND run_id = :run_id "
            "AND ended_at IS NULL",
            (
                {"environment": environment, "catalog": catalog, "now": self.now(), "ended": end.value}
                | {"source_row": one.source_row, "field": one.column, "run_id": one.run_id}
                for one, end in ended
            ),
        )

    def add_merged(self, run_id: RunId, merged: Iterable[Correction]) -> None:
        """What was merged into the input of a run."""
        self.database.execute_many(
            "INSERT INTO merged_corrections (run_id, position, sku, field, was, value, made_by) "
            "VALUES (:run_id, :position, :sku, :field, :was, :value, :made_by)",
            (
                {"run_id": run_id, "position": position, "sku": one.sku, "field": one.column}
                | {"was": one.was, "value": one.value, "made_by": one.run_id}
                for position, one in enumerate(merged)
            ),
        )

    def merged_into(self, run_id: RunId) -> list[Correction]:
        """What was merged into the input of a run, in the order of its rows."""
        return [
            Correction("", "", *values)
            for values in self.database.rows(
                "SELECT sku, field, was, value, made_by FROM merged_corrections WHERE run_id = :run_id "
                "ORDER BY position",
                {"run_id": run_id},
            )
        ]


def _correction(*values: object) -> Correction:
    found = Correction(*values)  # type: ignore[arg-type]
    return replace(found, end=CorrectionEnd(str(found.end))) if found.end is not None else found
