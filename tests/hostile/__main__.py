"""`python -m tests.hostile`: the hostile service as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from pathlib import Path

from tests.hostile.plan import Plan
from tests.hostile.service import HostileService


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--ready-file", type=Path, required=True)
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--certificate", type=Path, help="PEM file with certificate and key: serve TLS")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    plan = Plan.load(options.plan) if options.plan else Plan()
    keys = tuple(os.environ["HOSTILE_API_KEY"].split(","))
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    tls = _tls(options.certificate)
    async with HostileService(plan, options.record, keys=keys, port=options.port, tls=tls) as service:
        announce(options.ready_file, {"url": service.url, "elsewhere": service.elsewhere, "pid": os.getpid()})
        await asyncio.wait(
            [asyncio.ensure_future(stopped.wait()), asyncio.ensure_future(orphaned())],
            return_when=asyncio.FIRST_COMPLETED,
        )


def _tls(certificate: Path | None) -> object:
    if certificate is None:
        return None
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def announce(ready_file: Path, facts: dict[str, object]) -> None:
    """Whole or not at all, so that a waiting test never reads half of it."""
    half = ready_file.with_suffix(".half")
    half.write_text(json.dumps(facts))
    half.replace(ready_file)


async def orphaned() -> None:
    """Until the process that started us is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(0.3)


if __name__ == "__main__":
    asyncio.run(serve(arguments()))
