"""A person's confirmation of what the columns of a sheet are: asked on a terminal, remembered with the catalog."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from getpass import getuser
from socket import gethostname

import click

from cli.mapping_text import proposal_lines
from cli.terminal import echo, echo_lines
from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.mapping_proposal import MappingProposal
from patternmill.catalog.offer import Offer
from patternmill.catalog.rows import column_letter, header_key
from patternmill.catalog.sheet_choices import SheetChoices
from patternmill.errors import ConfigurationError, InputRefused, ServiceStopped
from patternmill.runs.input_mapping import (
    MAPPABLE,
    UnmappedSheet,
    earlier_mapping,
    has_unconfirmed_options,
    map_command,
    read_input,
    read_sheet,
    remember_mapping,
)
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.text import shown


def confirmed_input(spec: RunSpec, *, yes: bool = False) -> CatalogFile:
    """The input of a run; on a terminal a person is asked for its columns, where nobody confirmed them.

    `yes`: what is proposed is accepted, unless a column can be read in two ways. Raises what `read_input` raises:
    without a terminal, and where the proposal is not accepted.
    """
    may_ask = yes or sys.stdin.isatty()
    try:
        file = read_input(spec)
        if spec.mapping.columns or not may_ask or not has_unconfirmed_options(file):
            return file
        refused = _unconfirmed(spec, file)
    except InputRefused as error:
        if error.code not in MAPPABLE or spec.mapping.columns or not may_ask:
            raise
        file, refused = None, error
    found = proposed(spec)
    if file is not None and not found.proposal.is_needed:
        return file
    echo(refused.message)
    proposal = confirmed(found.sheet, found.proposal, yes)
    if proposal is None:
        raise refused
    remember(spec.settings, spec.catalog, proposal, found.choices)
    return read_input(spec)


def _unconfirmed(spec: RunSpec, file: CatalogFile) -> InputRefused:
    command = map_command(spec.named_source, spec.catalog if spec.catalog_named else None, spec.choices)
    return InputRefused(
        f"{shown(file.name)} has columns that look like options, and choose nothing under their names.",
        code="unconfirmed_mapping",
        remedy=f"Say what they are: `{command}`.",
    )


@dataclass(frozen=True)
class ProposedInput:
    """The input of a run with what its columns would be, and how such files are read."""

    sheet: UnmappedSheet
    proposal: MappingProposal
    choices: SheetChoices


def proposed(spec: RunSpec) -> ProposedInput:
    """From what was confirmed before, where it still fits, the names, the offer and the cells. Raises InputRefused."""
    before = earlier_mapping(spec.settings, spec.catalog)
    mapping = spec.mapping if spec.mapping.columns else before.mapping
    usual = spec.usual_choices.completed(before.choices)
    address = spec.refresh.address if spec.refresh is not None else str(spec.source)
    sheet = read_sheet(address, spec.choices, usual, mapping)
    proposal = sheet.propose(offer_if_any(spec.settings), mapping)
    return ProposedInput(sheet, proposal, spec.choices.completed(usual))


@dataclass(frozen=True)
class CheckInput:
    """A file to check, and a note where its columns are read as proposed, because nobody confirmed them."""

    file: CatalogFile
    unconfirmed: str | None = None


def check_input(spec: RunSpec) -> CheckInput:
    """The input of a run to check it alone: read as proposed, where none of its columns is a question.

    Raises what `read_input` raises, with the proposal shown first where there is one.
    """
    try:
        file = read_input(spec)
        if spec.mapping.columns or not has_unconfirmed_options(file):
            return CheckInput(file)
    except InputRefused as refused:
        if refused.code not in MAPPABLE or spec.mapping.columns:
            raise
        return _read_as_proposed(spec, proposed(spec), refused, "Nothing is bought until you confirm them")
    found = proposed(spec)
    if not found.proposal.is_needed or not found.proposal.is_decided:
        return CheckInput(file)
    until = "Rows with something in them are refused until you confirm them"
    return _read_as_proposed(spec, found, _unconfirmed(spec, file), until)


def _read_as_proposed(spec: RunSpec, found: ProposedInput, refused: InputRefused, until: str) -> CheckInput:
    if not found.proposal.is_decided:
        if found.proposal.is_found:
            echo("Its columns could be these:")
            show(found.sheet, found.proposal)
            echo("")
        raise refused
    file = read_input(replace(spec, mapping=found.proposal.mapping))
    sentence = file.mapping.sentence(file.header)
    command = map_command(spec.named_source, spec.catalog if spec.catalog_named else None, spec.choices)
    return CheckInput(file, f"Checked as if confirmed. {sentence} {until}: `{command}`.")


def remember(settings: Settings, catalog: str, proposal: MappingProposal, choices: SheetChoices) -> None:
    remember_mapping(settings, catalog, proposal.mapping, choices, f"{getuser()}@{gethostname()}")
    echo(f"Remembered for catalog {catalog}.")


def offer_if_any(settings: Settings) -> Offer | None:
    """None, and a note, where the service does not answer: names alone are gone by then."""
    from cli.offered import offer_of

    try:
        return offer_of(settings)
    except ServiceStopped as stopped:
        echo(f"Note: columns are proposed without the offer: {stopped.message}")
        return None


def confirmed(sheet: UnmappedSheet, proposal: MappingProposal, yes: bool) -> MappingProposal | None:
    """As a person accepts it; without a terminal, or with --yes, what is shown, where that needs no answer."""
    if not yes and sys.stdin.isatty():
        return accepted(sheet, proposal)
    show(sheet, proposal)
    echo("")
    if proposal.missing:
        raise InputRefused(
            f"{sheet.name} has no column for {' and none for '.join(map(str, proposal.missing))}.",
            code="unconfirmed_mapping",
            remedy=f'Say which: `patternmill map FILE --set "COLUMN={proposal.missing[0]}"`. Nothing was remembered.',
        )
    if proposal.questions and yes:
        names = ", ".join(f'--set "{one.name}={one.target}"' for one in proposal.questions)
        raise InputRefused(
            "Some columns can be read in two ways (marked with ?), and --yes does not decide.",
            code="unconfirmed_mapping",
            remedy=f"Say what they are with `patternmill map FILE`, for instance {names}. Nothing was remembered.",
        )
    if not yes:
        echo("Nothing was remembered: there is no terminal to ask on. Add --yes to accept this.", err=True)
        return None
    return proposal


def accepted(sheet: UnmappedSheet, proposal: MappingProposal) -> MappingProposal | None:
    """The proposal as a person accepts it on the terminal, with any changes; None where they stop."""
    show(sheet, proposal)
    while True:
        answer = click.prompt(_question(proposal), default="", show_default=False).strip()
        if answer.lower() in ("y", "yes") and not proposal.missing:
            return proposal
        if answer.lower() in ("s", "stop", "n", "no", "q", "quit"):
            echo("Nothing was remembered, and nothing was bought.", err=True)
            return None
        changed = _changed(proposal, answer)
        if changed is not None:
            proposal = changed
            show(sheet, proposal)


def show(sheet: UnmappedSheet, proposal: MappingProposal) -> None:
    echo_lines(proposal_lines(sheet, proposal))


def _question(proposal: MappingProposal) -> str:
    if proposal.missing:
        return f"\nA={proposal.missing[0]} says that column A is the {proposal.missing[0]}; s stops"
    return "\ny accepts this; B=prompt changes column B (or =note, =carried); s stops"


def _changed(proposal: MappingProposal, answer: str) -> MappingProposal | None:
    """With one answer like `B=prompt`; None, and a sentence, where it cannot be."""
    try:
        return with_answer(proposal, answer)
    except ConfigurationError as error:
        echo(f"{error.message} {error.remedy}".strip(), err=True)
        return None


def with_answer(proposal: MappingProposal, answer: str) -> MappingProposal:
    """The proposal with `COLUMN=what it is`; the column by its name, or by its letter. Raises ConfigurationError."""
    name, equals, target = answer.rpartition("=")
    column = _column_index(proposal, name)
    if not equals or column is None:
        wrong = (
            f"There is no column {shown(name.strip())}." if equals else f"{shown(answer)} was not understood."
        )
        raise ConfigurationError(
            wrong, remedy="Write a column's name or letter, =, and what it is: B=prompt."
        )
    return proposal.with_target(column, target.strip())


def _column_index(proposal: MappingProposal, name: str) -> int | None:
    by_name = {header_key(column.header): column.index for column in reversed(proposal.columns)}
    by_letter = {column_letter(column.index): column.index for column in proposal.columns}
    found = by_name.get(header_key(name)) if header_key(name) else None
    return found if found is not None else by_letter.get(name.strip().upper())
