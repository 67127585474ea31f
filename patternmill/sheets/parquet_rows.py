"""Parquet rows: texts as they are, whole numbers as digits; what has no one way to be written is not taken for text."""

from __future__ import annotations

import io
import json
from typing import Any

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.errors import InputRefused
from patternmill.sheets.tables import Sheet, Unfit, rectangular

PARQUET = b"PAR1"
#: So few that even their longest texts fit into memory.
_BATCH = 1024
_REMEDY = "store the column as text"


def parquet_sheet(raw: bytes, reading: Reading) -> Sheet:
    """The rows, from row 2 on: the header is row 1. Raises InputRefused."""
    # Slow to import: loaded for such a file alone.
    import pyarrow.parquet as parquet  # type: ignore[import-untyped]

    try:
        file = parquet.ParquetFile(io.BytesIO(raw))
        meta, names = file.metadata, [*file.schema_arrow.names]
        reading.check_cells(meta.num_rows + 1, len(names))
        reading.check_size(sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)))
        rows: list[tuple[int, list[Any]]] = []
        size = 0
        for batch in file.iter_batches(batch_size=_BATCH):
            size += batch.nbytes
            reading.check_size(size)
            reading.check_time()
            columns = [column.to_pylist() for column in batch.columns]
            rows += enumerate(map(list, zip(*columns, strict=True)), len(rows) + 2)
    except InputRefused:
        raise
    except Exception as error:
        # Of pyarrow, which has one for each damage.
        raise refusal(
            FileCode.FILE_UNREADABLE, f"{reading.name} is a damaged Parquet file.", "Write it again."
        ) from error
    unfit: dict[tuple[int, int], Unfit] = {}
    for number, cells in rows:
        for index, value in enumerate(cells):
            cells[index], fault = _cell(value)
            if fault is not None:
                unfit[number, index] = fault
    return Sheet(rectangular([(1, names), *rows], reading), unfit)


def _cell(value: Any) -> tuple[str, Unfit | None]:
    if value is None or value != value:
        # Nothing, or no number.
        return "", None
    if isinstance(value, str):
        return value, None
    if isinstance(value, bool):
        return str(value).upper(), None
    if isinstance(value, int):
        return str(value), None
    if isinstance(value, (dict, list)):
        return json.dumps(_filled(value), ensure_ascii=False, default=str), None
    noun = "number" if isinstance(value, float) else type(value).__name__
    return str(value), Unfit(f"the {noun} {value}, not text", _REMEDY)


def _filled(value: Any) -> Any:
    """A record has every field of its column; those without a value say nothing."""
    return {key: one for key, one in value.items() if one is not None} if isinstance(value, dict) else value
