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
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.events import Decision
from patternmill.ledger.ledger import every_ledger, ledger_if_any, open_ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.reports.run_lookup import runs_with_lease
from patternmill.parameters import RowLimit
from patternmill.planning.items import Scope
from patternmill.planning.rows import Row
from patternmill.planning.unstated import Unstated, read_unstated
from patternmill.reading import stable_bytes
from patternmill.runs.recorded_run import origin_note, require_environment
from patternmill.runs.remakes import Remake, requested_remake
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest, RunRequest
from patternmill.runs.retry import RetrySelection, select_rows
from patternmill.runs.safeguards import require_allowed_paths, require_allowed_store
from patternmill.settings import Settings, in_environment, read_settings
from patternmill.tables.columns import RUN_COLUMN, header_key, read_run_cell
from patternmill.tables.mapping import (
    MAPPING,
    NO_MAPPING,
    MappingFile,
    ReadingChoices,
    SheetMapping,
    find_mapping,
)
from patternmill.text import plain

if TYPE_CHECKING:
    from patternmill.tables.catalog import Catalog
    from patternmill.tables.checks import Checked

#: The longest name of a catalog, in letters.
_LONGEST_NAME = 63
#: How many bytes of a text show whether it may have a column `run`.
_BEGINNING = 1 << 16
#: How archives and compressed files begin, which have to be read to know.
_NO_TEXT = (b"PK", b"\x1f\x8b")


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
    #: How the input is read: by that mapping and, for a results file, its run's.
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
    #: How many takes of a new pattern are made to choose from.
    takes: int = 1
    #: What people decided, in the file or by the command: the run records it as it begins, and its plan follows it.
    decisions: tuple[Decision, ...] = ()
    #: Whether a deployment started it, whose user may not see this machine's files.
    by_deployment: bool = False
    #: How many products may be replaced without asking a person.
    change_limit: RowLimit = field(default_factory=RowLimit)
    #: How many rows may be retired; None: the source is not the whole catalog, and none are.
    retire_limit: RowLimit | None = None
    #: How many rows a person decided to retire, whatever the limit says.
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

    @property
    def file_name(self) -> str:
        return source_name(self.source)

    @property
    def named_source(self) -> str:
        """Return the source as it is shown and recorded: without secrets."""
        return shown_address(self.source)

    def with_mapping(self, confirmed: MappingFile) -> RunSpec:
        """Return the spec of an input that is still to be read by this mapping.

        For a results file, the mapping of its run says what this one does not.
        """
        of_run = _mapping_of_runs(self.origins, self.settings)
        return replace(self, mapping_file=confirmed, mapping=of_run.with_more(confirmed.mapping), file=None)

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
        """Return whether anything is made for a row: of a retry, only for those that were chosen."""
        return self.selection is None or self.selection.chooses(row)

    @property
    def catalog_folder(self) -> Path:
        """Return the folder of the catalog's files, with the results of its runs unless they are wanted elsewhere."""
        return Path("results") / self.catalog

    def out_of(self, run_id: RunId) -> Path:
        """Return the folder of a run's results."""
        return self.out or self.catalog_folder / run_id


