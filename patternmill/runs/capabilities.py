"""What rows name besides the offer, looked at before anything is spent: operations, models, pictures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.extras import (
    UPLOAD,
    Extras,
    Picture,
)
from patternmill.catalog.problems import Problem
from patternmill.catalog.reference_files import ReferencePlace, read_references
from patternmill.catalog.refinements import REFINEMENTS
from patternmill.catalog.remote import file_path, is_remote
from patternmill.catalog.rows import tidy
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.planning.unstated import Unstated
from patternmill.results.row_results import input_file
from patternmill.runs.safeguards import require_allowed_paths
from patternmill.runs.spec import RunSpec
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import Stage

_UNCHECKED = "Models were not checked: the list of them cannot be read."


async def read_extras(api: StudioApi, spec: RunSpec, file: CatalogFile) -> Extras:
    """Nothing is asked for a file without such columns.

    Raises ServiceStopped when it cannot be known what the service has.
    """
    if spec.remake is not None:
        # It has rows as they are answered: nothing is looked up anew.
        return Extras(pictures=await asyncio.to_thread(_kept_pictures, spec, spec.remake.references))
    source, earlier = None, dict[str, Picture]()
    if file.columns.reference is not None:
        source, earlier = await asyncio.to_thread(_earlier_pictures, spec)
    # Paths in a file of an earlier run are from the folder of that run's input.
    place = reference_place(source or spec.read_from, spec.settings, by_deployment=spec.by_deployment)
    read = partial(extras_of, api, spec.settings, file, place, unstated=spec.unstated)
    if source is None:
        return await read()
    if spec.selection is not None:
        return await read(kept=earlier)
    # A file of an earlier run, which may lie elsewhere: what is not found any more is as it was.
    extras = await read()
    lost = {cell for cell, one in extras.pictures.items() if isinstance(one, Problem)}
    kept = {cell: one for cell, one in earlier.items() if cell in lost}
    return replace(extras, pictures={**extras.pictures, **kept})


async def extras_of(
    api: StudioApi,
    settings: Settings,
    file: CatalogFile,
    place: ReferencePlace,
    *,
    unstated: Unstated,
    kept: Mapping[str, Picture] | None = None,
) -> Extras:
    """`kept`: pictures that an earlier run read, by the cell."""
    refinements = frozenset(name for index, name in file.columns.refinements.items() if file.texts_in(index))
    references, named = file.texts_in(file.columns.reference), file.texts_in(file.columns.model)
    unavailable = await _unavailable(api, settings, unstated, refinements, uploads=bool(references))
    models = await api.models() if named else None
    pictures: dict[str, Picture | Problem] = dict(kept or {})
    if unread := references - pictures.keys():
        pictures |= await asyncio.to_thread(read_references, unread, place)
    note = _UNCHECKED if models is None and named else None
    return Extras(models, pictures, unavailable, note)


async def _unavailable(
    api: StudioApi, settings: Settings, unstated: Unstated, refinements: frozenset[str], *, uploads: bool
) -> dict[str, str]:
    """What is needed and not there, by its name in the file. Of what was accepted before nothing is asked."""
    if not refinements and not uploads:
        return {}
    needed = {name: unstated.refine[name] for name in sorted(refinements)}
    needed |= {UPLOAD: unstated.upload} if uploads else {}
    proven = await asyncio.to_thread(_proven, settings)
    asked = {name: path for name, path in needed.items() if name not in proven and path not in unstated.known}
    missing = await api.missing(dict.fromkeys(asked.values()))
    return {name: missing[path] for name, path in asked.items() if path in missing}


def _proven(settings: Settings) -> frozenset[str]:
    with ledger_if_any(settings) as ledger:
        if ledger is None:
            return frozenset()
        stages, refinements = ledger.purchases.accepted(settings.environment, REFINEMENTS)
        return refinements | ({UPLOAD} if Stage.REFERENCE in stages else set())


def reference_place(address: str, settings: Settings, *, by_deployment: bool = False) -> ReferencePlace:
    """Where the references of the catalog at a path or an address may be."""

    def require_allowed(path: Path) -> None:
        if by_deployment:
            require_allowed_paths(settings, path)

    remote = is_remote(address)
    return ReferencePlace(
        None if remote else file_path(address).parent,
        require_allowed,
        public_only=by_deployment,
        host=urlsplit(address).hostname if remote else None,
    )


def _earlier_pictures(spec: RunSpec) -> tuple[str | None, dict[str, Picture]]:
    """Where the input of the run was whose rows come again, and the pictures that it read, by the cell."""
    record = spec.selection.record if spec.selection is not None else spec.origin
    if record is None:
        return None, {}
    with ledger_if_any(spec.settings) as ledger:
        return record.source, dict(_pictures_of(ledger, record)) if ledger else {}


def _kept_pictures(spec: RunSpec, references: Collection[str]) -> dict[str, Picture]:
    with ledger_if_any(spec.settings) as ledger:
        raws = {sha256: ledger.document(sha256) for sha256 in references} if ledger is not None else {}
        return {sha256: Picture(sha256, raw) for sha256, raw in raws.items() if raw is not None}


def _pictures_of(ledger: Ledger, record: RunRecord) -> Iterator[tuple[str, Picture]]:
    file = input_file(ledger, record)
    if file.columns.reference is None:
        return
    read: dict[str, Picture] = {}
    for row in ledger.runs.rows_of(record.run_id, 0, ledger.runs.row_count(record.run_id)):
        sha256 = json.loads(row.row).get("reference")
        if sha256 is not None and sha256 not in read and (raw := ledger.document(sha256)) is not None:
            read[sha256] = Picture(sha256, raw)
        if sha256 in read:
            yield tidy(file.records[row.position].cells[file.columns.reference]), read[sha256]
