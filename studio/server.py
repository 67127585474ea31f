"""The studio as a process: its command line, its address, its keys, and its end."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from studio.app import build_app, picture_directory
from studio.instruments.control_file import write_control_file
from studio.instruments.instrument_options import add_options, take_start
from studio.instruments.instrument_set import Instruments, Start
from studio.instruments.intervention import Connections, Rig
from studio.openapi import VERSION
from studio.pace import Pace
from studio.pictures import Pictures
from studio.service import Service
from studio.store import DATABASE, Store
from studio.store.database import OtherSchema

KEYS_VARIABLE = "STUDIO_API_KEYS"
LOOPBACK = "127.0.0.1"
PARENT_CHECK_SECONDS = 0.5


class StartRefused(Exception):
    """The studio cannot start; the message says why and what to do."""


@dataclass(frozen=True)
class Options:
    """How a studio is run."""

    host: str
    port: int
    fd: int | None
    home: Path
    key_file: Path | None
    pace: Pace
    environment: str
    ready_file: Path | None
    parent: int | None
    start: Start


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped. 0: stopped as asked; 2: could not start."""
    options = read_options(argv)

    def announced(running: Running) -> None:
        announce(running.announcement, options.ready_file, sys.stdout)

    try:
        unfired = asyncio.run(serve(options, announced))
    except (StartRefused, OtherSchema) as refused:
        print(f"studio: {refused}", file=sys.stderr)
        return 2
    for name in unfired:
        print(f"studio: the fault {name!r} did not fire as often as expected.", file=sys.stderr)
    return 0


def read_options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m studio", description="Serve the embedded studio.")
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, default=0, help="0 (default) takes a free one")
    parser.add_argument("--fd", type=int, help="a socket that was bound already, in place of host and port")
    parser.add_argument("--home", type=Path, default=Path(".studio"), help="where jobs and pictures are kept")
    parser.add_argument(
        "--key-file", type=Path, help=f"API keys, one a line (or comma-separated in {KEYS_VARIABLE})"
    )
    parser.add_argument(
        "--pace", type=Pace, choices=list(Pace), default=Pace.QUICK, help="how long jobs take"
    )
    parser.add_argument("--environment", default="staging", help="category IDs differ by it")
    parser.add_argument(
        "--ready-file", type=Path, help="written once listening; else one line on standard output"
    )
    parser.add_argument("--parent", type=int, metavar="PID", help="stop when this parent process is gone")
    add_options(parser)
    values = vars(parser.parse_args(argv))
    return Options(start=take_start(values), **values)


def read_keys(options: Options) -> frozenset[str]:
    """The bearer keys: from the key file, the environment, or one made for this home. Raises StartRefused."""
    if options.key_file is not None:
        try:
            text = options.key_file.read_text("utf-8")
        except OSError as error:
            raise StartRefused(f"the key file cannot be read: {error.strerror}.") from error
    else:
        text = os.environ.get(KEYS_VARIABLE, "").replace(",", "\n") or _own_key(options.home)
    keys = frozenset(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if not keys:
        raise StartRefused("there is no API key; put one into the key file.")
    return keys


def _own_key(home: Path) -> str:
    path = home / "api-key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(f"studio_{secrets.token_urlsafe(24)}\n", "utf-8")
    return path.read_text("utf-8")


@contextmanager
def _sole_user(home: Path) -> Iterator[None]:
    """Hold the home, so that two studios never answer from one file."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartRefused(f"another studio runs in {home}; stop it or name another --home.") from error
        yield


@dataclass(frozen=True)
class Running:
    """A studio that listens. `server.should_exit = True` ends it."""

    server: uvicorn.Server
    announcement: dict[str, object]


async def serve(options: Options, ready: Callable[[Running], None]) -> list[str]:
    """Serve until stopped; the faults that did not fire as expected. `ready` is called once it listens.

    Raises StartRefused and OtherSchema.
    """
    with _sole_user(options.home):
        keys = read_keys(options)
        with (
            closing(_listen(options)) as listener,
            closing(Store(options.home / DATABASE)) as store,
        ):
            rig, service = _rig(options, store, listener)
            pictures = Pictures(picture_directory(options.home))
            app = build_app(service, pictures, keys, rig)
            await _run(app, options, rig, listener, ready)
            return rig.instruments.faults.unfired()


def _rig(options: Options, store: Store, listener: socket.socket) -> tuple[Rig, Service]:
    """The service, and the instruments that it goes by."""
    instruments = Instruments(store, options.start)
    service = Service(
        store,
        home=options.home,
        environment=options.environment,
        pace=options.pace,
        clock=instruments.clock,
        fate_of=instruments.faults.fate_of,
    )
    control = None
    if options.start.control:
        from studio.instruments.control import Control  # a studio without it starts the sooner

        file = write_control_file(options.home, _address(options, listener))
        control = Control(service, instruments, options.home, file.key)
    return Rig(instruments, Connections(), control), service


async def _run(
    app: ASGIApp, options: Options, rig: Rig, listener: socket.socket, ready: Callable[[Running], None]
) -> None:
    config = uvicorn.Config(
        own_name_only(app, options.host),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
        server_header=False,
    )
    server = _Server(config, lambda: ready(Running(server, _announcement(options, listener))))
    rig.connections.server = server
    watch = asyncio.create_task(_stop_with_parent(server, options.parent))
    try:
        await server.serve(sockets=[listener])
    finally:
        watch.cancel()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)


def own_name_only(app: ASGIApp, host: str) -> ASGIApp:
    """On loopback, no page of a foreign name that was made to lead here (DNS rebinding) sees anything."""
    return TrustedHostMiddleware(app, [LOOPBACK, "localhost"]) if host == LOOPBACK else app


def _listen(options: Options) -> socket.socket:
    if options.fd is not None:
        return socket.socket(fileno=options.fd)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise StartRefused(f"cannot listen on {options.host}:{options.port}: {error.strerror}.") from error
    return listener


def _address(options: Options, listener: socket.socket) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{listener.getsockname()[1]}"


def _announcement(options: Options, listener: socket.socket) -> dict[str, object]:
    return {
        "base_url": f"{_address(options, listener)}{VERSION}",
        "environment": options.environment,
        "home": str(options.home),
        "pace": str(options.pace),
        "pid": os.getpid(),
    }


class _Server(uvicorn.Server):
    """uvicorn that says when it listens, and for which a signal to stop is not an error."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are the main thread's: whoever started this one ends the server
            return

        def stop(number: int, frame: FrameType | None) -> None:
            self.handle_exit(number, frame)

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def announce(announcement: dict[str, object], ready_file: Path | None, out: IO[str]) -> None:
    """Say where the studio listens: in a file that appears whole, or in one line."""
    line = json.dumps(announcement)
    if ready_file is None:
        print(line, file=out, flush=True)
        return
    whole = ready_file.with_name(f"{ready_file.name}.{os.getpid()}")
    whole.write_text(f"{line}\n", "utf-8")
    whole.replace(ready_file)


async def _stop_with_parent(server: uvicorn.Server, parent: int | None) -> None:
    """A killed parent cannot stop its studio; a studio whose parent is gone has another one."""
    with suppress(asyncio.CancelledError):
        while parent is not None:
            if os.getppid() != parent:
                server.should_exit = True
                return
            await asyncio.sleep(PARENT_CHECK_SECONDS)
