"""An import from the command line: servers of its own where none are named, the flow, the display, the last words."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cli.approval_prompt import approved, asks_for_approval
from cli.plan_text import ending_lines, plan_lines
from cli.progress_display import Display
from cli.terminal import echo
from patternmill.catalog.csv_reader import read_catalog
from patternmill.errors import ConfigurationError, Overlap, PatternmillError
from patternmill.runs.origin import environment_of
from patternmill.runs.pipeline import ImportPipeline, import_spec
from patternmill.runs.registry import on_begin
from patternmill.runs.run import Run
from patternmill.settings import Confirmation, Settings, load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import duration
from prefect_host.connection import Screen
from prefect_host.stop_signals import run_in_thread
from tasks.gallery_pictures import keep_pictures

if TYPE_CHECKING:
    from prefect import State

    from prefect_host.record import KnownEnds

_INTERRUPTED = EXIT_CODES[Outcome.CANCELLED]


@dataclass(frozen=True)
class Request:
    """What the command line asked for; the names are those of the flow's parameters."""

    file: Path
    catalog: str | None = None
    environment: str | None = None
    out: Path | None = None
    encoding: str | None = None
    max_in_flight: int | None = None
    attempts: int | None = None
    edition: str | None = None
    max_failures: str | None = None
    max_patterns: int | None = None
    max_products: int | None = None
    budget: int | None = None
    confirm: Confirmation | None = None
    spread: int | None = None
    #: A selection of rows, as `retry` writes it.
    only: Path | None = None

    def settings(self) -> Settings:
        environment = environment_of(self.file, self.environment)
        return load_settings(
            environment=environment, max_in_flight=self.max_in_flight, attempts=self.attempts
        )

    def refuse_unusable(self) -> None:
        """Raises InputRefused for a file that cannot be used, before any server is started."""
        read_catalog(self.file, encoding=self.encoding)

    def work(self) -> ImportPipeline:
        values = asdict(self)
        return ImportPipeline(import_spec(values.pop("file"), **values))

    async def as_flow(self) -> State[Any]:
        from flows.bulk_import import bulk_import

        state: State[Any] = await bulk_import(**asdict(self), return_state=True)
        return state


class Asked(Protocol):
    """What a verb asks for that makes things: an import or a refresh."""

    @property
    def spread(self) -> int | None: ...
    def settings(self) -> Settings: ...
    def refuse_unusable(self) -> None: ...
    def work(self) -> ImportPipeline: ...
    async def as_flow(self) -> State[Any]: ...


def show_plan(request: Request) -> int:
    """Print what an import would do just now; writes and spends nothing."""
    request.refuse_unusable()

    async def plan() -> list[str]:
        async with request.work() as work:
            await work.read()
            await work.check()
            preview = await work.preview()
            return list(plan_lines(preview, work.checked, work.proposal(preview.plan).digest()))

    with service_at_hand(request.settings()):
        for line in asyncio.run(plan()):
            echo(line)
    return 0


def run_import(request: Asked, approve: str | None = None) -> int:
    """Run the import to its end and say what came of it; returns the exit code.

    `approve` is the digest of a plan, or its beginning.
    """
    request.refuse_unusable()
    settings = request.settings()
    if request.spread is not None and settings.studio_url is None:
        raise ConfigurationError(
            "A run can be spread only where every worker reaches the service, and no address is named.",
            remedy="Set PATTERNMILL_STUDIO_URL, or leave --spread out.",
        )
    if approve is not None or asks_for_approval(settings):
        with service_at_hand(settings):
            if not asyncio.run(approved(request, approve)):
                return EXIT_REFUSED
    watched = _Watched()
    with Screen(settings.home, watched.display.say) as screen:
        watched.display.say("Starting …")
        with service_at_hand(settings):
            screen.wait()
            try:
                with screen.watched_over(), watched.display.showing():
                    code = run_in_thread(watched.run(request, on_prefect=screen.is_there), watched.on_signal)
            except PatternmillError:
                # Else Prefect's client would go on at the end of the process, with a server that is gone by then.
                screen.settle(watched.flow_run_id)
                raise
            watched.keep_pictures()
            flow_run_id = watched.flow_run_id
            recorded = screen.settle(flow_run_id, watched.known_ends)
        address = screen.run_address(flow_run_id) if recorded and flow_run_id else None
        for line in ending_lines(watched.begun, watched.state_message, address, screen.outlives_the_run):
            echo(line)
    if not screen.delivered:
        # Prefect's client would go on for minutes, trying to reach a server that is gone.
        sys.stdout.flush()
        os._exit(code)
    return code


