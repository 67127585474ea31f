"""The input of a run: read by the mapping that a person confirmed, then checked against what the environment offers."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr

from patternmill.addresses import file_path, is_remote, shown_address, source_name
from patternmill.errors import ConfigurationError, InputRefused, ServiceStopped
from patternmill.files import write_whole
from patternmill.ledger.ledger import Ledger, ledger_to_read, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.planning.offer import UNREADABLE_OFFER, Offer, merged
from patternmill.planning.rows import sku_key
from patternmill.reading import FileCode, Reading, refusal, stable_bytes
from patternmill.runs.decision_files import read_decisions
from patternmill.runs.extras import read_extras
from patternmill.runs.origin import origin_note
from patternmill.runs.safeguards import refuse_other_service
from patternmill.runs.spec import RunSpec, name_after
from patternmill.service.resend import UNREACHABLE
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.states import FAILURES
from patternmill.text import plain, plural

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.checks import Checked
    from patternmill.tables.proposals import Question

#: The refusals of a file that an entry in its mapping can mend.
MAPPABLE = frozenset(
    {
        FileCode.MISSING_COLUMN,
        FileCode.MAPPING_CHANGED,
        FileCode.RESERVED_COLUMN,
        FileCode.SEVERAL_WORKSHEETS,
        FileCode.UNREADABLE_ENCODING,
        FileCode.HEADER_ONLY,
        FileCode.OPEN_QUOTE,
        FileCode.STRAY_QUOTE,
    }
)


def read_source(address: str, reading: Reading, bearer: SecretStr | None = None) -> bytes:
    """Return what is at a path or an address; `bearer` is the token for one that requires it. Raises InputRefused."""
    if not is_remote(address):
        return reading.in_time(lambda: stable_bytes(file_path(address), reading))
    # Imported here because only an address needs them.
    from patternmill.service.sources import remote_bytes
    from patternmill.service.web_reader import Access

    return remote_bytes(address, reading, Access(bearer=bearer))


def read_input(spec: RunSpec, *, is_asking: bool = False) -> Catalog:
    """Return the input, which is read unless the spec has it.

    Raises InputRefused, with the command that asks a person what is meant unless this is that command (`is_asking`).
    """
    from patternmill.tables.catalog import read_catalog

    if spec.recorded is not None:
        return spec.recorded.catalog
    if spec.file is not None:
        return spec.file
    reading, name = _reading_of(spec), source_name(spec.source)
    try:
        raw = read_source(spec.source, reading, spec.settings.bearer_of(spec.source))
        file = read_catalog(raw, name, spec.mapping, reading, empty=spec.retire_limit is not None)
    except InputRefused as refused:
        if is_asking or refused.code not in MAPPABLE:
            raise
        remedy = f"{refused.remedy} Or say once how it is meant: `{check_command(spec)}` asks on a terminal."
        raise InputRefused(refused.message, code=refused.code, remedy=remedy) from None
    if file.columns.run is not None and spec.origin is None:
        raise refusal(
            FileCode.RESERVED_COLUMN,
            f"{file.sheet.name} has a column `run`, by which the results of a run are known: a source may not have it.",
            "Name the column otherwise (`note:run`, for instance). The results of a run are imported from a file.",
        )
    return file


def _reading_of(spec: RunSpec) -> Reading:
    return Reading(plain(shown_address(spec.source), 300))


def check_command(spec: RunSpec) -> str:
    """Return the command that asks a person about the input."""
    is_own = spec.retire_limit is None and spec.catalog == name_after(source_name(spec.source))
    named = "" if is_own or spec.origin is not None else f" --catalog {shlex.quote(spec.catalog)}"
    place = spec.settings.source_at(spec.source) or shown_address(spec.source)
    return f"patternmill check {shlex.quote(place)}{named}"


def sheet_questions(spec: RunSpec, offer: Offer | None, refused: InputRefused) -> list[Question]:
    """Return the questions about a sheet whose rows cannot be checked before they are answered. Raises InputRefused."""
    from patternmill.tables.proposals import (
        column_questions,
        encoding_questions,
        trade_score,
        worksheet_questions,
    )
    from patternmill.tables.sheet import parse_sheets

    raw = read_source(spec.source, _reading_of(spec), spec.settings.bearer_of(spec.source))
    if refused.code == FileCode.UNREADABLE_ENCODING:
        return encoding_questions(raw)
    sheets = parse_sheets(
        raw, source_name(spec.source), trade_score(spec.mapping, offer), spec.mapping.reading
    )
    return worksheet_questions(sheets) or column_questions(sheets[0], offer, spec.mapping)


def with_entries(spec: RunSpec, entries: Sequence[tuple[str, str, str]]) -> RunSpec:
    """Write more entries into the mapping, and return the spec with them. Raises ConfigurationError."""
    mapping = spec.mapping_file
    assert mapping is not None, "a sheet has a mapping"
    for section, name, meaning in entries:
        mapping = mapping.with_entry(section, name, meaning)
    place = mapping.place
    try:
        before = place.read_text(encoding="utf-8-sig") if place.is_file() else ""
        write_whole(place, [mapping.text(before).encode()])
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"The mapping {place} cannot be written: {reason}.", remedy="Name another place with --mapping."
        ) from None
    return spec.with_mapping(mapping)


async def check_input(api: StudioApi, spec: RunSpec, file: Catalog) -> tuple[RunSpec, Checked, Offer]:
    """Check every row of a file; return the spec with what the file asks for, the rows, and the offer as read now.

    Rows of the ledger were checked before. Raises ServiceStopped when the key is refused, and ConfigurationError when
    the service is another environment's.
    """
    # Imported here because it loads pandas.
    from patternmill.tables.checks import check_catalog

    # Before the key is sent, and before the offer is read.
    await asyncio.to_thread(refuse_other_service, spec.settings)
    offer, checkable = await current_offer(api, spec.settings)
    if spec.recorded is not None:
        return spec, spec.recorded, offer
    extras = await read_extras(api, spec, file)
    checked = await asyncio.to_thread(check_catalog, file, checkable, extras=extras)
    origin = origin_note(file.sheet.name, spec.origin) if spec.origin is not None else ""
    notes = (origin, file.mapping.sentence(file.sheet.header), *checked.notes)
    if spec.origin is not None:
        spec, *more = await asyncio.to_thread(_with_decisions, spec, checked)
        notes += tuple(more)
    return spec, replace(checked, notes=tuple(filter(None, notes))), offer


def _with_decisions(spec: RunSpec, checked: Checked) -> tuple[RunSpec, str, str]:
    """Return the spec with the decisions of a results file, and with retries for failures; and two notes for people."""
    assert spec.origin is not None, "only a results file has decisions"
    with open_ledger(spec.settings) as ledger:
        retries = _has_failures_alone(ledger, spec.origins, checked)
        file = read_decisions(ledger, spec.origin, file_path(spec.source))
    count = plural(len(file.decisions), "decision")
    recorded = f"It has {count} on patterns: recorded by the run." if file.decisions else ""
    return replace(spec, decisions=file.decisions, retries=retries), recorded, file.note


def _has_failures_alone(ledger: Ledger, records: Sequence[RunRecord], checked: Checked) -> bool:
    """Return whether each of these rows failed in its run, as in a failures.csv.

    `records` are the runs that the file names, the newest first; the newest that has a row counts.
    """
    left = {sku_key(row.sku) for row in checked.accepted}
    for record in records:
        rows = ledger.runs.rows_with_outcomes(record)
        statuses = {key: outcome.status for row, outcome in rows if (key := sku_key(row.sku)) in left}
        if not FAILURES.issuperset(statuses.values()):
            return False
        left -= statuses.keys()
    return True


async def current_offer(api: StudioApi, settings: Settings) -> tuple[Offer, Offer]:
    """Return the offer as read now, to be remembered, and the same with what was remembered, to check rows against.

    Raises ServiceStopped when the key is refused, or when the service is unavailable and no offer is remembered.
    """
    # Off the event loop, as a database may take as long to respond as a service may.
    before = await asyncio.to_thread(_last_offer, settings)
    try:
        offer = await api.offer()
    except ServiceStopped as stopped:
        if stopped.code != UNREACHABLE or before is None:
            raise
        offer = UNREADABLE_OFFER
    return offer, merged(offer, before)


def _last_offer(settings: Settings) -> Offer | None:
    with ledger_to_read(settings) as ledger:
        return ledger.catalogs.last_offer(settings.environment)
