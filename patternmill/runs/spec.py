"""Completes a request from the settings, and from the run that its file comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from slugify import slugify

from patternmill.addresses import file_path, is_remote, shown_address, source_name
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import Decision
from patternmill.ledger.ledger import ledger_to_read, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.parameters import RowLimit
from patternmill.planning.items import Scope
from patternmill.planning.rows import Row
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.runs.origin import catalog_of_origin, mapping_of_runs, runs_of_file
from patternmill.runs.remakes import Remake, requested_remake
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.safeguards import require_allowed_paths, require_allowed_store
from patternmill.settings import Settings, in_environment, read_settings
from patternmill.tables.mapping import (
    NO_MAPPING,
    MappingFile,
    SheetMapping,
    find_mapping,
)

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.checks import Checked

#: The longest name of a catalog, in letters.
_LONGEST_NAME = 63


@dataclass(frozen=True)
class RunSpec:
    """A request, completed."""

    #: Where the rows are read, a path or an address, with its secrets; for rows of the ledger, where they came from.
    source: str = field(repr=False)
    catalog: str
    settings: Settings
    options: RunOptions
    #: The mapping that a person confirmed for the catalog's files; None where no file is read.
    mapping_file: MappingFile | None = None
    #: The mapping by which the input is read: the confirmed one and, for a results file, its run's.
    mapping: SheetMapping = NO_MAPPING
    #: Where the results go; None: results/<catalog>/<run>/.
    out: Path | None = None
    #: The address of a store below which the results are copied.
    copy_below: str | None = None
    #: The runs that a results file names in its column `run`, the newest first.
    origins: tuple[RunRecord, ...] = ()
    #: Whether failed items get another attempt, as a person asked for.
    retries: bool = False
    #: The rows of an earlier run that this one retries; the others stay as they are.
    selection: RetrySelection | None = None
    #: The rows of the catalog that are to have another take of their pattern.
    remake: Remake | None = None
    #: The number of takes of a new pattern that are made to choose from.
    takes: int = 1
    #: What people decided, in the file or by the command: the run records it as it begins, and its plan follows it.
    decisions: tuple[Decision, ...] = ()
    #: Whether a deployment started it, whose user may not see this machine's files.
    by_deployment: bool = False
    #: The most products that may be replaced without asking a person.
    change_limit: RowLimit = field(default_factory=RowLimit)
    #: The most rows that may be retired; None if the source is not the whole catalog, so that none are.
    retire_limit: RowLimit | None = None
    #: The most rows that a person lets be retired this once, whatever the limit says.
    retire: int | None = None
    #: The items that a person agreed to buy; a plan that buys others is refused. None: nobody was asked.
    ceiling: frozenset[ItemKey] | None = field(default=None, repr=False)
    #: The input, where it was read already.
    file: Catalog | None = field(default=None, repr=False)

    @property
    def origin(self) -> RunRecord | None:
        """Return the newest run whose results file the source is."""
        return self.origins[0] if self.origins else None

    @property
    def recorded(self) -> Checked | None:
        """Return the rows, where they come from the ledger and not from a file."""
        chosen = self.selection or self.remake
        return chosen.checked if chosen is not None else None

    def with_mapping(self, confirmed: MappingFile) -> RunSpec:
        """Return the spec of an input that is still to be read by this mapping.

        For a results file, the mapping of its run says what this one does not.
        """
        mapping = confirmed.mapping
        if self.origins:
            mapping = mapping_of_runs(self.origins, self.settings).with_more(mapping)
        return replace(self, mapping_file=confirmed, mapping=mapping, file=None)

    @property
    def scope(self) -> Scope:
        return Scope(self.settings.environment, self.catalog)

    @cached_property
    def unstated(self) -> Unstated:
        """Return what the operations file states. Raises ConfigurationError."""
        unstated = read_unstated(self.settings.operations_file, self.settings.environment)
        return unstated.model_copy(update={"repeatable": unstated.repeatable or self.settings.embedded})

    @property
    def has_no_rows(self) -> bool:
        """Return whether it is a retry, and no row of its run fits."""
        return self.selection is not None and not self.selection.rows

    def chooses(self, row: Row) -> bool:
        """Return whether anything is made for a row: in a retry, only for those that were chosen."""
        return self.selection is None or row.sku in self.selection.rows

    @property
    def catalog_folder(self) -> Path:
        """Return the folder of the catalog's files, with the results of its runs unless they are wanted elsewhere."""
        return Path("results") / self.catalog


def run_spec(request: RunRequest, *, by_deployment: bool = False) -> RunSpec:
    """Complete a request; a retry and a remake have their rows from the ledger.

    A results file, known by its column `run`, continues the catalog of its run, whose environment has to be the one
    that is named or configured. `by_deployment`: no path may leave the allowed folders, except that of a source that
    the settings name. Raises ConfigurationError and InputRefused.
    """
    settings = read_settings()
    if by_deployment:
        _require_allowed(request, settings)
    if isinstance(request, ImportRequest | RefreshRequest):
        spec = _spec_of_sheet(request, settings)
    else:
        assert isinstance(request, RetryRequest | RemakeRequest), "there are four kinds of requests"
        spec = _spec_of_rows(request, settings)
    return replace(spec, by_deployment=by_deployment)


