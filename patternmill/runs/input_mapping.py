"""The input of a run, read by the mapping that a person confirmed; and what that mapping lacks, as questions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.mapping_file import mapping_text
from patternmill.catalog.offer import Offer
from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.proposals import Question, column_questions, trade_score
from patternmill.catalog.remote import shown_address, source_bytes, source_name
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.files import write_whole
from patternmill.runs.spec import RunSpec, catalog_name
from patternmill.sheets.sheet_reader import MAPPABLE as MAPPABLE
from patternmill.sheets.sheet_reader import read_source, read_tables
from patternmill.sheets.text_encodings import likely_encodings

_WORDS_SHOWN = 3


def read_input(spec: RunSpec) -> CatalogFile:
    """The input as it is now, unless it was read already. Raises InputRefused, with the command that mends it."""
    if spec.file is not None:
        return spec.file
    try:
        empty = spec.retire_limit is not None
        file = read_source(spec.read_from, choices=spec.choices, mapping=spec.mapping, empty=empty)
    except InputRefused as refused:
        if refused.code not in MAPPABLE:
            raise
        remedy = f"{refused.remedy} Or say once how it is meant: `{check_command(spec)}` asks on a terminal."
        raise InputRefused(refused.message, code=refused.code, remedy=remedy) from None
    if file.columns.is_results_file and spec.origin is None:
        raise refusal(
            FileCode.RESERVED_COLUMN,
            f"{file.name} has a column `run`, by which the results of a run are known: a source may not have it.",
            "Name the column otherwise (`note:run`, for instance). Results are imported, with `patternmill import`.",
        )
    return file


def check_command(spec: RunSpec) -> str:
    """What a person types to be asked about the input, with what they named."""
    is_own = spec.retire_limit is None and spec.catalog == catalog_name(spec.source)
    named = "" if is_own or spec.origin is not None else f" --catalog {shlex.quote(spec.catalog)}"
    return f"patternmill check {shlex.quote(shown_address(spec.named_source))}{named}"


def sheet_questions(spec: RunSpec, offer: Offer | None, refused: InputRefused) -> list[Question]:
    """What is to be said of a sheet that is refused as it is, before its rows can be checked. Raises InputRefused."""
    raw, name = source_bytes(spec.read_from), source_name(spec.read_from)
    if refused.code == FileCode.UNREADABLE_ENCODING:
        return _encoding_question(raw)
    tables = read_tables(raw, name, trade_score(spec.mapping, offer), spec.choices)
    if len(tables) > 1:
        worksheets = tuple(table.layout.worksheet or "" for table in tables)
        headers = tuple(", ".join(filter(None, table.header))[:60] for table in tables)
        return [Question("reading", "worksheet", worksheets, examples=headers)]
    rows = (cells for _, cells in tables[0].records)
    return column_questions(tables[0].header, rows, offer, spec.mapping)


def _encoding_question(raw: bytes) -> list[Question]:
    likely = likely_encodings(raw)
    if not likely:
        return []
    codecs, words, are_words = zip(*likely, strict=True)
    examples = tuple(", ".join(those[:_WORDS_SHOWN])[:60] for those in words)
    certain = are_words[0] and not any(are_words[1:])
    return [Question("reading", "encoding", codecs, codecs[0], certain, examples=examples)]


def with_entries(spec: RunSpec, entries: Sequence[tuple[str, str, str]]) -> RunSpec:
    """With more entries in its mapping, which is written. Raises ConfigurationError."""
    found = spec.mapping_file
    assert found is not None, "a sheet has a mapping"
    for section, name, meaning in entries:
        found = found.with_entry(section, name, meaning)
    place = found.place
    try:
        before = place.read_text(encoding="utf-8-sig") if place.is_file() else ""
        write_whole(place, [mapping_text(before, found).encode()])
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"The mapping {place} cannot be written: {reason}.", remedy="Name another place with --mapping."
        ) from None
    return spec.with_mapping(found)
