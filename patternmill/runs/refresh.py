"""One refresh, step by step: an import whose source is the whole catalog, read from wherever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from patternmill.catalog.changes import Changes, RetireLimit
from patternmill.catalog.csv_reader import CatalogFile
from patternmill.catalog.remote import (
    file_path,
    is_remote,
    read_source,
    require_known_kind,
    require_writable,
    shown_address,
    source_name,
    whole_address,
    write_files,
)
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.ledger.ledger import has_ledger, open_ledger
from patternmill.planning.plan import Plan
from patternmill.runs.pipeline import ImportPipeline, import_spec
from patternmill.runs.refresh_changes import RefreshTerms, find_changes
from patternmill.runs.request import RunSpec, require_allowed_path
from patternmill.settings import load_sources

if TYPE_CHECKING:
    from patternmill.results.results_files import Results


class RefreshPipeline(ImportPipeline):
    """The work of one refresh; its steps are those of an import."""

    def __init__(self, spec: RunSpec) -> None:
        assert spec.refresh is not None, "ordered by order_refresh"
        super().__init__(spec)
        self._terms = spec.refresh

    async def _read(self) -> CatalogFile:
        return await asyncio.to_thread(
            read_source,
            self._terms.address,
            encoding=self.spec.encoding,
            empty=True,
            quoting=not self.spec.by_deployment,
        )

    async def changes(self, plan: Plan) -> Changes:
        """What has changed, without anything being written."""
        return await asyncio.to_thread(_changes, self.spec, self._terms, plan)

    async def publish(self) -> Results:
        """Write the results files, and copy them to where else they are wanted, the manifest last."""
        results = await super().publish()
        if self._terms.place is not None:
            files = {mark.name: results.path(mark.name) for mark in results.files}
            await asyncio.to_thread(_deliver, files, self._terms.place, results.out)
        return results

    def _require_writable_results(self) -> None:
        super()._require_writable_results()
        if self._terms.place is not None:
            require_writable(self._terms.place)


def pipeline_for(spec: RunSpec) -> ImportPipeline:
    """What an order asks for, as the steps that do it."""
    return ImportPipeline(spec) if spec.refresh is None else RefreshPipeline(spec)


def refresh_spec(
    source: str,
    catalog: str,
    *,
    environment: str | None = None,
    retire: int | None = None,
    retire_at_most: str | None = None,
    out: str | None = None,
    encoding: str | None = None,
    max_in_flight: int | None = None,
    attempts: int | None = None,
    edition: str | None = None,
    max_failures: str | None = None,
    max_patterns: int | None = None,
    max_products: int | None = None,
    budget: int | None = None,
    confirm: str | Iterable[str] | None = None,
    spread: int | None = None,
    by_deployment: bool = False,
) -> RunSpec:
    """What a person or a schedule asks for, completed from the settings. Raises ConfigurationError.

    `source` and `out` are paths or addresses; `retire` lets at most so many rows go, whatever the limit says.
    `by_deployment`: no path may leave the allowed folders, except that of a source that the settings name.
    """
    for address in (source, out or ""):
        _refuse_password(address)
        require_known_kind(address)
    place = out if out and is_remote(out) else None
    address = source_address(source)
    spec = import_spec(
        Path(address),
        catalog=catalog,
        environment=environment,
        out=file_path(out) if out and place is None else None,
        encoding=encoding,
        max_in_flight=max_in_flight,
        attempts=attempts,
        edition=edition,
        max_failures=max_failures,
        max_patterns=max_patterns,
        max_products=max_products,
        budget=budget,
        confirm=confirm,
        spread=spread,
    )
    if by_deployment:
        _require_allowed_paths(spec, None if source in spec.settings.sources else source)
    limit = RetireLimit.parse(retire_at_most or spec.settings.retire_at_most)
    terms = RefreshTerms(address, limit, retire, place and whole_address(place))
    return replace(spec, source=Path(source_name(address)), refresh=terms, by_deployment=by_deployment)


def _require_allowed_paths(spec: RunSpec, source: str | None) -> None:
    if source is not None and not is_remote(source):
        require_allowed_path(file_path(source), spec.settings)
    if spec.out is not None:
        require_allowed_path(spec.out, spec.settings)


def source_address(source: str) -> str:
    """The path or address of a source, which may be named by PATTERNMILL_SOURCES; with its secrets."""
    named = load_sources().get(source)
    return named.get_secret_value() if named else whole_address(source)


def _changes(spec: RunSpec, terms: RefreshTerms, plan: Plan) -> Changes:
    if not has_ledger(spec.settings):
        return find_changes(None, spec.scope, plan, terms)
    with open_ledger(spec.settings) as ledger:
        return find_changes(ledger, spec.scope, plan, terms)


def _refuse_password(address: str) -> None:
    """What is asked for is kept in clear where it was asked for, as a flow's parameters are."""
    if is_remote(address) and "@" in urlsplit(address).netloc:
        raise ConfigurationError(
            f"The address {shown_address(address)} was given with a user name or password.",
            remedy="Give it a name in PATTERNMILL_SOURCES (JSON: name to address), and name that.",
        )


def _deliver(files: dict[str, Path], place: str, out: Path) -> None:
    try:
        write_files(files, place)
    except PatternmillError as error:
        raise PatternmillError(
            f"{error.message} Nothing is lost: the same files are in {out}.",
            code=error.code,
            remedy="See that the place is there and may be written to, then copy them, the manifest last.",
        ) from None
