"""What a run is made from: a request, completed from the settings and from the run that its file comes from."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from slugify import slugify

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import MAPPING, NO_MAPPING, ColumnMapping
from patternmill.catalog.mapping_file import named_mapping
from patternmill.catalog.remote import (
    file_path,
    is_remote,
    require_known_kind,
    source_name,
    source_stem,
)
from patternmill.catalog.rows import Row, is_results_header
from patternmill.catalog.sheet_choices import NO_CHOICES, SheetChoices
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.parameters import RetireLimit
from patternmill.planning.items import Scope
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.results.summary import MANIFEST, ManifestUnreadable, read_manifest
from patternmill.results.whole_catalog import WHOLE_CATALOG
from patternmill.runs.refresh_changes import RefreshTerms
from patternmill.runs.request import ImportRequest, RefreshRequest, RetryRequest, RunRequest, SheetRequest
from patternmill.runs.retry import RetrySelection
from patternmill.runs.safeguards import require_allowed_path
from patternmill.settings import Settings, in_environment, read_settings


@dataclass(frozen=True)
class RunSpec:
    """A request, completed."""

    source: Path
    catalog: str
    settings: Settings
    options: RunOptions
    choices: SheetChoices = NO_CHOICES
    #: How such files are read, by the mapping that is named; where nothing is chosen, and the bytes do not show it.
    usual_choices: SheetChoices = NO_CHOICES
    #: Of the columns of the input, where a person named one or its run has one; else the remembered one is used.
    mapping: ColumnMapping = NO_MAPPING
    #: Where the results go; None: results/<catalog>/<run>/.
    out: Path | None = None
    edition: str | None = None
    #: Of rows that name no model.
    model: str | None = None
    #: False when the catalog is only taken from the file's name.
    catalog_named: bool = True
    #: False when environment and edition are from the settings, or none: not named for this file.
    environment_named: bool = True
    edition_named: bool = True
    #: The run whose results file the source is, by the manifest next to it.
    origin: Origin | None = None
    #: Rows whose failed items a person retries.
    retry: Callable[[Row], bool] = field(default=lambda row: False)
    #: The rows of an earlier run that this one retries; the others stay as they are.
    selection: RetrySelection | None = None
    #: A deployment started it: its user may not see this machine's files, so that no message quotes them.
    by_deployment: bool = False
    #: The source is the whole catalog: what it has no longer is retired.
    refresh: RefreshTerms | None = None
    #: The input, where it was read already; None: it is read as the run begins.
    file: CatalogFile | None = field(default=None, repr=False)

    @property
    def named_source(self) -> str:
        """The input as it is recorded: as the person named it, without secrets."""
        if self.selection is not None:
            return self.selection.record.source
        return self.refresh.shown if self.refresh is not None else str(self.source)

    @property
    def scope(self) -> Scope:
        return Scope(self.settings.environment, self.catalog)

    @cached_property
    def unstated(self) -> Unstated:
        """Raises ConfigurationError."""
        unstated = read_unstated(self.settings.operations_file, self.settings.environment)
        return unstated.model_copy(update={"repeatable": unstated.repeatable or self.settings.embedded})

    def only(self, row: Row) -> bool:
        return self.selection is None or self.selection.chooses(row)

    def out_of(self, run_id: RunId) -> Path:
        return self.out or Path("results") / self.catalog / run_id


def import_spec(request: ImportRequest, *, by_deployment: bool = False) -> RunSpec:
    """Raises ConfigurationError and InputRefused.

    A results file has the catalog, the environment and the edition of its run; an edition that is empty is none.
    `by_deployment`: no path may leave the allowed folders.
    """
    settings = read_settings()
    if by_deployment:
        require_allowed_path(request.file, settings)
        require_allowed_path(request.mapping, settings)
        require_allowed_path(request.out, settings)
    return replace(
        _spec_of_file(request, request.file, settings), out=request.out, by_deployment=by_deployment
    )


def refresh_spec(request: RefreshRequest, *, by_deployment: bool = False) -> RunSpec:
    """Raises ConfigurationError.

    `by_deployment`: no path may leave the allowed folders, except that of a source that the settings name.
    """
    for address in (request.source, request.out or ""):
        require_known_kind(address)
    settings = read_settings()
    named = settings.sources.get(request.source)
    address = named.get_secret_value() if named else request.source
    place = request.out if request.out and is_remote(request.out) else None
    out = file_path(request.out) if request.out and place is None else None
    if by_deployment:
        require_allowed_path(request.mapping, settings)
        require_allowed_path(None if named or is_remote(address) else file_path(address), settings)
        require_allowed_path(out, settings)
    limit = RetireLimit.parse(request.retire_at_most or settings.retire_at_most)
    return replace(
        _spec_of_file(request, Path(address), settings),
        source=Path(source_name(address)),
        out=out,
        refresh=RefreshTerms(address, limit, request.retire, place),
        by_deployment=by_deployment,
    )


def retry_spec(
    request: RetryRequest, selection: RetrySelection, settings: Settings, *, by_deployment: bool = False
) -> RunSpec:
    """The rows once more, from the bytes that the ledger kept; `settings` as `read_settings` has them.

    Raises ConfigurationError. `by_deployment`: the results may not leave the allowed folders.
    """
    if by_deployment:
        require_allowed_path(request.out, settings)
    record = selection.record
    settings = _settings_for(request, settings, record.environment)
    return RunSpec(
        source=Path(record.source),
        file=selection.file,
        catalog=record.catalog,
        settings=settings,
        options=_options(request, settings),
        out=request.out,
        edition=record.options.get("edition") or None,
        model=record.options.get("model") or None,
        selection=selection,
        retry=selection.chooses,
        by_deployment=by_deployment,
    )


def _spec_of_file(request: ImportRequest | RefreshRequest, source: Path, settings: Settings) -> RunSpec:
    origin = origin_of(source)
    if origin is not None:
        refuse_other_catalog(origin, request.catalog)
    settings = _settings_for(request, settings, environment_of(origin, request.environment))
    name, sure = (request.catalog, True) if request.catalog else catalog_name(source, settings)
    _require_folder_name(name)
    edition = origin.edition if request.edition is None and origin else request.edition
    choices = SheetChoices(encoding=request.encoding, worksheet=request.worksheet)
    named = named_mapping(request.mapping, str(source))
    return RunSpec(
        source=source,
        catalog=name,
        catalog_named=sure,
        settings=settings,
        options=_options(request, settings),
        choices=choices,
        usual_choices=named.choices,
        mapping=named.mapping if origin is None or request.mapping else origin.mapping,
        edition=edition or None,
        model=_model(request, origin, settings),
        edition_named=request.edition is not None,
        environment_named=request.environment is not None or origin is not None,
        origin=origin,
    )


def _model(request: SheetRequest, origin: Origin | None, settings: Settings) -> str | None:
    """The default model that is named, else that of the run which a file comes from, else that of the settings."""
    if request.model is not None:
        return request.model or None
    return origin.model if origin is not None else settings.model


def _settings_for(request: RunRequest, settings: Settings, environment: str | None) -> Settings:
    return in_environment(
        settings,
        environment,
        max_in_flight=request.max_in_flight,
        attempts=request.attempts,
        confirm=request.confirm,
    )


def _options(request: RunRequest, settings: Settings) -> RunOptions:
    return RunOptions.from_settings(
        settings,
        max_failures=request.max_failures,
        max_patterns=request.max_patterns,
        max_products=request.max_products,
        budget=request.budget,
    )


#: Letters of a catalog's name.
_LONGEST_NAME = 63


def catalog_name(file: Path, settings: Settings) -> tuple[str, bool]:
    """The catalog that a file belongs to when none is named, and whether that is sure.

    A file in a results folder belongs to the catalog of its run. Any other is taken for the catalog of its own
    name, in lower case and dashes; a corrected copy (`check --fix`), for that of its source. Raises
    ConfigurationError when nothing of the name is left.
    """
    manifest = file.resolve().parent / MANIFEST
    if manifest.exists():
        return read_manifest(manifest).catalog, True
    stem = source_stem(file)
    name = _in_dashes(stem)
    if not stem.isascii():
        name = _earlier_name(settings, stem) or slugify(stem, max_length=_LONGEST_NAME)
    if not name:
        raise ConfigurationError(
            f"No catalog name can be made from {file.name!r}.", remedy="Name it with --catalog."
        )
    return name, False


def _in_dashes(stem: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:_LONGEST_NAME]


def _earlier_name(settings: Settings, stem: str) -> str | None:
    """The catalog of the files of this name by an earlier version, which left out letters such as `ö`."""
    spellings = [stem, *(unicodedata.normalize(form, stem) for form in ("NFC", "NFD"))]
    with ledger_if_any(settings) as ledger:
        if ledger is None:
            return None
        for name in map(_in_dashes, spellings):
            sources = (Path(source_name(run.source)) for run in ledger.runs(catalog=name))
            if any(source_stem(source) in spellings for source in sources):
                return name
    return None


def _require_folder_name(catalog: str) -> None:
    if not re.fullmatch(r"[\w][\w .-]{0,62}", catalog) or catalog != catalog.strip():
        raise ConfigurationError(
            f"{catalog!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )


_OUR_NAME = re.compile(r"(results|failures)\b", re.IGNORECASE)
#: Longer than any header.
_BEGINNING = 1 << 16
#: Byte order marks, as latin-1 reads them.
_MARKS = "\xef\xbb\xbf\xff\xfe"


@dataclass(frozen=True)
class Origin:
    """The run that a results file comes from, by the manifest next to it."""

    file: str
    run_id: str
    catalog: str
    environment: str
    edition: str | None
    model: str | None = None
    #: By which the columns of its run's input were found.
    mapping: ColumnMapping = NO_MAPPING
    #: Its rows are of several runs: the catalog's, as of that run.
    whole: bool = False

    def sentence(self) -> str:
        edition = f", edition {self.edition}" if self.edition else ""
        return (
            f"{self.file} comes from run {self.run_id}, by the manifest next to it: catalog {self.catalog}, "
            f"environment {self.environment}{edition}."
        )


def origin_of(source: Path) -> Origin | None:
    """None for a file that is not one of ours, or has no readable manifest next to it.

    Ours is also one that still has its name, next to its manifest, and has lost the result columns.
    """
    if not (_OUR_NAME.match(source.name) or _is_results_file(source)):
        return None
    try:
        manifest = read_manifest(source.resolve().parent / MANIFEST)
    except ManifestUnreadable:
        return None
    edition, model = (manifest.options.get(name) or None for name in ("edition", "model"))
    mapping = ColumnMapping(manifest.options.get(MAPPING) or {})
    return Origin(
        source.name,
        manifest.run_id,
        manifest.catalog,
        manifest.environment,
        edition,
        model,
        mapping,
        whole=bool(manifest.options.get(WHOLE_CATALOG)),
    )


def environment_of(origin: Origin | None, environment: str | None) -> str | None:
    """The environment that is named, else that of the run that a file comes from; None: as set.

    A setting does not count as named: it is for every file. Raises InputRefused when the two differ.
    """
    if origin is None:
        return environment
    if environment not in (None, origin.environment):
        raise InputRefused(
            f"{origin.sentence()} {environment!r} is named.",
            code="other_environment",
            remedy="Leave --environment out to continue there; for another environment, import the catalog's own file.",
        )
    return origin.environment


def refuse_other_catalog(origin: Origin, catalog: str | None) -> None:
    """Raise InputRefused for a results file that is to go into another catalog than its own."""
    if catalog not in (None, origin.catalog):
        raise InputRefused(
            f"{origin.sentence()} The catalog {catalog!r} is named.",
            code="other_catalog",
            remedy="Leave --catalog out; for another catalog, import a file without the result columns.",
        )


def refuse_unknown_environment(ledger: Ledger, file: str, catalog: str, environment: str) -> None:
    """Raise InputRefused when a results file without its manifest may be another environment's."""
    others = sorted({run.environment for run in runs_with_lease(ledger, catalog)} - {environment})
    if others:
        raise InputRefused(
            f"{file} comes from an earlier run, and catalog {catalog!r} has runs in {', '.join(others)}: "
            f"whether {environment!r} is meant is not known.",
            code="environment_unknown",
            remedy="Name the environment with --environment, or leave the file in its results folder.",
        )


