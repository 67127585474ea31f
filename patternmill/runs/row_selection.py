"""The rows of an earlier run that are taken up again: written beside its input, read by the run that does it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from patternmill.catalog.rows import Row
from patternmill.errors import ConfigurationError
from patternmill.results.atomic_files import write_whole


@dataclass(frozen=True)
class Selection:
    """Which rows a retry works on; all others stand as they are."""

    #: The run whose rows were chosen from.
    run_id: str
    #: Its input, as the person named it then.
    source: str
    skus: frozenset[str]

    def chooses(self, row: Row) -> bool:
        return row.sku in self.skus


def write_selection(selection: Selection, path: Path) -> None:
    values = asdict(selection) | {"skus": sorted(selection.skus)}
    write_whole(path, [json.dumps(values, ensure_ascii=False).encode()])


def read_selection(path: Path) -> Selection:
    """Raises ConfigurationError when `path` cannot be read as one."""
    try:
        values = json.loads(path.read_bytes())
        return Selection(str(values["run_id"]), str(values["source"]), frozenset(map(str, values["skus"])))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} does not say which rows are to be taken up again ({type(error).__name__}).",
            remedy="Use `patternmill retry`, which writes it.",
        ) from error
