"""What keeps a run going when the Prefect server does not answer: the screen is lost then, the work is not."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from patternmill.engine.shards import Shard
from patternmill.errors import PatternmillError
from patternmill.runs.run import ActiveRun

logger = logging.getLogger(__name__)

ShardFlow = Callable[[str, int], Awaitable[object]]


async def drive_shard(run: ActiveRun, part: Shard, as_flow: ShardFlow) -> None:
    """Drive a shard as a nested flow run; without one when the server has none to give.

    A shard is driven once, whoever does it: the second call finds nothing left to do. That covers a nested
    run that never began, one that could not report its end, and one that a retried parent takes for done.
    """
    try:
        await as_flow(run.name, part.number)
    except PatternmillError:
        raise
    except Exception as error:
        logger.info("%s: the Prefect server lost sight of it (%s)", part.describe(), type(error).__name__)
    await run.engine.drive(part, run.engine.make)
