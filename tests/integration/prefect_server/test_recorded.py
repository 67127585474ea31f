"""The end of a command against a real server: the record is waited for, within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from prefect_host.own_server import OwnServer

RUN = """
    import asyncio, json, logging, os, sys, time
    from pathlib import Path
    from prefect_host.own_server import OwnServer
    OwnServer(Path(sys.argv[1])).for_this_process()
    logging.raiseExceptions = False
    from prefect import flow, runtime, task
    from prefect.cache_policies import NO_CACHE
    from prefect_host.recorded import drain_senders, wait_for_record

    @task(cache_policy=NO_CACHE, persist_result=False)
    async def make(number): ...

    @flow(persist_result=False)
    async def bulk():
        await asyncio.gather(*map(make, range(100)))
        return runtime.flow_run.id

    flow_run_id = asyncio.run(bulk())
    began = time.monotonic()
    found = [drain_senders(10)]
    found += [wait_for_record(flow_run_id, 20, at_least=100), wait_for_record(flow_run_id, 1, at_least=101)]
    print(json.dumps([*found, time.monotonic() - began]), flush=True)
    os._exit(0)
"""


def test_record_of_a_hundred_task_runs_is_waited_for(
    script: Callable[..., Popen[str]], server: OwnServer, home: Path
) -> None:
    found, _ = script(RUN, str(home)).communicate(timeout=90)
    sent, is_complete, has_more, seconds = json.loads(found.splitlines()[-1])
    assert (sent, is_complete, has_more) == (True, True, False)
    assert seconds < 30
