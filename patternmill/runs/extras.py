"""Operations, models and pictures that rows name besides the offer, looked up before anything is spent.

A picture is read once, by its path or address, and known by its bytes from then on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from patternmill.addresses import file_path, is_remote, shown_address
from patternmill.errors import PatternmillError
from patternmill.ledger.ledger import Ledger, ledger_to_read
from patternmill.ledger.records import RunRecord
from patternmill.planning.extras import UPLOAD, Extras, Picture, is_picture, unreadable
from patternmill.planning.problems import Problem
from patternmill.planning.refinements import REFINEMENTS
from patternmill.planning.rows import tidy
from patternmill.reading import Reading, stable_bytes
from patternmill.runs.recorded_rows import digests_named, input_file, recorded_pictures
from patternmill.runs.safeguards import require_allowed_paths
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.states import Stage
from patternmill.text import duration, plain, shown

if TYPE_CHECKING:
    from patternmill.service.studio_api import StudioApi
    from patternmill.tables.catalog import Catalog

_UNCHECKED = "Models were not checked: the list of them cannot be read."
#: The most bytes of all pictures of a catalog together, which are held until they are uploaded, and of one of them.
MOST_TOGETHER, _MOST = 256 << 20, 20 << 20
#: The longest that reading all of them may take, and one of them; what is not read by then is refused.
TIME_TOGETHER, _TIME = timedelta(minutes=10), timedelta(seconds=30)
_WRITE = "name a PNG, JPEG or WebP picture by its path from the catalog's folder, or by an http(s) address"
_DIVIDE = "use fewer or smaller pictures, or divide the catalog into several"
_TOO_SLOW = unreadable(
    f"the references of this catalog were not read within {duration(TIME_TOGETHER)}", _DIVIDE
)
_TOO_LARGE = unreadable(
    f"the references of this catalog have more than {MOST_TOGETHER >> 20} MiB together", _DIVIDE
)


async def read_extras(api: StudioApi, spec: RunSpec, file: Catalog) -> Extras:
    """Return what the rows of a file name besides the offer, as far as the service has it or it can be read.

    The service is not asked about a file without such columns. Raises ServiceStopped if it does not say what it has.
    """
    columns, unstated = file.columns, spec.unstated
    refinements = sorted(name for index, name in columns.refinements.items() if file.texts_in(index))
    references, models_named = (file.texts_in(columns.named.get(name)) for name in ("reference", "model"))
    needed = {name: unstated.refine[name] for name in refinements}
    needed |= {UPLOAD: unstated.upload} if references else {}
    unavailable = await _unavailable(api, spec, needed) if needed else {}
    models = await api.models() if models_named else None
    pictures = await asyncio.to_thread(read_pictures, spec, references) if references else {}
    note = _UNCHECKED if models is None and models_named else None
    return Extras(models, pictures, unavailable, note)


async def _unavailable(api: StudioApi, spec: RunSpec, needed: Mapping[str, str]) -> dict[str, str]:
    """Return which operations are missing, by their names in the file; what was accepted before is not asked about."""
    proven = await asyncio.to_thread(_proven, spec.settings)
    known = spec.unstated.known
    asked = {name: path for name, path in needed.items() if name not in proven and path not in known}
    missing = await api.missing(dict.fromkeys(asked.values()))
    return {name: missing[path] for name, path in asked.items() if path in missing}


def _proven(settings: Settings) -> frozenset[str]:
    """Return the operations that the service has accepted before, by their names in the file."""
    with ledger_to_read(settings) as ledger:
        stages, refinements = ledger.purchases.accepted(settings.environment, REFINEMENTS)
        return frozenset(refinements | ({UPLOAD} if Stage.REFERENCE in stages else set()))


def read_pictures(spec: RunSpec, cells: Iterable[str]) -> dict[str, Picture | Problem]:
    """Return each picture, or why it cannot be used; one that can no longer be read is taken from the ledger."""
    # Paths in a file of an earlier run are relative to the folder of that run's input.
    source = spec.origin.source if spec.origin is not None else spec.source
    pictures = read_references(cells, source, spec.settings if spec.by_deployment else None)
    lost = {cell for cell, picture in pictures.items() if isinstance(picture, Problem)}
    return {**pictures, **(_pictures_on_record(spec, lost) if lost else {})}


def _pictures_on_record(spec: RunSpec, cells: Collection[str]) -> dict[str, Picture]:
    """Return the pictures that the ledger has for cells: named by their digests, or read by the file's run."""
    with ledger_to_read(spec.settings) as ledger:
        digests = digests_named(cells)
        if spec.origin is not None:
            of_run = _digests_of_run(ledger, spec.origin)
            digests |= {cell: of_run[cell] for cell in of_run.keys() & set(cells)}
        return recorded_pictures(ledger, digests)


