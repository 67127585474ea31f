"""The service's append-only record: what it executed and answered, as evidence that no client can touch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

Line = dict[str, Any]


class Record:
    """Appends JSON lines, each flushed to the operating system: they outlive a kill of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_half_a_line(path)
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, at: float, **fields: Any) -> None:
        self._file.write(json.dumps({"event": event, "at": round(at, 6), **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _drop_half_a_line(path: Path) -> None:
    """A kill in mid-write leaves half a line; its request was never answered, so it did not happen."""
    if not path.exists():
        return
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if len(whole) < len(raw):
        path.write_bytes(whole)


def lines_of(path: Path) -> Iterator[Line]:
    """Every whole line of a record; a missing file has none."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for text in file:
            if text.endswith("\n"):
                yield json.loads(text)
