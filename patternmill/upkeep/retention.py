"""Retention: which ended runs can be forgotten, what of them would be deleted, and deleting it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.forgetting import Forgettable, find_forgettable, forget, never_forgotten
from patternmill.ledger.ledger import Ledger, ledger_folder
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.backups import migration_copies
from patternmill.planning.items import Item, Scope, catalog_of
from patternmill.runs.lease import hold_lease
from patternmill.runs.results_files import MANIFEST
from patternmill.settings import Settings
from patternmill.states import Stage


@dataclass(frozen=True)
class ResultFiles:
    """The files of a run in a folder: those that can be deleted, with their sizes in bytes, and why the rest stay."""

    folder: Path
    #: The size of each file that can be deleted; the manifest comes last.
    deletable: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Retention:
    """The things to forget: the ledger's words about runs, their files, and copies of the ledger."""

    parts: tuple[Forgettable, ...]
    files: Mapping[RunId, ResultFiles]
    copies: tuple[Path, ...]

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is left to be forgotten or deleted."""
        has_words = any(part.told_items or any(part.rows.values()) for part in self.parts)
        return not has_words and not any(files.deletable for files in self.files.values())


def runs_before(
    ledger: Ledger, until: datetime, *, catalog: str | None = None, environment: str | None = None
) -> list[RunRecord]:
    """Return the runs that ended before a time and can be forgotten, with those that were only partly forgotten."""
    runs = ledger.runs.find(catalog=catalog, environment=environment)
    scopes = {(run.environment, run.catalog) for run in runs}
    stay = set[RunId]().union(*(never_forgotten(ledger, *scope) for scope in scopes))
    ended = (run for run in runs if run.ended_at is not None and run.ended_at < until)
    return [run for run in ended if run.run_id not in stay and not _is_of_orders(run)]


def require_forgettable(ledger: Ledger, run: RunRecord) -> None:
    """Raise ConfigurationError for a run that cannot be forgotten."""
    if _is_of_orders(run):
        why = "is about orders, which are money"
    elif run.outcome is None:
        why = "has not ended: `patternmill status` shows whether it goes on"
    elif run.run_id in never_forgotten(ledger, run.environment, run.catalog):
        why = f"is the latest of {run.catalog} ({run.environment}), or its sheet has rows of it"
    else:
        return
    raise ConfigurationError(
        f"Run {run.run_id} {why}: it is not forgotten.", code="not_forgotten", remedy="Nothing was deleted."
    )


def _is_of_orders(run: RunRecord) -> bool:
    return catalog_of(run.catalog) != run.catalog


def plan_retention(
    ledger: Ledger, settings: Settings, runs: Sequence[RunRecord], out: Path | None = None
) -> Retention:
    """Return what is to be forgotten of these runs. Writes nothing.

    `out` is the folder of a single run's files if that is not results/CATALOG/RUN.
    """
    by_scope = defaultdict[tuple[str, str], list[RunRecord]](list)
    for run in runs:
        by_scope[run.environment, run.catalog].append(run)
    files = {
        run.run_id: _find_files(
            out or Path("results") / run.catalog / run.run_id, run.run_id, ledger.identity
        )
        for run in runs
    }
    parts = tuple(find_forgettable(ledger, *scope, runs) for scope, runs in sorted(by_scope.items()))
    is_beside = settings.ledger_url is None and bool(parts)
    copies = migration_copies(ledger_folder(settings), ledger.identity) if is_beside else ()
    return Retention(parts, files, tuple(copies))


async def carry_out(ledger: Ledger, retention: Retention) -> dict[Path, str]:
    """Delete the files first, so that the same command goes on after a crash; return what stays, and why.

    Raises Overlap while a run drives a catalog, before anything of that catalog is deleted.
    """
    left: dict[Path, str] = {}
    for part in retention.parts:
        async with hold_lease(ledger, part.environment, part.catalog, "forget") as lease:
            for run in part.runs:
                require_forgettable(ledger, run)
                left |= _delete_files(retention.files[run.run_id].folder, run.run_id, ledger.identity)
            with ledger.transaction(lease):
                now = find_forgettable(ledger, part.environment, part.catalog, part.runs)
                forget(ledger, now, partial(_first_take, Scope(part.environment, part.catalog)))
    ledger.database.tidy()
    for copy in retention.copies:
        copy.unlink(missing_ok=True)
    return left


def _find_files(folder: Path, run_id: str, ledger: str) -> ResultFiles:
    """Find out which files of a run, written from this ledger, can be deleted.

    Follows no link; without the run's own manifest nothing can be deleted.
    """
    place = folder / MANIFEST
    if folder.is_symlink() or place.is_symlink():
        return ResultFiles(folder)
    try:
        manifest = json.loads(place.read_bytes())
        if (manifest["run_id"], manifest["ledger"]) != (run_id, ledger):
            return ResultFiles(folder)
        reasons = {name: _why_left(folder, name, digest) for name, digest in manifest["files"].items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return ResultFiles(folder)
    left = {name: why for name, why in reasons.items() if why}
    names = [name for name in reasons if name not in left and (folder / name).exists()]
    names += [] if left else [MANIFEST]
    return ResultFiles(folder, {name: (folder / name).stat().st_size for name in names}, left)


def _delete_files(folder: Path, run_id: str, ledger: str) -> dict[Path, str]:
    """Delete what can be deleted now; return what is left, and why. Remove the folder once it is empty."""
    files = _find_files(folder, run_id, ledger)
    left = {folder / name: why for name, why in files.left.items()}
    for path in (folder / name for name in files.deletable):
        try:
            path.unlink()
        except OSError as error:
            left[path] = f"cannot be deleted: {error.strerror}"
    if not left:
        with suppress(OSError):
            folder.rmdir()
    return left


def _why_left(folder: Path, name: str, digest: str) -> str:
    """Return why a file that the manifest names stays; empty if it can be deleted, or is gone already."""
    path = folder / name
    if path.name != name:
        return "is no file of this folder"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "is a link, or no file"
    try:
        with path.open("rb") as file:
            return "" if hashlib.file_digest(file, "sha256").hexdigest() == digest else "was changed since"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _first_take(scope: Scope, content: Mapping[str, Any]) -> ItemKey:
    """Return the key of the item that a pattern's content without a take names: its first take."""
    return Item(Stage.PATTERN, scope, content).key