def _digests_of_run(ledger: Ledger, record: RunRecord) -> dict[str, str]:
    """Return the digests of the pictures that a run read, by the cells of its file."""
    file = input_file(ledger, record)
    column = file.columns.named.get("reference")
    if column is None:
        return {}
    rows = ledger.runs.rows_of(record.run_id)
    digests = ((row.line, json.loads(row.row).get("reference")) for row in rows)
    cells = file.sheet.column(column)
    return {tidy(cells[line]): sha256 for line, sha256 in digests if sha256 is not None}


def read_references(
    cells: Iterable[str],
    source: str,
    limits: Settings | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Picture | Problem]:
    """Return each picture, or why it cannot be used; one that cannot be used raises nothing.

    `source` is the catalog's path, to whose folder paths are relative, or its address, whose host may always be asked.
    `limits` are those of a deployment's run, which reads only from the allowed folders and the public internet.
    """
    references: dict[str, Picture | Problem] = {}
    pictures: dict[str, Picture] = {}
    ends = clock() + TIME_TOGETHER.total_seconds()
    for cell in sorted(cells):
        reference = _read(cell, source, limits) if clock() < ends else _TOO_SLOW
        if isinstance(reference, Picture):
            # Equal pictures are held once.
            reference = pictures.setdefault(reference.sha256, reference)
            if sum(len(picture.raw) for picture in pictures.values()) > MOST_TOGETHER:
                del pictures[reference.sha256]
                reference = _TOO_LARGE
        references[cell] = reference
    return references


def _read(cell: str, source: str, limits: Settings | None) -> Picture | Problem:
    name = shown_address(cell)
    reading = Reading(plain(name, 300), _MOST, time=_TIME, noun="a reference")
    try:
        raw = reading.in_time(lambda: _bytes(cell, source, limits, reading))
    except PatternmillError as error:
        return unreadable(error.message.rstrip("."), error.remedy.rstrip(".") or _WRITE)
    except (OSError, ValueError) as error:
        return unreadable(f"{shown(name)} cannot be read ({type(error).__name__})", _WRITE)
    if not is_picture(raw):
        return unreadable(f"{shown(name)} is no PNG, JPEG or WebP picture", _WRITE)
    return Picture(hashlib.sha256(raw).hexdigest(), raw)


def _bytes(cell: str, source: str, limits: Settings | None, reading: Reading) -> bytes:
    if is_remote(cell):
        if not cell.lower().startswith(("http://", "https://")):
            raise PatternmillError(f"{shown(shown_address(cell))} is no http(s) address")
        # Imported here because it loads httpx, which only a catalog with such references needs.
        from patternmill.service.sources import remote_bytes
        from patternmill.service.web_reader import Access

        host = urlsplit(source).hostname if is_remote(source) else None
        access = Access(redirects=0, public_only=limits is not None, own_host=host, pause=0)
        return remote_bytes(cell, reading, access)
    path = file_path(cell)
    if not path.is_absolute():
        if is_remote(source):
            raise PatternmillError(f"{shown(cell)} is a path, and the catalog has an address")
        path = file_path(source).parent / path
    if limits is not None:
        require_allowed_paths(limits, path)
    return stable_bytes(path, reading)
