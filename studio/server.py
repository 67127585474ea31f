"""The studio as a process: its command line, its address, its keys, and its end."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from studio.app import LOOPBACK, build_app
from studio.openapi import VERSION
from studio.operations.call import Studio
from studio.operations.jobs import PACES
from studio.pictures import Pictures
from studio.store import OtherVersion, Store


class StartRefused(Exception):
    """The studio cannot start; the message says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped; return 0 when stopped as asked, 2 when it could not start."""
    try:
        serve(read_options(argv))
    except (StartRefused, OtherVersion) as refused:
        print(f"studio: {refused}", file=sys.stderr)
        return 2
    return 0


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m studio", description="Serve the embedded studio.")
    add = parser.add_argument
    add("--port", type=int, default=0, help="0 (default) takes a free one")
    add("--fd", type=int, help="a socket that listens already, in place of a port")
    add("--home", type=Path, default=Path(".studio"), help="where jobs and pictures are kept")
    add(
        "--key-file", type=Path, help="API keys, one a line (default: HOME/api-key); made where there is none"
    )
    add("--pace", choices=list(PACES), default="quick", help="how long jobs take")
    add("--environment", default="staging", help="category IDs differ by it")
    add("--ready-file", type=Path, help="says where it listens; else one line on standard output")
    return parser.parse_args(argv)


def serve(options: argparse.Namespace) -> None:
    """Serve until stopped, and say where once it listens. Raises StartRefused and OtherVersion."""
    home: Path = options.home
    with _sole_user(home), _listening(options) as listener, closing(Store(home / "studio.db")) as store:
        keys = read_keys(options.key_file or home / "api-key")
        app = build_app(Studio(store, Pictures(home), options.environment, options.pace), keys)
        announce(options, listener)
        _Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)).run([listener])


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


def _listening(options: argparse.Namespace) -> socket.socket:
    if options.fd is not None:
        return socket.socket(fileno=options.fd)
    try:
        return socket.create_server((LOOPBACK, options.port))
    except OSError as error:
        raise StartRefused(f"cannot listen on {LOOPBACK}:{options.port}: {error.strerror}.") from error


def read_keys(path: Path) -> frozenset[str]:
    """Return the bearer keys of a file, which is made with one where there is none. Raises StartRefused."""
    try:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(f"studio_{secrets.token_urlsafe(24)}\n", "utf-8")
        keys = frozenset(filter(None, map(str.strip, path.read_text("utf-8").splitlines())))
    except OSError as error:
        raise StartRefused(f"the key file cannot be read: {error.strerror}.") from error
    if not keys:
        raise StartRefused("there is no API key; put one into the key file.")
    return keys


def announce(options: argparse.Namespace, listener: socket.socket) -> None:
    """Say where the studio listens: in a file that appears whole, or in one line."""
    address = f"http://{LOOPBACK}:{listener.getsockname()[1]}{VERSION}"
    line = json.dumps({"base_url": address, "pace": options.pace, "pid": os.getpid()})
    if options.ready_file is None:
        print(line, flush=True)
        return
    part = options.ready_file.with_name(f"{options.ready_file.name}.part")
    part.write_text(f"{line}\n", "utf-8")
    part.replace(options.ready_file)


class _Server(uvicorn.Server):
    """A server for which a signal to stop is not an error: uvicorn would raise it again after the end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
