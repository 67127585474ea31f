"""Helpers of the reliability tests: a catalog, a service that fails by plan, and imports as processes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.hostile import ExpectedRow, Hostile

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("patternmill")
#: Times that let a fault be over soon; a test names others where it is about them.
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
    """The same rows with references and refinements, some of which rows of one prompt share."""
    rows = some_rows(count, about=about)
    return [replace(row, extras=_CHAINS[number // 2 % len(_CHAINS)]) for number, row in enumerate(rows)]


def some_rows(count: int, *, about: str = "herons", shared: int = 4, goods: int = 4) -> list[ExpectedRow]:
    """Rows of a catalog; of every `shared` rows two have one prompt."""
    rows = []
    for number in range(count):
        motif = number - 1 if shared and number % shared == 1 else number
        category, selections = _GOODS[number % goods]
        rows.append(ExpectedRow(f"{about}-{number:04}", f"{about} no. {motif}, ink", category, selections))
    return rows


def write_csv(path: Path, rows: Sequence[ExpectedRow]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        extras = _EXTRAS if any(row.extras for row in rows) else ()
        writer.writerow(["sku", "prompt", "category", *(f"option:{name}" for name in _OPTIONS), *extras])
        for row in rows:
            cells = [row.selections.get(name, "") for name in _OPTIONS]
            writer.writerow(
                [row.sku, row.prompt, row.category, *cells, *(row.extras.get(n, "") for n in extras)]
            )
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
    """An import that runs."""

    pid: int
    folder: Path
    end_file: Path
    began: float = field(default_factory=time.monotonic)

    def send(self, number: signal.Signals) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return

    @property
    def runs(self) -> bool:
        return not self.end_file.exists()

    def wait(self, timeout: float = 180.0) -> Ended:
        """Wait for its end; one that takes too long is killed, and the test fails."""
        until = time.monotonic() + timeout
        while self.runs:
            if time.monotonic() > until:
                self.send(signal.SIGKILL)
                raise AssertionError(f"it did not end in {timeout} s:\n{self._text('err')}")
            time.sleep(0.003)
        return Ended(int(self.end_file.read_text()), self._text("out"), self._text("err"))

    def kill(self) -> Ended:
        self.send(signal.SIGKILL)
        return self.wait(10)

    def _text(self, name: str) -> str:
        path = self.folder / f"{self.end_file.stem}.{name}"
        return path.read_text("utf-8", "replace") if path.exists() else ""


class Zygote:
    """Starts plain imports from a warm process."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(CHECKOUT)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.zygote"],
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the warm process did not start"
        self._lock = threading.Lock()
        self._count = 0

    def start(self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> Started:
        with self._lock:
            self._count += 1
            name = f"import-{self._count:05}"
            pid_file, end_file = folder / f"{name}.pid", folder / f"{name}.end"
            order = {
                "cwd": str(folder),
                "env": dict(environment),
                "arguments": list(arguments),
                "out": str(folder / f"{name}.out"),
                "err": str(folder / f"{name}.err"),
                "pid_file": str(pid_file),
                "end_file": str(end_file),
            }
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        until = time.monotonic() + 60
        while not pid_file.exists():
            assert time.monotonic() < until, "the warm process does not answer"
            time.sleep(0.002)
        return Started(int(pid_file.read_text()), folder, end_file)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


@dataclass
class Room:
    """One catalog in a folder of its own, with the service that it is made by."""

    folder: Path
    service: Hostile
    rows: list[ExpectedRow]
    zygote: Zygote
    settings: dict[str, str] = field(default_factory=dict)
    home: str = "home"
    catalog: str = "herons"
    #: A person says that the service recognises repeated refinements and uploads too.
    repeatable: bool = True

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = write_csv(self.folder / f"{self.catalog}.csv", self.rows)
        self.operations = self.folder / "operations.json"
        self.operations.write_text(json.dumps({"staging": {"repeatable": self.repeatable}}))

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

    def start(
        self, *options: str, inject: Sequence[str] = HURRY, verb: str = "import", **settings: str
    ) -> Started:
        """Start an import of the catalog, or another verb; `inject` is what the test does to the program."""
        environment = {**self.environment, **{f"PATTERNMILL_{n.upper()}": v for n, v in settings.items()}}
        named = (str(self.file), "--out", str(self.out)) if verb == "import" else ()
        arguments = [*inject, "--verb", verb, "--", *named, *options]
        return self.zygote.start(self.folder, arguments, environment)

    def run(self, *options: str, timeout: float = 180.0, **settings: Any) -> Ended:
        return self.start(*options, **settings).wait(timeout)


def wait_for(record: Path, text: str, *, count: int = 1, timeout: float = 60.0) -> None:
    """Until a record holds a text so many times."""
    until = time.monotonic() + timeout
    while not record.exists() or record.read_text("utf-8").count(text) < count:
        assert time.monotonic() < until, f"{text!r} was not seen {count} times"
        time.sleep(0.01)
