"""The whole state as one file: taken, put back and emptied while the studio runs.

A snapshot is a ZIP of the database and the uploaded pictures. The database is replaced in one transaction, so a call is
answered from the one state or the other, and a studio that is killed meanwhile has the one or the other. Pictures have
their digest for a name: those that a state needs are there before it is.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from pathlib import Path

from studio.errors import FieldFault, Refusal, invalid_fields, unknown
from studio.store import DATABASE, Store
from studio.store.database import SCHEMA, version_of

DIRECTORY = "snapshots"
RESTORING = ".restore-"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PICTURE = re.compile(r"references/[0-9a-f]{64}\.png")


class Snapshots:
    """The snapshots of one studio, whose state is in `store` and `home`."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store = store
        self._home = home
        for left in home.glob(f"{RESTORING}*"):  # by a studio that was killed
            shutil.rmtree(left)

    def path(self, name: str) -> Path:
        """Where the snapshot of this name is. Raises Refusal (400) for what can be no name."""
        if NAME.fullmatch(name) is None:
            reason = "has to be letters, digits, dots, dashes and underscores, at most 100"
            raise invalid_fields((FieldFault("name", reason),))
        return self._home / DIRECTORY / f"{name}.zip"

    def take(self, path: Path) -> None:
        """Write the state to this file, which appears whole. Raises Refusal (422) when it cannot be written."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".snapshot-") as place:
                self._write(Path(place)).replace(path)
        except OSError as error:
            message = f"The snapshot {str(path)!r} cannot be written: {error.strerror}."
            raise Refusal(422, "snapshot_failed", message) from error

    def restore(self, path: Path) -> None:
        """Make this file's state the present one. Raises Refusal (404, 422)."""
        if not path.is_file():
            raise unknown("snapshot", path.stem)
        with tempfile.TemporaryDirectory(dir=self._home, prefix=RESTORING) as place:
            _extract(path, Path(place))
            state = Store(Path(place) / DATABASE)
            try:
                self._bring_pictures(Path(place))
                self._store.replace_with(state)
            finally:
                state.close()

    def reset(self) -> None:
        """Nothing is there any more but the API keys and the console's sessions."""
        empty = Store(Path(":memory:"))
        try:
            self._store.copy_credentials_to(empty)
            self._store.replace_with(empty)
        finally:
            empty.close()

    def _write(self, place: Path) -> Path:
        self._store.copy_to(place / DATABASE)
        whole = place / "whole.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(place / DATABASE, DATABASE)
            for sha256 in self._store.references.digests():
                archive.write(self._home / "references" / f"{sha256}.png", f"references/{sha256}.png")
        return whole

    def _bring_pictures(self, place: Path) -> None:
        (self._home / "references").mkdir(exist_ok=True)
        for path in place.glob("references/*.png"):
            path.replace(self._home / "references" / path.name)


def _extract(path: Path, place: Path) -> None:
    """The snapshot's files, in this directory. Raises Refusal (422) when it is no snapshot."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extract(DATABASE, place)
            archive.extractall(place, [name for name in archive.namelist() if PICTURE.fullmatch(name)])
        _check(place / DATABASE)
    except (zipfile.BadZipFile, KeyError, sqlite3.DatabaseError) as error:
        message = f"{path.name} is no snapshot of a studio, or one of another version."
        raise Refusal(422, "invalid_snapshot", message) from error


def _check(database: Path) -> None:
    """Raises sqlite3.DatabaseError unless it is a file of this studio, and sound."""
    with closing(sqlite3.connect(database)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != version_of(SCHEMA) or connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("it cannot be used")
