"""One import, step by step: read, check, plan, make, end. Each step builds on the ones before it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import TYPE_CHECKING, Self

from patternmill.catalog.columns import header_key
from patternmill.catalog.csv_reader import CatalogFile, read_catalog
from patternmill.catalog.offer import Offer
from patternmill.catalog.row_checks import CheckedCatalog, check_rows
from patternmill.engine.options import RunOptions
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import has_ledger, open_ledger
from patternmill.ledger.records import Approval
from patternmill.planning.plan import Plan
from patternmill.planning.proposal import Proposal
from patternmill.results.atomic_files import LATEST, latest_in
from patternmill.results.manifest import MANIFEST, read_manifest
from patternmill.runs import approval
from patternmill.runs.current_offer import current_offer
from patternmill.runs.origin import (
    environment_of,
    origin_of,
    refuse_lost_edition,
    refuse_other_catalog,
    refuse_unknown_environment,
    runs_of,
)
from patternmill.runs.preview import Preview, preview
from patternmill.runs.registry import forget, register
from patternmill.runs.request import RunSpec, refuse_known_other_service, require_allowed_path
from patternmill.runs.retry import refuse_superseded
from patternmill.runs.row_selection import read_selection
from patternmill.runs.run import Run, RunEnding
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings, load_settings
from patternmill.states import RowStatus
from patternmill.text import plural

if TYPE_CHECKING:
    from patternmill.results.results_files import Results


class ImportPipeline:
    """The work of one import. Its steps are called once each, in the order in which they stand here."""

    def __init__(self, spec: RunSpec) -> None:
        """Raises ConfigurationError when the service's address or key are missing."""
        self.spec = spec
        self._api = StudioApi.from_settings(spec.settings)
        self._file: CatalogFile | None = None
        #: As read now, without what is remembered.
        self._offer: Offer | None = None
        self._checked: CheckedCatalog | None = None
        #: What a person said against the plan; the run is put on record then, and nothing is begun.
        self.refused: Approval | None = None
        self._run: Run | None = None
        self._ending: RunEnding | None = None
        self._results: Results | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:
            forget(self._run)
        await self._api.close()

    async def read(self) -> str:
        """Read the input file. Raises InputRefused."""
        self._file = await self._read()
        if self._file.columns.ours and not self.spec.catalog_named:
            raise InputRefused(
                f"{self._file.name} comes from an earlier run, and which catalog it belongs to is not known.",
                code="catalog_unknown",
                remedy="Name the catalog with --catalog, or leave the file in its results folder.",
            )
        if self._file.columns.ours and self.spec.taken_up is None:
            await asyncio.to_thread(_refuse_unknown_origin, self.spec)
        return f"{plural(len(self._file.records), 'row')} in {self._file.name}"

    async def _read(self) -> CatalogFile:
        spec = self.spec
        return await asyncio.to_thread(
            read_catalog, spec.source, encoding=spec.encoding, quoting=not spec.by_deployment
        )

    async def check(self) -> str:
        """Check every row against what the environment offers. Raises ServiceStopped when the key is refused."""
        assert self._file is not None, "read before it is checked"
        # Before the key is sent, and before anything of the offer is believed.
        await asyncio.to_thread(refuse_known_other_service, self.spec.settings)
        offer = await current_offer(self._api, self.spec.settings, self._file)
        self._offer = offer.read
        limit = self.spec.settings.prompt_limit
        checked = await asyncio.to_thread(check_rows, self._file, offer.known, prompt_limit=limit)
        checked = await asyncio.to_thread(_without_superseded, self.spec, checked)
        origin = self.spec.origin
        self._checked = replace(checked, notes=(origin.sentence(), *checked.notes)) if origin else checked
        return f"{self._checked.accepted_count} good, {self._checked.refused_count} refused"

    @property
    def checked(self) -> CheckedCatalog:
        assert self._checked is not None, "checked before it is planned"
        return self._checked

    async def preview(self) -> Preview:
        """The plan with its cost and time, without anything being written."""
        return await asyncio.to_thread(preview, self._order_with_retries(), self.checked)

    def proposal(self, plan: Plan) -> Proposal:
        """A plan as a person would decide on it."""
        return approval.propose(self._order_with_retries(), plan)

    async def needs_approval(self, plan: Plan) -> bool:
        """Whether a person has to approve a plan before the run begins. Writes nothing."""
        return await asyncio.to_thread(approval.needs_approval, self.spec, self.proposal(plan))

    async def plan(self, prefect_flow_run_id: str | None = None) -> Run:
        """Take the catalog and put the plan on record. Raises Overlap."""
        self._require_writable_results()
        self._run = await Run.begin(
            self._order_with_retries(),
            self.checked,
            self._api,
            offer=self._offer,
            prefect_flow_run_id=prefect_flow_run_id,
            refused=self.refused,
        )
        register(self._run)
        return self._run

    @property
    def begun(self) -> Run:
        assert self._run is not None, "planned before it is made"
        return self._run

    async def end(self) -> RunEnding:
        """Decide the outcome and fix how every row stands."""
        self._ending = await self.begun.end()
        return self._ending

    @property
    def ended(self) -> RunEnding:
        assert self._ending is not None, "ended before it is published"
        return self._ending

    async def publish(self) -> Results:
        """Write the results files."""
        run_id = self.ended.record.run_id
        out = self.spec.out_of(run_id)
        try:
            self._results = await asyncio.to_thread(self._publish, run_id, out)
        except OSError as error:
            raise PatternmillError(
                f"The results could not be written to {out}: {error.strerror or type(error).__name__}. "
                f"Nothing is lost: the ledger has it all ({self.ended.outcome}).",
                code="results_unwritable",
                remedy=f"Make room or choose another folder, then `patternmill results {run_id} --out FOLDER`.",
            ) from error
        self.begun.results = self._results
        return self._results

    @property
    def published(self) -> Results:
        assert self._results is not None, "published before it is shown"
        return self._results

    async def run_through(self) -> None:
        """Every step, without Prefect. Raises what the steps raise."""
        if self.spec.spread is not None:
            raise ConfigurationError(
                "A run can be spread only over the workers of a Prefect server, and none answers.",
                remedy="Set PREFECT_API_URL to the server that the workers have, or leave --spread out.",
            )
        await self.read()
        await self.check()
        run = await self.plan()
        async with asyncio.TaskGroup() as shards:
            async for part in run.engine.opened_shards():
                shards.create_task(run.engine.drive(part, run.engine.make))
        await self.end()
        await self.publish()

    def _require_writable_results(self) -> None:
        """Raise ConfigurationError when there is nowhere to write: that is known before anything is spent."""
        folder = self.spec.out or self.spec.out_of(RunId("-")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ConfigurationError(
                f"The results cannot be written to {folder}: {error.strerror or type(error).__name__}.",
                remedy="Name another folder with --out.",
            ) from error

    def _order_with_retries(self) -> RunSpec:
        """Rows that come back as failed in one of our own files are asked for again by whoever sends it in."""
        columns = self.checked.file.columns
        if not columns.ours:
            return self.spec
        header = self.checked.file.header
        status = next(i for i in columns.results if header_key(header[i]) == "status")
        failed = RowStatus.FAILED.value
        return replace(
            self.spec,
            retry=lambda row: row.cells[status].strip() == failed or self.spec.retry(row),
        )

    def _publish(self, run_id: RunId, out: Path) -> Results:
        # pandas and all that comes with it is loaded for this alone.
        from patternmill.results.results_files import rebuild

        links = () if self.spec.out else (LATEST, latest_in(self.spec.settings.environment))
        with open_ledger(self.spec.settings) as ledger:
            return rebuild(ledger, run_id, out, links=links)


def _without_superseded(spec: RunSpec, checked: CheckedCatalog) -> CheckedCatalog:
    """The rows of an earlier run's file, but for those that a later run has superseded."""
    if spec.origin is None or not has_ledger(spec.settings):
        return checked
    with open_ledger(spec.settings) as ledger:
        record = ledger.run(RunId(spec.origin.run_id))
        if record is None or spec.edition != spec.origin.edition:
            return checked
        return refuse_superseded(ledger, record, checked)


def _refuse_unknown_origin(spec: RunSpec) -> None:
    """Raise InputRefused when a file of ours may be of another environment or edition than it would go on with."""
    if not has_ledger(spec.settings):
        return
    file, environment = spec.source.name, spec.settings.environment
    with open_ledger(spec.settings) as ledger:
        if not spec.environment_named:
            refuse_unknown_environment(ledger, file, spec.catalog, environment)
        if not spec.edition_named:
            runs = runs_of(ledger, spec.catalog, environment)
            # Beside its manifest a file is of one run; a copy may be of any.
            may_be_of = islice(runs, 1) if spec.origin is not None else runs
            refuse_lost_edition(may_be_of, file, spec.catalog, spec.edition)


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


def import_spec(
    source: Path,
    *,
    catalog: str | None = None,
    environment: str | None = None,
    out: Path | None = None,
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
    only: Path | None = None,
    by_deployment: bool = False,
) -> RunSpec:
    """What a person asks for, completed from the settings. Raises ConfigurationError and InputRefused.

    `spread` is a number of parts, for as many workers. `only` is a selection, as `patternmill retry` writes it:
    its rows alone are worked on, failed ones again. A results file of an earlier run goes on with the catalog, the
    environment and the edition of that run; an `edition` that is empty is none. `by_deployment`: no path may leave
    the allowed folders.
    """
    for path in (source, out, only) if by_deployment else ():
        if path is not None:
            require_allowed_path(path, load_settings())
    origin = origin_of(source)
    if origin is not None:
        refuse_other_catalog(origin, catalog)
    settings = load_settings(
        environment=environment_of(source, environment),
        max_in_flight=max_in_flight,
        attempts=attempts,
        confirm=confirm,
    )
    name, sure = (catalog, True) if catalog else catalog_name(source)
    if not re.fullmatch(r"[\w][\w .-]{0,62}", name) or name != name.strip():
        raise ConfigurationError(
            f"{name!r} cannot be the name of a catalog: it names a folder too.",
            remedy="Use letters, digits, dashes, dots and spaces, 63 at most.",
        )
    _refuse_unspreadable(settings, spread)
    spec = RunSpec(
        source=source,
        catalog=name,
        catalog_named=sure,
        settings=settings,
        options=RunOptions.from_settings(
            settings,
            max_failures=max_failures,
            max_patterns=max_patterns,
            max_products=max_products,
            budget=budget,
        ),
        encoding=encoding,
        out=out,
        edition=(origin.edition if edition is None and origin else edition) or None,
        spread=spread,
        environment_named=environment is not None or origin is not None,
        edition_named=edition is not None,
        origin=origin,
        by_deployment=by_deployment,
    )
    if only is None:
        return spec
    selection = read_selection(only)
    return replace(spec, retry=selection.chooses, only=selection.chooses, taken_up=selection)


def _refuse_unspreadable(settings: Settings, spread: int | None) -> None:
    """Raise ConfigurationError when the parts of a run could not meet: that is known before anything is spent."""
    if spread is None:
        return
    url = settings.ledger_url.get_secret_value() if settings.ledger_url else ""
    if not url.startswith(("postgresql:", "postgres:")):
        raise ConfigurationError(
            "A run can be spread only with a ledger on PostgreSQL, which every worker reaches.",
            remedy="Set PATTERNMILL_LEDGER_URL=postgresql://... here and for the workers, or leave --spread out.",
        )
    if not 1 <= spread <= settings.max_in_flight:
        raise ConfigurationError(
            f"{plural(settings.max_in_flight, 'job')} in flight cannot be shared by {plural(spread, 'part')}.",
            remedy="Ask for fewer parts, or for a larger --max-in-flight.",
        )
