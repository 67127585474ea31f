"""`python -m benchmarks.one_row`: how much of the five packages an import of one row executes.

It imports a row with the embedded studio and the command's own Prefect server, and counts with `sys.setprofile`, in all
threads of the command's process, each function that was called. Code that only loads modules and classes is left out.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

from benchmarks.house.rooms import PACKAGES
from benchmarks.measure import CHECKOUT

FOLDERS = tuple(f"{CHECKOUT}/{package}/" for package in PACKAGES)
ROW = "sku,prompt,category,option:size,option:finish\nBENCH-1,blue herons among reeds,Mug,11oz,matte\n"


class Calls:
    """The functions called so far, by file and qualified name, and how many came before the first create request."""

    def __init__(self, folders: tuple[str, ...] = FOLDERS) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.before_first_create: int | None = None
        self._folders = folders

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(self._folders) and code.co_flags & inspect.CO_NEWLOCALS:
            self.functions.add((code.co_filename, code.co_qualname))
        elif self.before_first_create is None and is_create(frame):
            self.before_first_create = len(self.functions)

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}


def is_create(frame: FrameType) -> bool:
    """Return whether aiohttp, which sends the service's requests, is asked to send one that buys."""
    code = frame.f_code
    if code.co_name != "_request" or not code.co_filename.endswith("aiohttp/client.py"):
        return False
    return str(frame.f_locals["str_or_url"]).endswith("/create")


def count(folder: Path) -> Calls:
    """Import one row in this process, at a home of its own."""
    from cli.main import run

    for name in [name for name in os.environ if name.startswith(("PATTERNMILL_", "PREFECT_"))]:
        del os.environ[name]
    os.environ["PATTERNMILL_HOME"] = str(folder / "home")
    rows = folder / "rows.csv"
    rows.write_text(ROW, encoding="utf-8")
    calls = Calls()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        code = run(["import", str(rows), "--out", str(folder / "out"), "--catalog", "bench"])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code != 0 or calls.before_first_create is None:
        raise SystemExit(
            f"The import ended with {code}, and its first create request was not seen or failed."
        )
    return calls


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        calls = count(Path(name))
    print(f"functions                             {len(calls.functions):>7,}   target: at most 350")
    print(f"files                                 {len(calls.files):>7,}   target: at most 45")
    print(f"functions before the first create     {calls.before_first_create:>7,}")


if __name__ == "__main__":
    main()
