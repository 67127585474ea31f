"""The end of a command against a real server: the record is waited for, within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import Popen

from prefect_host.own_server import OwnServer

RUN = """
    import asyncio, json, logging, os, sys
    from pathlib import Path
    from prefect_host import connection
    from prefect_host.connection import PrefectConnection
    shown = PrefectConnection(Path(sys.argv[1]), print)
    shown.wait()
    logging.raiseExceptions = False
    from prefect import flow, runtime, task
    from prefect.cache_policies import NO_CACHE

    @task(cache_policy=NO_CACHE, persist_result=False)
    async def make(number): ...

    @flow(persist_result=False)
    async def bulk():
        await asyncio.gather(*map(make, range(100)))
        return runtime.flow_run.id

    flow_run_id = asyncio.run(bulk())
    ends = [shown.finish(flow_run_id, 100)]
    connection.MOST_END_SECONDS = 1
    ends += [shown.finish(flow_run_id, 101)]
    print(json.dumps(ends), flush=True)
    os._exit(0)
"""


def test_record_of_a_hundred_task_runs_is_waited_for(
    script: Callable[..., Popen[str]], joint_server: OwnServer
) -> None:
    found, _ = script(RUN, str(joint_server.directory.parent)).communicate(timeout=90)
    assert json.loads(found.splitlines()[-1]) == [True, False]
