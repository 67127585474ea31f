"""What a run is made from: a request, completed from the settings and from the run that its file comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from slugify import slugify

from patternmill.catalog.catalog_file import NO_CHOICES, CatalogFile, SheetChoices
from patternmill.catalog.column_mapping import NO_MAPPING, ColumnMapping
from patternmill.catalog.mapping_file import MappingFile, find_mapping
from patternmill.catalog.remote import (
    file_path,
    is_remote,
    require_known_kind,
    shown_address,
    source_name,
)
from patternmill.catalog.rows import Row
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import ledger_if_any, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.parameters import RetireLimit
from patternmill.planning.items import Scope
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.results.file_origin import origin_note, require_environment
from patternmill.runs.remakes import Remake, requested_remake
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.results_input import run_of_file, unknown_run
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.safeguards import require_allowed_paths
from patternmill.settings import Settings, in_environment, read_settings


@dataclass(frozen=True)
class RunSpec:
    """A request, completed."""

    source: Path
    catalog: str
    settings: Settings
    options: RunOptions
    #: What a person confirmed of the catalog's files, with its place; None where the rows are not read from a file.
    mapping_file: MappingFile | None = None
    #: By which the input is read: a results file's run has one too.
    mapping: ColumnMapping = NO_MAPPING
    #: Where the results go; None: results/<catalog>/<run>/.
    out: Path | None = None
    #: The run whose results file the source is, by its column `run`.
    origin: RunRecord | None = None
    #: Rows whose failed items a person retries.
    retry: Callable[[Row], bool] | None = None
    #: The rows of an earlier run that this one retries; the others stay as they are.
    selection: RetrySelection | None = None
    #: The rows of the catalog that are to have another take of their pattern.
    remake: Remake | None = None
    #: How many takes of a pattern are made to choose from, where no row was built on one.
    takes: int = 1
    #: A deployment started it: its user may not see this machine's files.
    by_deployment: bool = False
    #: Where the rows are read, a path or an address: with its secrets, so it is never shown. None: at `source`.
    address: str | None = field(default=None, repr=False)
    #: The source is the whole catalog, and what it has no longer is retired, up to this; None: nothing is retired.
    retire_limit: RetireLimit | None = None
    #: A person's decision on how many rows may be retired, in place of the limit.
    retire: int | None = None
    #: The items that a person agreed to buy, where one was asked; a plan that buys others is refused.
    ceiling: frozenset[ItemKey] | None = field(default=None, repr=False)
    #: The input, where it was read already; None: it is read as the run begins.
    file: CatalogFile | None = field(default=None, repr=False)

    @property
    def is_of_rows(self) -> bool:
        """The rows are the ledger's, and not read from a file or a source."""
        return self.selection is not None or self.remake is not None

    @property
    def named_source(self) -> str:
        """The input as it is recorded: as the person named it, without secrets."""
        if self.selection is not None:
            return self.selection.record.source
        return shown_address(self.read_from)

    @property
    def read_from(self) -> str:
        return self.address or str(self.source)

    @property
    def choices(self) -> SheetChoices:
        return self.mapping_file.reading if self.mapping_file is not None else NO_CHOICES

    def with_mapping(self, found: MappingFile) -> RunSpec:
        """Read by this mapping; what it does not say of a results file is as its run had it."""
        of_run = ColumnMapping.of_record(self.origin.options) if self.origin is not None else NO_MAPPING
        return replace(self, mapping_file=found, mapping=of_run.with_more(found.mapping))

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

    @property
    def catalog_folder(self) -> Path:
        """Where the results of all runs of the catalog are, unless they are wanted elsewhere, and what it has now."""
        return Path("results") / self.catalog

    def out_of(self, run_id: RunId) -> Path:
        return self.out or self.catalog_folder / run_id


def run_spec(
    request: ImportRequest | RefreshRequest | RetryRequest | RemakeRequest, *, by_deployment: bool = False
) -> RunSpec:
    """What a run of the request is made from; of a retry and of a remake with the rows that the ledger has for them.

    Raises ConfigurationError and InputRefused. A results file, known by its column `run`, goes on with the catalog of
    its run, whose environment has to be the one that is named or configured. `by_deployment`: no path may leave the
    allowed folders, except that of a source that the settings name.
    """
    settings = read_settings()
    if by_deployment:
        require_allowed_paths(settings, *_paths(request, settings))
    if isinstance(request, ImportRequest):
        spec = _import_spec(request, settings)
    elif isinstance(request, RefreshRequest):
        spec = _refresh_spec(request, settings)
    else:
        spec = _spec_of_rows(request, settings)
    return replace(spec, out=getattr(request, "out", None), by_deployment=by_deployment)


def _paths(request: RunRequest, settings: Settings) -> list[Path | None]:
    """Those that a request names."""
    paths = [getattr(request, name, None) for name in ("file", "mapping", "out", "picks")]
    if isinstance(request, RefreshRequest) and request.source not in settings.sources:
        paths.append(None if is_remote(request.source) else file_path(request.source))
    return paths