def run_spec(request: RunRequest, *, by_deployment: bool = False) -> RunSpec:
    """Complete a request; a retry and a remake have their rows from the ledger.

    A results file, known by its column `run`, goes on with the catalog of its run, whose environment has to be the one
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
    named = request.file if isinstance(request, ImportRequest) else request.source
    source = _source_of(named, settings)
    catalog = request.catalog or _default_catalog(request, named, source, settings)
    is_file = named not in settings.sources and not is_remote(named)
    is_own = not is_remote(source) and catalog == _slug(source_name(source))
    confirmed = find_mapping(request.mapping, source, settings.home, catalog, own_name=is_own)
    origins: Sequence[RunRecord] = ()
    if is_file and isinstance(request, ImportRequest):
        origins = runs_of_file(Path(source), confirmed.mapping.reading, settings)
        catalog = _catalog_of_origin(request, origins[0], settings) if origins else catalog
    _require_folder_name(catalog)
    spec = _spec_of(request, request.environment, catalog, source, settings)
    if origins:
        with ledger_if_any(spec.settings) as ledger:
            # The embedded studio's ledger is another one.
            if ledger is None or ledger.runs.get(origins[0].run_id) is None:
                raise _unknown_run(spec.file_name, origins[0].run_id)
    if isinstance(request, RefreshRequest):
        limit = RowLimit.parse(request.retire_at_most or settings.retire_at_most)
        spec = replace(spec, retire_limit=limit, retire=request.retire)
    else:
        whole = RowLimit.parse(settings.retire_at_most) if request.whole else None
        spec = replace(spec, retire_limit=whole, takes=request.takes)
    return replace(spec, origins=tuple(origins)).with_mapping(confirmed)


def _source_of(named: str, settings: Settings) -> str:
    """Return the path or address that a request names, also by a name of the settings. Raises ConfigurationError."""
    if named in settings.sources:
        source = settings.sources[named].address.get_secret_value()
    else:
        source = named if is_remote(named) else str(file_path(named))
    if is_remote(source):
        # Loads httpx, for an address alone.
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
    name = catalog_name(named if named in settings.sources else source_name(source))
    if isinstance(request, RefreshRequest):
        environment = request.environment or settings.environment
        with ledger_if_any(in_environment(settings, environment, unknown_too=True)) as ledger:
            if ledger is None or not any(runs_with_lease(ledger, name, environment)):
                raise ConfigurationError(
                    f"There is no catalog {name!r} in {environment} yet.",
                    remedy="Name the catalog with --catalog: a new one is made.",
                )
    return name


def _catalog_of_origin(request: ImportRequest, origin: RunRecord, settings: Settings) -> str:
    """Return the catalog that a results file goes on with. Raises InputRefused for a request that wants another."""
    name = source_name(request.file)
    require_environment(name, origin, request.environment, settings)
    if request.catalog is not None and request.catalog != origin.catalog:
        raise InputRefused(
            f"{origin_note(name, origin)} The catalog {request.catalog!r} is named.",
            code="other_catalog",
            remedy="Leave --catalog out to go on there; for another catalog, import the catalog's own file.",
        )
    if request.whole:
        raise InputRefused(
            f"{origin_note(name, origin)} --whole is named.",
            code="not_whole",
            remedy="Leave --whole out: a results file is never the whole catalog.",
        )
    return origin.catalog


def _spec_of_rows(request: RetryRequest | RemakeRequest, settings: Settings) -> RunSpec:
    """Complete a request about rows of an earlier run, or of the catalog as it is now."""
    with open_ledger(in_environment(settings, request.environment), must_exist=True) as ledger:
        if isinstance(request, RetryRequest):
            chosen = select_rows(ledger, request)
            record = chosen.record
            spec = _spec_of(request, record.environment, record.catalog, record.source, settings)
            return replace(spec, selection=chosen, retries=True, takes=chosen.takes)
        remake = requested_remake(ledger, request, RunOptions.from_settings(settings))
    spec = _spec_of(request, remake.environment, remake.catalog, remake.checked.catalog.name, settings)
    return replace(spec, remake=remake, decisions=remake.decisions, takes=request.takes, retries=True)


def catalog_name(file: str) -> str:
    """Return the catalog that a file belongs to when none is named: its own name, in lower case and dashes.

    Raises ConfigurationError when nothing is left.
    """
    name = _slug(file)
    if not name:
        raise ConfigurationError(
            f"No catalog name can be made from {Path(file).name!r}.", remedy="Name it with --catalog."
        )
    return name


def _slug(file: str) -> str:
    return slugify(Path(file).stem, max_length=_LONGEST_NAME)


def _require_folder_name(catalog: str) -> None:
    if not re.fullmatch(r"[\w][\w .-]{0,62}", catalog) or catalog != catalog.strip():
        raise ConfigurationError(
            f"{catalog!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )


def runs_of_file(source: Path, choices: ReadingChoices, settings: Settings) -> list[RunRecord]:
    """Return the runs whose results a file has, the newest first; none for any other file.

    Raises InputRefused where no ledger of this home has one of them, or they are of several catalogs.
    """
    named = _run_ids(source, choices)
    if named is None:
        return []
    name = plain(source.name)
    if not named:
        raise _unknown(name, "no run in its column `run`")
    for ledger in every_ledger(settings):
        newest_first = sorted(named, reverse=True)
        records = [
            record for run_id in newest_first if (record := ledger.runs.get(RunId(run_id))) is not None
        ]
        if records and (lacking := named - {record.run_id for record in records}):
            raise _unknown_run(name, min(lacking))
        if len({(record.environment, record.catalog) for record in records}) > 1:
            raise _unknown(name, "results of several catalogs", "several_catalogs")
        if records:
            return records
    raise _unknown_run(name, min(named))


def _mapping_of_runs(records: Sequence[RunRecord], settings: Settings) -> SheetMapping:
    """Return the mapping by which a results file is read: that of its newest run with one, or else of its catalog.

    A sheet whose rows were all remade names only runs of `remake`, which have no mapping.
    """
    mapped = [record for record in records if MAPPING in record.options]
    if not mapped and records:
        with ledger_if_any(settings) as ledger:
            scope = records[0].environment, records[0].catalog
            runs = map(ledger.runs.get, ledger.catalogs.sheet_runs(*scope)) if ledger is not None else ()
            mapped = [record for record in runs if record is not None and MAPPING in record.options]
    return SheetMapping.model_validate(mapped[0].options[MAPPING]) if mapped else NO_MAPPING


def _unknown_run(name: str, run_id: str) -> InputRefused:
    what = f"results of run {plain(run_id)}, which this ledger lacks: what was bought for them is not known"
    return _unknown(name, what)


def _unknown(name: str, what: str, code: str = "unknown_run") -> InputRefused:
    return InputRefused(
        f"{name} has {what}.",
        code=code,
        remedy="Import it where the ledger of that run is (PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL), and the results "
        "of one catalog at a time. If the sheet is not from a run, rename its column `run` (`note:run`, for "
        "instance). Nothing was bought.",
    )


def _run_ids(source: Path, choices: ReadingChoices) -> set[str] | None:
    """Return what is in the column `run`; None without one, or where the file cannot be read, which is told later."""
    if not source.is_file():  # opening a pipe waits for whoever writes into it
        return None
    try:
        with source.open("rb") as file:
            beginning = file.read(_BEGINNING)
        if not beginning.startswith(_NO_TEXT) and b"run" not in beginning.replace(b"\0", b"").lower():
            return None
        # Loads pandas, for a file with results alone.
        from patternmill.tables.sheet import parse_sheet

        sheet = parse_sheet(stable_bytes(source), source.name, NO_MAPPING.score, choices)
    except (OSError, InputRefused):
        return None
    position = next((at for at, cell in enumerate(sheet.header) if header_key(cell) == RUN_COLUMN), None)
    if position is None:
        return None
    return set(filter(None, (read_run_cell(cell)[0] for cell in sheet.column(position).unique())))