def _require_allowed(request: RunRequest, settings: Settings) -> None:
    """Raise ConfigurationError where a request names a path or a store that a deployment's run may not use."""
    place: str | None = getattr(request, "out", None)
    named = getattr(request, "file", None) or getattr(request, "source", None)
    places = [place, None if named in settings.sources else named]
    paths = [file_path(place) for place in places if place is not None and not is_remote(place)]
    require_allowed_paths(settings, *paths, *(getattr(request, name, None) for name in ("mapping", "picks")))
    if place is not None and is_remote(place):
        require_allowed_store(settings, place)


def _spec_of(
    request: RunRequest, environment: str | None, catalog: str, source: str, settings: Settings
) -> RunSpec:
    """Return the spec of a run with what every request has."""
    settings = in_environment(settings, environment, confirm=request.confirm)
    options = RunOptions.from_settings(
        settings, max_failures=request.max_failures, max_items=request.max_items, budget=request.budget
    )
    place: str | None = getattr(request, "out", None)
    is_store = place is not None and is_remote(place)
    return RunSpec(
        source,
        catalog,
        settings,
        options,
        out=file_path(place) if place is not None and not is_store else None,
        copy_below=place if is_store else None,
        change_limit=RowLimit.parse(request.change_at_most or settings.change_at_most),
    )


def _spec_of_sheet(request: ImportRequest | RefreshRequest, settings: Settings) -> RunSpec:
    """Complete a request whose rows are read: from a file, an address, or a source that the settings name."""
    here = in_environment(settings, request.environment, unknown_too=True)
    named = request.file if isinstance(request, ImportRequest) else request.source
    source = _source_of(named, settings)
    catalog = request.catalog or _default_catalog(request, named, source, here)
    is_own = not is_remote(source) and catalog == name_after(source_name(source))
    confirmed = find_mapping(request.mapping, source, settings.home, catalog, own_name=is_own)
    origins: Sequence[RunRecord] = ()
    if isinstance(request, ImportRequest) and named not in settings.sources and not is_remote(named):
        origins = runs_of_file(Path(source), confirmed.mapping.reading, here)
        catalog = catalog_of_origin(request, origins[0], settings) if origins else catalog
    _require_folder_name(catalog)
    spec = _spec_of(request, request.environment, catalog, source, settings)
    if isinstance(request, RefreshRequest):
        limit = RowLimit.parse(request.retire_at_most or settings.retire_at_most)
        spec = replace(spec, retire_limit=limit, retire=request.retire)
    else:
        whole = RowLimit.parse(settings.retire_at_most) if request.whole else None
        spec = replace(spec, retire_limit=whole, takes=request.takes)
    return replace(spec, origins=tuple(origins)).with_mapping(confirmed)


def _source_of(named: str, settings: Settings) -> str:
    """Return the path or address that a request or the settings give for a name. Raises ConfigurationError."""
    if named in settings.sources:
        source = settings.sources[named].address.get_secret_value()
    else:
        source = named if is_remote(named) else str(file_path(named))
    if is_remote(source):
        # Imported here because it loads httpx, which only an address needs.
        from patternmill.service.sources import require_known_kind

        require_known_kind(source)
    return source


def _default_catalog(
    request: ImportRequest | RefreshRequest, named: str, source: str, settings: Settings
) -> str:
    """Return the catalog that is named after a source. Raises ConfigurationError where a person has to name it."""
    if isinstance(request, ImportRequest) and is_remote(named) and not Path(source_name(source)).suffix:
        raise ConfigurationError(
            f"The address {shown_address(source)} does not end with a file's name, after which the catalog could "
            "be named.",
            remedy="Name the catalog with --catalog.",
        )
    file = named if named in settings.sources else source_name(source)
    name = name_after(file)
    if not name:
        raise ConfigurationError(
            f"No catalog name can be made from {file!r}.", remedy="Name it with --catalog."
        )
    if isinstance(request, RefreshRequest):
        with ledger_to_read(settings) as ledger:
            if not any(runs_with_lease(ledger, name, settings.environment)):
                raise ConfigurationError(
                    f"There is no catalog {name!r} in {settings.environment} yet.",
                    remedy="Name the catalog with --catalog: a new one is made.",
                )
    return name


def _spec_of_rows(request: RetryRequest | RemakeRequest, settings: Settings) -> RunSpec:
    """Complete a request about rows of an earlier run, or of the catalog as it is now."""
    with open_ledger(in_environment(settings, request.environment), must_exist=True) as ledger:
        if isinstance(request, RetryRequest):
            chosen = select_rows(ledger, request)
            record = chosen.record
            spec = _spec_of(request, record.environment, record.catalog, record.source, settings)
            return replace(spec, selection=chosen, retries=True, takes=chosen.takes)
        remake = requested_remake(ledger, request, RunOptions.from_settings(settings))
    spec = _spec_of(request, remake.environment, remake.catalog, remake.checked.catalog.sheet.name, settings)
    return replace(spec, remake=remake, decisions=remake.decisions, takes=request.takes, retries=True)


def name_after(file: str) -> str:
    """Return a file's own name, in lower case and dashes; empty where nothing is left."""
    return slugify(Path(file).stem, max_length=_LONGEST_NAME)


def _require_folder_name(catalog: str) -> None:
    if not re.fullmatch(r"[\w][\w .-]{0,62}", catalog) or catalog != catalog.strip():
        raise ConfigurationError(
            f"{catalog!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )
