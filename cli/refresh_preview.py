"""A refresh from the command line: what was asked for, as a flow or without one, and what it would change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.launcher import service_at_hand
from cli.plan_text import plan_lines
from cli.terminal import echo
from patternmill.catalog.changes import Changes
from patternmill.catalog.remote import keep_secret, read_source
from patternmill.runs.origin import environment_of
from patternmill.runs.refresh import RefreshPipeline, refresh_spec, source_address
from patternmill.runs.refresh_changes import change_lines, counts_line
from patternmill.settings import Confirmation, Settings, load_settings

if TYPE_CHECKING:
    from prefect import State

_MOST_CHANGES = 60


@dataclass(frozen=True)
class RefreshRequest:
    """What the command line asked for; the names are those of the flow's parameters."""

    source: str = field(repr=False)
    catalog: str
    environment: str | None = None
    retire: int | None = None
    retire_at_most: str | None = None
    out: str | None = field(default=None, repr=False)
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

    def settings(self) -> Settings:
        environment = environment_of(Path(source_address(self.source)), self.environment)
        return load_settings(
            environment=environment, max_in_flight=self.max_in_flight, attempts=self.attempts
        )

    def refuse_unusable(self) -> None:
        """Raises InputRefused for a source that cannot be used, before any server is started."""
        read_source(source_address(self.source), encoding=self.encoding, empty=True)

    def work(self) -> RefreshPipeline:
        return RefreshPipeline(refresh_spec(**self._values()))

    async def as_flow(self) -> State[Any]:
        from flows.catalog_refresh import catalog_refresh

        state: State[Any] = await catalog_refresh(**self._values(), return_state=True)
        return state

    def _values(self) -> dict[str, Any]:
        """As they may be passed on: a flow's parameters are stored in clear."""
        values = asdict(self)
        for name in ("source", "out"):
            values[name] = keep_secret(values[name]) if values[name] else values[name]
        return values


def show_changes(request: RefreshRequest) -> int:
    """Print what a refresh would change and make just now; writes and spends nothing."""
    request.refuse_unusable()

    async def plan() -> list[str]:
        async with request.work() as work:
            await work.read()
            await work.check()
            preview = await work.preview()
            changes = await work.changes(preview.plan)
            digest = work.proposal(preview.plan).digest()
            return [*_changes_told(changes), *plan_lines(preview, work.checked, digest)]

    with service_at_hand(request.settings()):
        for line in asyncio.run(plan()):
            echo(line)
    return 0


def _changes_told(changes: Changes) -> Iterator[str]:
    yield f"The source: {counts_line(changes.counts())}"
    yield from change_lines(changes, _MOST_CHANGES)
    yield ""