def refuse_lost_edition(runs: Iterable[RunRecord], file: str, catalog: str, edition: str | None) -> None:
    """Raise InputRefused when a results file would lose an edition of the catalog.

    `runs`: those that it may come from.
    """
    newest = next((run for run in runs if run.options.get("edition")), None)
    known = newest.options.get("edition") if newest is not None else None
    if newest is not None and known and known != edition:
        none = "''" if edition is None else edition
        raise InputRefused(
            f"{file} comes from an earlier run, and {newest.run_id} of catalog {catalog!r} bought the "
            f"edition {known!r}: whether the file is of that edition is not known.",
            code="edition_unknown",
            remedy=f"Name it with --edition {known}; or with --edition {none} for the products before it.",
        )


def _is_results_file(source: Path) -> bool:
    """By its header, which is in letters that every encoding has in common, but for zeros between them."""
    if not source.is_file():  # opening a pipe waits for whoever writes into it
        return False
    try:
        with source.open("rb") as file:
            beginning = file.read(_BEGINNING).replace(b"\0", b"").decode("latin-1").lstrip(_MARKS)
        rows = csv.reader(io.StringIO(beginning, newline=""))
        return is_results_header(next((row for row in rows if any(map(str.strip, row))), []))
    except (OSError, ValueError, csv.Error):
        return False
