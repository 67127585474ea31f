"""`python -m benchmarks.one_row [--list]`: how much of the program an import of one row runs.

It imports a row with the embedded studio and the command's own Prefect server, and notes by `sys.setprofile`, in all
threads of the command's process, each function of the packages that is called, and each SQL statement. What only loads
modules and classes is left out; comprehensions, generators and lambdas count.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from benchmarks.rooms import PACKAGES, ROOT

_FOLDERS = tuple(f"{ROOT}/{package}/" for package in PACKAGES)
_SQL = f"{ROOT}/patternmill/ledger/connections.py"
#: What begins, ends and makes, and so is no statement of a run.
_NO_STATEMENTS = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "CREATE")
_ROW = "sku,prompt,category,option:size,option:finish\nBENCH-1,blue herons among reeds,Mug,11oz,matte\n"


class Calls:
    """The functions that were called so far, by file and name, and the SQL statements."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.before_first_create: int | None = None
        self.statements: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(_FOLDERS) and code.co_flags & inspect.CO_NEWLOCALS:
            name = code.co_filename.removeprefix(f"{ROOT}/")
            self.functions.add((name, f"{code.co_qualname}:{code.co_firstlineno}"))
            if code.co_name == "_run" and code.co_filename == _SQL:
                self._note(str(frame.f_locals["sql"]))
        elif self.before_first_create is None and _is_create(frame):
            self.before_first_create = len(self.functions)

    def _note(self, sql: str) -> None:
        if not sql.lstrip().startswith(_NO_STATEMENTS):
            self.statements[" ".join(sql.split())] += 1

    @property
    def files(self) -> Counter[str]:
        return Counter(file for file, _ in self.functions)


def _is_create(frame: FrameType) -> bool:
    """Return whether aiohttp, which sends the service's requests, is asked to send one that buys."""
    code = frame.f_code
    if code.co_name != "_request" or not code.co_filename.endswith("aiohttp/client.py"):
        return False
    return str(frame.f_locals["str_or_url"]).endswith("/create")


def count(folder: Path) -> Calls:
    """Import one row in this process, at a home of its own."""
    for name in [name for name in os.environ if name.startswith(("PATTERNMILL_", "PREFECT_"))]:
        del os.environ[name]
    os.environ["PATTERNMILL_HOME"] = str(folder / "home")
    from cli.main import run

    rows = folder / "rows.csv"
    rows.write_text(_ROW, encoding="utf-8")
    calls = Calls()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        code = run(["import", str(rows), "--out", str(folder / "out"), "--catalog", "bench"])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code != 0 or calls.before_first_create is None:
        raise SystemExit(f"The import ended with {code}, and its first create was not seen or failed.")
    return calls


def main() -> None:
    """Print the figures, and with `--list` what they count."""
    with tempfile.TemporaryDirectory() as name:
        calls = count(Path(name))
    if "--list" in sys.argv:
        for file, function in sorted(calls.functions):
            print(f"{file}  {function}")
        for sql, times in calls.statements.most_common():
            print(f"{times:>3} x {sql[:150]}")
        for file, number in calls.files.most_common():
            print(f"{number:>4} {file}")
    print(f"functions                          {len(calls.functions):>5,}   target: at most 400")
    print(f"files                              {len(calls.files):>5,}   target: at most 50")
    print(f"functions before the first create  {calls.before_first_create:>5,}")
    print(f"SQL statements                     {calls.statements.total():>5,}   target: at most 80")


if __name__ == "__main__":
    main()
