"""What a run is made from: a request, completed from the settings and from where its file comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.remote import file_path, is_remote, require_known_kind, source_name
from patternmill.catalog.rows import Row
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError
from patternmill.identifiers import RunId
from patternmill.parameters import RetireLimit
from patternmill.planning.items import Scope
from patternmill.results.manifest import MANIFEST, read_manifest
from patternmill.runs.origin import Origin, environment_of, origin_of, refuse_other_catalog
from patternmill.runs.refresh_changes import RefreshTerms
from patternmill.runs.request import ImportRequest, RefreshRequest, RetryRequest, RunRequest
from patternmill.runs.retry import RetrySelection
from patternmill.runs.safeguards import refuse_unspreadable, require_allowed_path
from patternmill.settings import Settings, in_environment, read_settings


@dataclass(frozen=True)
class RunSpec:
    """A request, completed."""

    source: Path
    catalog: str
    settings: Settings
    options: RunOptions
    encoding: str | None = None
    #: Where the results go; None: results/<catalog>/<run>/.
    out: Path | None = None
    edition: str | None = None
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
    #: Into how many parts, for as many processes; None: this one drives all rows.
    spread: int | None = None
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
        encoding=record.input_encoding,
        out=request.out,
        edition=record.options.get("edition") or None,
        selection=selection,
        retry=selection.chooses,
        spread=request.spread,
        by_deployment=by_deployment,
    )


def _spec_of_file(request: ImportRequest | RefreshRequest, source: Path, settings: Settings) -> RunSpec:
    origin = origin_of(source)
    if origin is not None:
        refuse_other_catalog(origin, request.catalog)
    settings = _settings_for(request, settings, environment_of(origin, request.environment))
    name, sure = (request.catalog, True) if request.catalog else catalog_name(source)
    _require_folder_name(name)
    edition = origin.edition if request.edition is None and origin else request.edition
    return RunSpec(
        source=source,
        catalog=name,
        catalog_named=sure,
        settings=settings,
        options=_options(request, settings),
        encoding=request.encoding,
        edition=edition or None,
        edition_named=request.edition is not None,
        environment_named=request.environment is not None or origin is not None,
        origin=origin,
        spread=request.spread,
    )


def _settings_for(request: RunRequest, settings: Settings, environment: str | None) -> Settings:
    return in_environment(
        settings,
        environment,
        max_in_flight=request.max_in_flight,
        attempts=request.attempts,
        confirm=request.confirm,
    )


def _options(request: RunRequest, settings: Settings) -> RunOptions:
    refuse_unspreadable(settings, request.spread)
    return RunOptions.from_settings(
        settings,
        max_failures=request.max_failures,
        max_patterns=request.max_patterns,
        max_products=request.max_products,
        budget=request.budget,
    )


def catalog_name(file: Path) -> tuple[str, bool]:
    """The catalog that a file belongs to when none is named, and whether that is sure.

    A file in a results folder belongs to the catalog of its run. Any other is taken for the catalog of its own
    name, in lower case and dashes. Raises ConfigurationError when nothing of it is left.
    """
    manifest = file.resolve().parent / MANIFEST
    if manifest.exists():
        return read_manifest(manifest).catalog, True
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:63]
    if not name:
        raise ConfigurationError(
            f"No catalog name can be made from {file.name!r}.", remedy="Name it with --catalog."
        )
    return name, False


def _require_folder_name(catalog: str) -> None:
    if not re.fullmatch(r"[\w][\w .-]{0,62}", catalog) or catalog != catalog.strip():
        raise ConfigurationError(
            f"{catalog!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )
