"""One run, step by step: read, check, plan, make, end, publish; and what a command adds to its flow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.changes import ChangeKind, Changes
from patternmill.catalog.offer import Offer
from patternmill.catalog.row_checks import CheckedCatalog, check_rows
from patternmill.engine.engine import Make, MakeGroup
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.files import LATEST, latest_in
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import ledger_if_any, open_ledger
from patternmill.ledger.records import Approval, RunRecord
from patternmill.looking.decision_files import DecisionsFile, keep_decisions, read_decisions
from patternmill.looking.pictures import Pictures
from patternmill.planning.plan import TO_DO, Plan
from patternmill.results.file_origin import origin_note
from patternmill.runs.capabilities import read_extras
from patternmill.runs.followed_source import follow
from patternmill.runs.input_mapping import read_input
from patternmill.runs.preview import Preview, current_offer, preview
from patternmill.runs.refresh_changes import find_changes
from patternmill.runs.request import ImportRequest, RefreshRequest, RemakeRequest, RetryRequest
from patternmill.runs.results_input import has_failures_alone, held_to_run
from patternmill.runs.run import Run, RunEnding
from patternmill.runs.safeguards import refuse_other_service, require_machines
from patternmill.runs.spec import RunSpec
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings
from patternmill.text import plural

if TYPE_CHECKING:
    from patternmill.results.results_files import Results

logger = logging.getLogger(__name__)


class Pipeline:
    """The steps of one run, called once each, in the order in which they are written here."""

    def __init__(self, spec: RunSpec, on_begin: Callable[[Run], None] = lambda run: None) -> None:
        """`on_begin` is called with the run once its plan is on record.

        Raises ConfigurationError when the service's address or key are missing.
        """
        self.spec = spec
        self._on_begin = on_begin
        self._api = StudioApi.from_settings(spec.settings)
        self._file: CatalogFile | None = None
        self._notes: tuple[str, ...] = ()
        #: As read now, without what is remembered.
        self._offer: Offer | None = None
        self._checked: CheckedCatalog | None = None
        self._decisions: DecisionsFile | None = None
        #: A person's decision against the plan; the run is put on record then, and nothing is begun.
        self.refused: Approval | None = None
        self._run: Run | None = None
        self._finishing: asyncio.Task[Results] | None = None
        #: Why a step refused to go on, where a task ran it.
        self.refusal: PatternmillError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End a run that has begun, whatever raised: its rows are in the ledger, and its results are due."""
        try:
            if self._run is not None and self._run.ending is None:
                await self.finish()
        finally:
            await self._api.close()

    async def read(self) -> str:
        """Read the file, at the first call."""
        if self._file is None:
            read = await asyncio.to_thread(read_input, self.spec)
            file, self._notes = await asyncio.to_thread(follow, self.spec, read)
            self._file = file
        return f"{plural(len(self._file.records), 'row')} in {self._file.name}"

    async def check(self) -> str:
        """Check every row against what the environment offers, at the first call.

        Raises ServiceStopped when the key is refused.
        """
        if self._checked is None:
            self._checked = await self._check()
        return f"{self._checked.accepted_count} accepted, {self._checked.refused_count} refused"

    async def _check(self) -> CheckedCatalog:
        assert self._file is not None, "read before it is checked"
        # Before the key is sent, and before the offer is read.
        await asyncio.to_thread(refuse_other_service, self.spec.settings)
        self._offer, known = await current_offer(self._api, self.spec.settings)
        extras = await read_extras(self._api, self.spec, self._file)
        checked = await asyncio.to_thread(check_rows, self._file, known, extras=extras)
        if (origin := self.spec.origin) is not None:
            checked = await asyncio.to_thread(self._as_of_run, origin, checked)
        mapped = self._file.mapping.sentence(self._file.header)
        first = filter(None, [origin_note(self._file.name, origin) if origin else None, mapped])
        return replace(checked, notes=(*first, *self._notes, *checked.notes))

    def _as_of_run(self, origin: RunRecord, checked: CheckedCatalog) -> CheckedCatalog:
        """A results file's rows, held to its run. Failed rows are tried again where it has failures alone."""
        with open_ledger(self.spec.settings) as ledger:
            checked = held_to_run(ledger, origin, checked)
            if has_failures_alone(ledger, origin, checked):
                self.spec = replace(self.spec, retry=lambda row: True)
            pictures = Pictures(self.spec.settings.home)
            self._decisions = read_decisions(ledger, origin, self.spec.source, pictures)
            if self._decisions.decisions:
                count = plural(len(self._decisions.decisions), "decision")
                note = f"It has {count} on patterns: recorded by the run."
                checked = replace(checked, notes=(*checked.notes, note))
            if self._decisions.left:
                checked = replace(checked, notes=(*checked.notes, self._decisions.left_note))
        return checked

    def _keep_decisions(self) -> None:
        """Those that a person wrote into a results file: recorded, and nothing is bought by them."""
        if self.spec.origin is not None and self._decisions is not None and self._decisions.decisions:
            with open_ledger(self.spec.settings) as ledger:
                keep_decisions(ledger, self.spec.origin, self._decisions)

    @property
    def checked(self) -> CheckedCatalog:
        assert self._checked is not None, "checked before it is planned"
        return self._checked

    async def preview(self) -> Preview:
        """The plan as it is now, of rows that are read and checked for it at the first call. Writes nothing."""
        await self.read()
        await self.check()
        return await asyncio.to_thread(preview, self.spec, self.checked)

    async def changes(self, plan: Plan) -> Changes:
        """What a refresh would change. Writes nothing."""

        def found() -> Changes:
            with ledger_if_any(self.spec.settings) as ledger:
                return find_changes(ledger, self.spec, plan)

        return await asyncio.to_thread(found)

    async def plan(self, prefect_flow_run_id: str | None = None) -> Run:
        """Acquire the catalog's lease and put the plan on record. Raises Overlap."""
        self._require_writable_results()
        require_machines(self.spec.settings)
        await asyncio.to_thread(self._keep_decisions)
        self._run = await Run.begin(
            self.spec,
            self.checked,
            self._api,
            offer=self._offer,
            prefect_flow_run_id=prefect_flow_run_id,
            refused=self.refused,
        )
        self._on_begin(self._run)
        return self._run

    async def drive(self, make: Make | None = None, make_group: MakeGroup | None = None) -> None:
        """Drive all rows to their ends, each item by `make`, each group by `make_group`; by default the engine's."""
        await self.begun.engine.drive(make, make_group)

    @property
    def begun(self) -> Run:
        assert self._run is not None, "planned before it is made"
        return self._run

    def finish(self) -> asyncio.Task[Results]:
        """End the run and publish its results, begun at once and done once: what shows it may wait for a server."""
        if self._finishing is None:
            self._finishing = asyncio.create_task(self._end_and_publish())
        return self._finishing

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended, and its results are where they were to be, or cannot be."""
        return self._finishing is not None and self._finishing.done()

    async def _end_and_publish(self) -> Results:
        """End the run, write its results, and copy them where that was requested; the run knows if it fails."""
        run = self.begun
        await run.end()
        try:
            run.results = await asyncio.to_thread(self._publish)
        except PatternmillError as error:
            run.unpublished = error
            raise
        return run.results

    def _publish(self) -> Results:
        # What writes files and pages is loaded for this alone.
        from patternmill.looking.page import gallery
        from patternmill.results.results_files import rebuild, write_catalog

        spec, run_id, folder = self.spec, self.begun.record.run_id, self.spec.catalog_folder
        out, links = spec.out_of(run_id), () if spec.out else (LATEST, latest_in(spec.settings.environment))
        try:
            with open_ledger(spec.settings) as ledger:
                results = rebuild(ledger, run_id, out, gallery, links=links, file=self.checked.file)
                if not folder.is_dir():
                    return results
                written = write_catalog(ledger, spec.settings.environment, spec.catalog, folder)
                return replace(results, catalog=written)
        except OSError as error:
            raise PatternmillError(
                f"The results could not be written to {out}: {error.strerror or type(error).__name__}. "
                f"Nothing is lost: the ledger has it all ({self.ended.outcome}).",
                code="results_unwritable",
                remedy=f"Make room or choose another folder, then `patternmill results {run_id} --out FOLDER`.",
            ) from error

    @property
    def ended(self) -> RunEnding:
        assert self.begun.ending is not None, "ended before it is published"
        return self.begun.ending

    @property
    def published(self) -> Results:
        assert self.begun.results is not None, "published before it is shown"
        return self.begun.results

    async def has_nothing_to_do(self) -> bool:
        """Whether the plan, as it is now, makes nothing and changes nothing in the catalog. Writes nothing."""
        plan = (await self.preview()).plan
        if plan.counts(TO_DO).total() or self.spec.retire_limit is None:
            return not plan.counts(TO_DO).total()
        changing = {ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.REMOVED}
        return changing.isdisjoint(change.kind for change in await self.changes(plan))

    async def run_through(self) -> None:
        """Carry out every step, without Prefect. Raises what the steps raise."""
        await self.read()
        await self.check()
        await self.plan()
        await self.drive()
        await self.finish()

    def _require_writable_results(self) -> None:
        """Raise ConfigurationError, before anything is spent, when the results cannot be written."""
        folder = self.spec.out or self.spec.out_of(RunId("-")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ConfigurationError(
                f"The results cannot be written to {folder}: {error.strerror or type(error).__name__}.",
                remedy="Name another folder with --out.",
            ) from error


@dataclass
class Command:
    """What a command of this process adds to the flow that it runs, which its parameters cannot hold."""

    #: With the secrets of its address; Prefect keeps parameters in clear.
    request: ImportRequest | RefreshRequest | RetryRequest | RemakeRequest
    #: Its service, and what was confirmed on the terminal.
    settings: Settings
    #: Called with the run once its plan is on record.
    on_begin: Callable[[Run], None]
    #: The input as it was read for the plan; None: rows of the ledger.
    file: CatalogFile | None
    #: What a person agreed to buy; None: nobody was asked.
    ceiling: frozenset[ItemKey] | None = None
    #: Why the flow ended before a run began, or without its results.
    fault: PatternmillError | None = None

    def completed(self, spec: RunSpec) -> RunSpec:
        """Return the spec with this command's service, input and ceiling."""
        return replace(spec, settings=self.settings, file=self.file, ceiling=self.ceiling)


#: The command whose flow runs in this process; None in a flow that a worker runs.
command: ContextVar[Command | None] = ContextVar("command", default=None)
