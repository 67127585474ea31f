"""The studio as a process: its command line, its address, its keys, and its end."""

from __future__ import annotations

import argparse
import json
import secrets
import socket
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

import uvicorn

from studio.app import LOOPBACK, build_app
from studio.openapi import VERSION
from studio.operations.call import Studio
from studio.operations.jobs import PACES
from studio.pictures import Pictures
from studio.store import Store


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until stopped; return 0 when stopped as asked, 2 when it could not start."""
    options = read_options(argv)
    try:
        serve(options)
    except (OSError, sqlite3.Error) as refused:
        print(f"studio: {options.home}: {refused}", file=sys.stderr)
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
    """Serve until stopped, and say where once it listens. Raises OSError and sqlite3.Error."""
    home, fd = options.home, options.fd
    pictures = Pictures(home)
    with (
        socket.create_server((LOOPBACK, options.port))
        if fd is None
        else socket.socket(fileno=fd) as listener,
        closing(Store(home / "studio.db")) as store,
    ):
        keys = read_keys(options.key_file or home / "api-key")
        app = build_app(Studio(store, pictures, options.environment, options.pace), keys)
        announce(options.ready_file, listener)
        config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=3)
        _Server(config).run([listener])


def read_keys(path: Path) -> list[str]:
    """Return the bearer keys of a file, which is made with one where there is none."""
    path.touch(mode=0o600)
    keys = path.read_text("utf-8").split()
    if not keys:
        keys = [f"studio_{secrets.token_urlsafe(24)}"]
        path.write_text(f"{keys[0]}\n", "utf-8")
    return keys


def announce(ready: Path | None, listener: socket.socket) -> None:
    """Say where the studio listens: in a file that appears whole, or in one line."""
    line = json.dumps({"base_url": f"http://{LOOPBACK}:{listener.getsockname()[1]}{VERSION}"})
    if ready is None:
        print(line, flush=True)
        return
    part = ready.with_suffix(".part")
    part.write_text(line, "utf-8")
    part.replace(ready)


class _Server(uvicorn.Server):
    """A server for which a signal to stop is not an error: uvicorn would raise it again after the end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
