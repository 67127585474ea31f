"""Helpers of the reliability tests: a catalog, a service that fails by plan, and imports as processes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.acceptance.zygote import CHECKOUT, PLAIN, Zygote
from tests.hostile import ExpectedRow, Hostile

__all__ = ["CHECKOUT", "Zygote"]

COMMAND = Path(sys.executable).with_name("patternmill")
#: Settings with short times, so that a fault is soon over; a test that is about times sets its own.
QUICK = {
    "PATTERNMILL_REQUEST_TIMEOUT": "PT0.6S",
    "PATTERNMILL_CREATE_TIMEOUT": "PT20S",
    "PATTERNMILL_JOB_TIMEOUT": "PT20S",
    "PATTERNMILL_CONFIRM_ABOVE": "100000",
}
HURRY = ("--first-pause", "0.05")

_GOODS: tuple[tuple[str, dict[str, str]], ...] = (
    ("Cushion", {"fabric": "linen", "size": "50x50"}),
    ("Mug", {"size": "11oz"}),
    ("Tote Bag", {"handle": "long", "size": "large"}),
    ("Wallpaper", {"finish": "matte", "width": "70cm"}),
)
_OPTIONS = ("fabric", "size", "handle", "finish", "width")


#: The chains of rows, in turn: none, one refinement, two, and a reference with one.
_CHAINS: tuple[dict[str, str], ...] = (
    {},
    {"refine:recolor": '{"palette": ["#1f3a5f"]}'},
    {"refine:recolor": '{"palette": ["#1f3a5f"]}', "refine:edit": '{"prompt": "no moon"}'},
    {"reference": "guide.png", "refine:edit": '{"prompt": "no moon"}'},
)
_EXTRAS = ("reference", "refine:recolor", "refine:edit")


def chained_rows(count: int, *, about: str = "herons") -> list[ExpectedRow]:
    """Return the rows of `some_rows` with references and refinements, some shared by rows of one prompt."""
    rows = some_rows(count, about=about)
    return [replace(row, extras=_CHAINS[number // 2 % len(_CHAINS)]) for number, row in enumerate(rows)]


def some_rows(count: int, *, about: str = "herons", shared: int = 4, goods: int = 4) -> list[ExpectedRow]:
    """Return rows of a catalog; of every `shared` rows, two have the same prompt."""
    rows = []
    for number in range(count):
        motif = number - 1 if shared and number % shared == 1 else number
        category, selections = _GOODS[number % goods]
        rows.append(ExpectedRow(f"{about}-{number:04}", f"{about} no. {motif}, ink", category, selections))
    return rows


def write_csv(path: Path, rows: Sequence[ExpectedRow]) -> Path:
    extras = _EXTRAS if any(row.extras for row in rows) else ()
    columns = ["sku", "prompt", "category", *(f"option:{name}" for name in _OPTIONS), *extras]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for row in rows:
            options = {f"option:{name}": value for name, value in row.selections.items()}
            named = {"sku": row.sku, "prompt": row.prompt, "category": row.category}
            writer.writerow({**named, **options, **row.extras})
    if extras:
        (path.parent / "guide.png").write_bytes(b"\x89PNG\r\n\x1a\n" + path.name.encode())
    return path


@dataclass(frozen=True)
class Ended:
    """How a process ended; a negative code is the signal that killed it."""

    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


@dataclass
class Started:
    """A running command."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self.err.read_text("utf-8", "replace")

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def outlives(self, seconds: float) -> bool:
        """Return whether it still runs after this time."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.runs

    def wait(self, timeout: float = 180.0) -> Ended:
        """Wait for its end; one that takes too long is killed, and the test fails."""
        if self.outlives(timeout):
            self.kill()
            raise AssertionError(f"it did not end in {timeout} s:\n{self.output}")
        return Ended(self.process.returncode, self.out.read_text("utf-8", "replace"), self.output)

    def kill(self) -> Ended:
        self.send(signal.SIGKILL)
        return self.wait(10)


Start = Callable[..., "subprocess.Popen[Any]"]


def started(start: Start, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Started:
    """Start a command in a folder, with files for what it prints, and return it."""
    out, err = (folder / f"{time.monotonic_ns()}.{name}" for name in ("out", "err"))
    with out.open("wb") as output, err.open("wb") as errors:
        how = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
        process = start(arguments, cwd=folder, env=clean_environment() | environment, **how)
    return Started(process, out, err)


def clean_environment() -> dict[str, str]:
    """Return the environment without any of the caller's own settings."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PATTERNMILL_", "PREFECT_"))
    }


@dataclass
class Room:
    """A catalog in a folder of its own, with the service that makes it."""

    folder: Path
    service: Hostile
    rows: list[ExpectedRow]
    zygote: Zygote
    settings: dict[str, str] = field(default_factory=dict)
    home: str = "home"
    catalog: str = "herons"

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = write_csv(self.folder / f"{self.catalog}.csv", self.rows)
        self.operations = self.folder / "operations.json"
        # The operator states that the service recognises repeated refinements and uploads too.
        self.operations.write_text(json.dumps({"staging": {"repeatable": True}}))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATTERNMILL_STUDIO_URL": self.service.url,
            "PATTERNMILL_API_KEY": self.service.key,
            "PATTERNMILL_HOME": str(self.folder / self.home),
            "PATTERNMILL_OPERATIONS_FILE": str(self.operations),
            **QUICK,
            **self.settings,
        }

    @property
    def out(self) -> Path:
        return self.folder / f"results-{self.home}"

    def start(self, *options: str, inject: Sequence[str] = HURRY, **settings: str) -> Started:
        """Start an import of the catalog; `inject` is what the test does to the program."""
        environment = {**self.environment, **{f"PATTERNMILL_{n.upper()}": v for n, v in settings.items()}}
        named = (str(self.file), "--out", str(self.out))
        arguments = [sys.executable, "-m", PLAIN, *inject, "--", *named, *options]
        return started(self.zygote.start, self.folder, arguments, environment)

    def run(self, *options: str, timeout: float = 180.0, **settings: Any) -> Ended:
        return self.start(*options, **settings).wait(timeout)


def wait_for(record: Path, text: str, *, count: int = 1, timeout: float = 60.0) -> None:
    """Wait until a record holds a text so many times."""
    until = time.monotonic() + timeout
    while not record.exists() or record.read_text("utf-8").count(text) < count:
        assert time.monotonic() < until, f"{text!r} was not seen {count} times"
        time.sleep(0.01)
