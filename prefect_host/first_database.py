"""The database of a fresh home's Prefect server: a copy of the one that this installation of Prefect made first.

Prefect makes it by some hundred migrations and the registration of its block types: most of a server's first start.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from patternmill.errors import PatternmillError
from prefect_host.own_server import DATABASE, OwnServer, template_folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Where Prefect remembers which block types it has registered in this database.
REMEMBERED = "memo_store.toml"


def stage_first_database(directory: Path, template: Path) -> bool:
    """Whether a server's directory has a database now; without one, Prefect makes it as it starts."""
    if (directory / DATABASE).exists():
        return True
    if not os.access(template / DATABASE, os.R_OK):
        # Another user's installation keeps it for that user alone.
        return False
    try:
        # The database last: with it, the directory has all.
        for name in (REMEMBERED, DATABASE):
            partial = directory / f"{name}.{os.getpid()}"
            partial.touch(mode=0o600)
            shutil.copyfile(template / name, partial)
            partial.replace(directory / name)
    except OSError:
        return False
    return True


def keep_first_database(directory: Path, template: Path) -> None:
    """Keep a database as it is, for the homes that come after; a folder that cannot be written is left alone."""
    with suppress(OSError, sqlite3.Error):
        template.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=template) as scratch:
            whole = Path(scratch) / DATABASE
            with (
                closing(sqlite3.connect(directory / DATABASE)) as made,
                closing(sqlite3.connect(whole)) as copy,
            ):
                made.backup(copy)
            shutil.copyfile(directory / REMEMBERED, Path(scratch) / REMEMBERED)
            for name in (REMEMBERED, DATABASE):
                (Path(scratch) / name).replace(template / name)


def keeping_first_database(app: ASGIApp, directory: Path, template: Path) -> ASGIApp:
    """A server that keeps its fresh database when it has started, before it answers anyone."""

    async def keeping(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                keep_first_database(directory, template)
            await send(message)

        await app(scope, receive, sent if scope["type"] == "lifespan" else send)

    return keeping


def main() -> None:
    """Make it now, so that the first command does not wait for it; where that fails, it does."""
    if os.access(template_folder() / DATABASE, os.R_OK):
        return
    with suppress(PatternmillError, OSError), TemporaryDirectory() as home, OwnServer(Path(home)):
        pass


if __name__ == "__main__":
    main()