@contextmanager
def service_at_hand(settings: Settings) -> Iterator[None]:
    """The service that the settings name, or the embedded studio, made known to this process's settings."""
    if settings.studio_url is not None:
        yield
        return
    from cli.embedded_studio import embedded_studio

    with embedded_studio(settings.home, environment=settings.environment) as studio:
        os.environ["PATTERNMILL_STUDIO_URL"] = studio.url
        os.environ["PATTERNMILL_API_KEY"] = studio.key.get_secret_value()
        os.environ["PATTERNMILL_EMBEDDED"] = "true"
        try:
            yield
        finally:
            for name in ("STUDIO_URL", "API_KEY", "EMBEDDED"):
                del os.environ[f"PATTERNMILL_{name}"]


class _Watched:
    """One import of this process: its flow, its run, and what a person's signals do to it."""

    def __init__(self) -> None:
        self.display = Display()
        self.begun: Run | None = None
        self.state_message = ""
        self._flow_run_id: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        on_begin(self._on_begin)

    @property
    def flow_run_id(self) -> str | None:
        return self.begun.record.prefect_flow_run_id if self.begun else self._flow_run_id

    async def run(self, request: Asked, *, on_prefect: bool) -> int:
        """Run the import; returns the exit code. Raises what the steps before the first purchase raise."""
        self._loop = asyncio.get_running_loop()
        if on_prefect:
            await self._as_flow(request)
        if self.begun is None and not self.state_message:
            try:
                async with request.work() as work:
                    await work.run_through()
            except Overlap as overlap:
                self.state_message = str(overlap)
        return self._exit_code()

    async def _as_flow(self, request: Asked) -> None:
        try:
            state = await request.as_flow()
        except PatternmillError:
            raise
        except Exception as error:
            # A server that went away at the start or at the end; the run itself does not depend on it.
            self.display.say(f"The Prefect server does not answer ({type(error).__name__}).")
            return
        if state.state_details.flow_run_id is not None:
            self._flow_run_id = str(state.state_details.flow_run_id)
        if self.begun is None or self.begun.ending is None:
            if state.is_failed() or state.is_crashed():
                result = await state.aresult(raise_on_failure=False)
                raise result if isinstance(result, BaseException) else PatternmillError(state.message or "")
            self.state_message = state.message or state.name or ""

    def _exit_code(self) -> int:
        if self.begun is None:
            return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
        if self.begun.ending is None:
            return EXIT_CODES[Outcome.FAILED]
        return EXIT_CODES[self.begun.ending.outcome]

    def _on_begin(self, run: Run) -> None:
        self.begun = run
        if run.spec.origin is not None:
            self.display.say(run.spec.origin.sentence())
        self.display.watch(run)

    def known_ends(self) -> KnownEnds | None:
        """What the Prefect server is to show of an ended run."""
        if self.begun is None or self.begun.ending is None:
            return None
        from prefect_host.record import KnownEnds
        from tasks.prefect_states import ending_message, shard_state, state_of, task_run_states

        ending, engine = self.begun.ending, self.begun.engine
        top = state_of(ending.outcome, ending_message(ending))
        shards = {part.describe(): shard_state(engine, part) for part in engine.shards if engine.driven(part)}
        return KnownEnds(top, {**shards, **task_run_states(self.begun)})

    def keep_pictures(self) -> None:
        """Where the studio is our own, and ends with this command: put its pictures beside the gallery."""
        run = self.begun
        if run is not None and run.results is not None and run.spec.settings.embedded:
            settings = run.spec.settings
            assert settings.studio_url is not None, "the embedded studio has an address"
            out = run.results.out
            keep_pictures(out, settings.home / "pictures", settings.studio_url, self.display.say)

    def on_signal(self, name: str) -> None:
        """The first one stops the run in order; the next one, or one before there is a run, ends it at once."""
        run = self.begun
        if run is None or self._loop is None or run.ending is not None or run.is_stopped:
            self.display.say("Ended at once; the same command goes on from here.")
            os._exit(_INTERRUPTED)
        drain = duration(run.spec.options.drain)
        self.display.say(f"Stopping: jobs in flight are followed for {drain}. Once more ends at once.")
        self._loop.call_soon_threadsafe(run.stop, f"Stopped by {name}.")