def _import_spec(request: ImportRequest, settings: Settings) -> RunSpec:
    found = _mapping_of(request, str(request.file), settings)
    origin = run_of_file(request.file, found.reading, settings)
    if origin is not None:
        require_environment(request.file.name, origin, request.environment, settings)
        _refuse_other_catalog(request.file.name, origin, request)
    spec = _spec_of_file(request, request.file, settings, found, origin)
    if origin is not None:
        with ledger_if_any(spec.settings) as ledger:
            # The embedded studio has a ledger of its own.
            if ledger is None or ledger.runs.get(origin.run_id) is None:
                raise unknown_run(request.file.name, origin.run_id)
    if request.whole and origin is not None:
        raise InputRefused(
            f"{origin_note(request.file.name, origin)} --whole is named.",
            code="not_whole",
            remedy="Leave --whole out: a results file is never the whole catalog.",
        )
    limit = RetireLimit.parse(settings.retire_at_most) if request.whole else None
    return replace(spec, retire_limit=limit, takes=request.takes)


def _refresh_spec(request: RefreshRequest, settings: Settings) -> RunSpec:
    require_known_kind(request.source)
    named = settings.sources.get(request.source)
    address = named.get_secret_value() if named else request.source
    if request.catalog is None:
        request = request.model_copy(update={"catalog": _catalog_of(request, address, settings)})
    found = _mapping_of(request, address, settings)
    limit = RetireLimit.parse(request.retire_at_most or settings.retire_at_most)
    spec = _spec_of_file(request, Path(source_name(address)), settings, found)
    return replace(spec, address=address, retire_limit=limit, retire=request.retire)


def _catalog_of(request: RefreshRequest, address: str, settings: Settings) -> str:
    """The catalog that is named after the source; it has to exist. Raises ConfigurationError."""
    name = catalog_name(Path(request.source if request.source in settings.sources else source_name(address)))
    environment = request.environment or settings.environment
    with ledger_if_any(in_environment(settings, environment, unknown_too=True)) as ledger:
        if ledger is None or not any(runs_with_lease(ledger, name, environment)):
            raise ConfigurationError(
                f"There is no catalog {name!r} in {environment} yet.",
                remedy="Name the catalog with --catalog: a new one is made.",
            )
    return name


def _spec_of_rows(request: RetryRequest | RemakeRequest, settings: Settings) -> RunSpec:
    """The rows of an earlier run, from the bytes that the ledger kept, or of the catalog as it is now."""
    with open_ledger(in_environment(settings, request.environment), must_exist=True) as ledger:
        if isinstance(request, RetryRequest):
            chosen = select_rows(ledger, request)
            record = chosen.record
            spec = _spec_of(request, record.environment, record.catalog, Path(record.source), settings)
            return replace(spec, file=chosen.file, selection=chosen, retry=chosen.chooses)
        remake = requested_remake(ledger, request, settings.home)
    spec = _spec_of(request, remake.environment, remake.catalog, Path(remake.file.name), settings)
    return replace(spec, file=remake.file, remake=remake, retry=lambda row: True)


def _spec_of_file(
    request: ImportRequest | RefreshRequest,
    source: Path,
    settings: Settings,
    found: MappingFile,
    origin: RunRecord | None = None,
) -> RunSpec:
    name = origin.catalog if origin else request.catalog or catalog_name(source)
    _require_folder_name(name)
    spec = _spec_of(request, request.environment, name, source, settings)
    return replace(spec, origin=origin).with_mapping(found)


def _spec_of(
    request: RunRequest, environment: str | None, catalog: str, source: Path, settings: Settings
) -> RunSpec:
    """What is so of every run."""
    settings = in_environment(settings, environment, confirm=request.confirm)
    options = RunOptions.from_settings(
        settings, max_failures=request.max_failures, max_items=request.max_items, budget=request.budget
    )
    return RunSpec(source, catalog, settings, options)


def _mapping_of(request: ImportRequest | RefreshRequest, address: str, settings: Settings) -> MappingFile:
    """What a person confirmed of the catalog's files."""
    own_name = None if is_remote(address) else catalog_name(file_path(address))
    catalog = request.catalog or own_name
    assert catalog is not None, "what follows an address has the name of a catalog"
    return find_mapping(request.mapping, address, settings.home, catalog, own_name=catalog == own_name)


#: Letters of a catalog's name.
_LONGEST_NAME = 63


def catalog_name(file: Path) -> str:
    """The catalog that a file belongs to when none is named: its own name, in lower case and dashes.

    Raises ConfigurationError when nothing is left.
    """
    name = slugify(file.stem, max_length=_LONGEST_NAME)
    if not name:
        raise ConfigurationError(
            f"No catalog name can be made from {file.name!r}.", remedy="Name it with --catalog."
        )
    return name


def _require_folder_name(catalog: str) -> None:
    if not re.fullmatch(r"[\w][\w .-]{0,62}", catalog) or catalog != catalog.strip():
        raise ConfigurationError(
            f"{catalog!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )


def _refuse_other_catalog(name: str, record: RunRecord, request: ImportRequest) -> None:
    """Raise InputRefused for a results file that is to go on in another catalog than its run."""
    if request.catalog is not None and request.catalog != record.catalog:
        raise InputRefused(
            f"{origin_note(name, record)} The catalog {request.catalog!r} is named.",
            code="other_catalog",
            remedy="Leave --catalog out to go on there; for another catalog, import the catalog's own file.",
        )
