"""One part as a process of its own, without Prefect: `part_process RUN NUMBER GRANT ENVIRONMENT`."""

from __future__ import annotations

import asyncio
import sys

from patternmill.errors import LeaseLost
from patternmill.identifiers import RunId
from patternmill.runs.assignment import assignment
from patternmill.runs.part_worker import PartWork

#: The exit code of a part that was assigned to another process.
FENCED = 9


async def main(run_id: str, number: str, grant: str, environment: str) -> int:
    work = PartWork(assignment(RunId(run_id), int(number), environment), int(grant))
    try:
        async with work as part:
            await part.engine.drive()
    except LeaseLost:
        return FENCED
    reason = part.halt.reason
    return FENCED if reason is not None and reason.code == "fenced" else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
