"""The Prefect server that shows a run: the one named, one of our own, or none when neither answers.

Until a server is chosen nothing here imports Prefect, which reads its settings from the environment as it is imported.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import UUID

from patternmill.errors import PatternmillError
from patternmill.private_files import keep_private
from prefect_host.breaker import PrefectBreaker
from prefect_host.environment import API_URL, use_server
from prefect_host.own_server import OwnServer, server_is_there

if TYPE_CHECKING:
    from prefect_host.record import KnownEnds

HOW_TO_LOG_IN = "set PREFECT_API_AUTH_STRING; for a server of `up`, leave PREFECT_API_URL out."
#: How long nothing may change on the server before its record is taken for all that there will be.
_SETTLING = timedelta(seconds=20)
_SETTLING_AFTER_A_GAP = timedelta(seconds=5)
_PATIENCE = timedelta(seconds=12)
#: Our own server is started again when it dies, and on a busy machine that takes its time.
_OWN_PATIENCE = timedelta(seconds=40)
_LAST_TRY = timedelta(seconds=1)
_VERSION_SECONDS = 20.0
_INCOMPLETE = "The Prefect server does not answer any more; its record of this run is not complete."


class Screen:
    """A context in which a run can be watched. Never keeps a run from going on: without a server it says so."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self._own: OwnServer | None = None
        self._breaker: PrefectBreaker | None = None
        self._named = os.environ.get(API_URL)
        #: Whether a server answers; known after `wait`.
        self.is_there = False
        #: Whether everything that Prefect's client had to send was delivered.
        self.delivered = True

    def __enter__(self) -> Self:
        with suppress(OSError):
            keep_private(self._home)
        if not self._named:
            try:
                self._own = OwnServer(self._home).for_this_process()
            except (PatternmillError, OSError) as error:
                self._go_without(str(error))
        return self

    def __exit__(self, *error: object) -> None:
        if self._own is not None:
            self._own.stop()

    def wait(self) -> None:
        """Wait until the server answers, and point Prefect at it; to be called before Prefect is imported."""
        if self._named:
            self.is_there = self._named_answers(self._named)
        elif self._own is not None:
            self.is_there = self._own_answers(self._own)
        if self.is_there:
            # What Prefect's handlers cannot send is not for the terminal.
            logging.raiseExceptions = False

    def _named_answers(self, api_url: str) -> bool:
        if not server_is_there(api_url):
            self._go_without(f"The Prefect server at {_shown(api_url)} does not answer.")
            return False
        use_server(api_url)
        if asyncio.run(_wants_a_password()):
            self._go_without(f"The Prefect server at {_shown(api_url)} asks for a password: {HOW_TO_LOG_IN}")
            return False
        return True

    def _own_answers(self, server: OwnServer) -> bool:
        try:
            server.wait_ready()
        except PatternmillError as error:
            self._go_without(str(error))
            return False
        return True

    def watched_over(self) -> AbstractContextManager[object]:
        """While it lasts, a server that becomes unavailable holds nothing up."""
        if not self.is_there:
            return nullcontext()
        patience = _OWN_PATIENCE if self._own is not None else _PATIENCE
        self._breaker = PrefectBreaker(os.environ[API_URL], patience=patience, on_change=self._on_change)
        return self._breaker

    def _on_change(self, is_open: bool) -> None:
        if is_open:
            self._say("The Prefect server does not answer; the run goes on without it.")

    def run_address(self, flow_run_id: str) -> str:
        """Where a person sees the run."""
        base = self._own.ui_url if self._own is not None else (self._named or "").removesuffix("/api")
        return f"{base}/runs/flow-run/{flow_run_id}"

    @property
    def outlives_the_run(self) -> bool:
        """Whether the address is good after this command has ended."""
        return self._own is None

    def settle(
        self, flow_run_id: str | None, known_ends: Callable[[], KnownEnds | None] = lambda: None
    ) -> bool:
        """Wait until the record of the run is whole on the server, and agrees with `known_ends`; whether it is.

        To be called once the event loop has ended.
        """
        if not self.is_there:
            return False
        from prefect_host.record import deliver

        # The server may have returned since the breaker's last look.
        if self._breaker is not None and self._breaker.is_open and not server_is_there(os.environ[API_URL]):
            self.delivered = deliver(_LAST_TRY)
            self._say(_INCOMPLETE)
            return False
        self.delivered = deliver()
        if flow_run_id is None:
            return self.delivered
        try:
            whole = asyncio.run(self._settled(UUID(flow_run_id), known_ends()))
        except Exception:
            whole = False
        if not whole:
            self._say(_INCOMPLETE)
        return whole

    async def _settled(self, flow_run_id: UUID, ends: KnownEnds | None) -> bool:
        """Wait for the record, and correct what a server that was unavailable for a while has lost of it."""
        from prefect.client.orchestration import get_client

        from prefect_host.record import close_inside, correct_flow_runs, settle

        gap, unknown = self._breaker is not None and self._breaker.has_opened, 0
        async with get_client() as client:
            counts = await settle(client, flow_run_id, patience=_SETTLING_AFTER_A_GAP if gap else _SETTLING)
            if counts.open:
                unknown = await close_inside(client, flow_run_id, ends.inside if ends is not None else {})
            if ends is not None:
                await correct_flow_runs(client, flow_run_id, ends)
        return unknown == 0

    def _go_without(self, why: str) -> None:
        self._own = None
        self._say(f"{why}\nThe run goes on without the Prefect UI; results and ledger do not depend on it.")


async def _wants_a_password() -> bool:
    """Whether the server refuses the credential of Prefect's client in this process."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    try:
        async with asyncio.timeout(_VERSION_SECONDS), get_client() as client:
            await client.api_version()
    except PrefectHTTPStatusError as refused:
        return refused.response.status_code in {401, 403}
    except Exception:
        return False
    return False


def _shown(url: str) -> str:
    """The address without a user name or password in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
