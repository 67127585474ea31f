"""An import without Prefect, as the process that a rehearsal kills: its arguments are file, catalog and results."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from cli.terminal import echo
from patternmill.errors import PatternmillError
from patternmill.processes import collect_rarely
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import import_spec
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

_LEFT_ALONE = 99


def main(arguments: Sequence[str] | None = None) -> int:
    """Settings come from the environment, as always. Returns the exit code of `import`."""
    file, catalog, out = sys.argv[1:] if arguments is None else arguments
    threading.Thread(target=_end_with_parent, daemon=True).start()
    collect_rarely()
    try:
        return EXIT_CODES[asyncio.run(_run(ImportRequest(file=Path(file), catalog=catalog, out=Path(out))))]
    except PatternmillError as error:
        echo(f"{error.message} {error.remedy}", err=True)
        return EXIT_REFUSED


async def _run(request: ImportRequest) -> Outcome:
    begun: list[Run] = []
    async with Pipeline(import_spec(request), begun.append) as work:
        await work.run_through()
    return begun[0].record.outcome or Outcome.FAILED


def _end_with_parent() -> None:
    """Standard input is a pipe that ends with the rehearsal, however that ends."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(_LEFT_ALONE)


if __name__ == "__main__":
    sys.exit(main())
