"""The service's append-only record: what it executed and answered, as evidence that no client can touch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

Line = dict[str, Any]


class Record:
    """Appends JSON lines, each flushed at once, for who reads it meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, at: float, **fields: Any) -> None:
        self._file.write(json.dumps({"event": event, "at": round(at, 6), **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def lines_of(path: Path) -> Iterator[Line]:
    """Every whole line of a record; a missing file has none."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for text in file:
            if text.endswith("\n"):
                yield json.loads(text)
