"""The Prefect server that shows a run: the one named, one of our own, or none when neither answers."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import HTTPError

from patternmill.errors import PatternmillError
from patternmill.private_files import keep_private
from prefect_host.breaker import PrefectBreaker
from prefect_host.own_server import OwnServer, server_is_there
from prefect_host.record import (
    FinalState,
    close_open_task_runs,
    correct_flow_runs,
    hand_over,
    prefect_api,
    prefect_environment,
    settle,
)

API_URL = "PREFECT_API_URL"
HOW_TO_LOG_IN = "set PREFECT_API_AUTH_STRING; for a server of `up`, leave PREFECT_API_URL out."
#: How long nothing may change on the server before its record is taken for all that there will be.
_SETTLING = timedelta(seconds=20)
_SETTLING_AFTER_A_GAP = timedelta(seconds=5)
_PATIENCE = timedelta(seconds=12)
#: Our own server is started again when it dies, and on a busy machine that takes its time.
_OWN_PATIENCE = timedelta(seconds=40)
_LAST_TRY = timedelta(seconds=1)
_INCOMPLETE = "The Prefect server does not answer any more; its record of this run is not complete."


@dataclass(frozen=True)
class KnownEnds:
    """What an import's flow run is to read, and by name what is nested in it: from the ledger, not from Prefect."""

    top: FinalState
    nested: Mapping[str, FinalState]
    tasks: Mapping[str, FinalState]


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
        #: Whether everything that Prefect's client had to say was delivered.
        self.delivered = True

    def __enter__(self) -> Self:
        with suppress(OSError):
            keep_private(self._home)
        if not self._named:
            self._own = OwnServer(self._home)
            try:
                self._own.start()
            except (PatternmillError, OSError) as error:
                self._go_without(str(error))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._own is not None:
            self._own.stop()

    def wait(self) -> None:
        """Wait until the server answers, and turn Prefect's client to it; to be called before Prefect is imported."""
        if self._named:
            if not server_is_there(self._named):
                self._go_without(f"The Prefect server at {_shown(self._named)} does not answer.")
                return
            os.environ.update(prefect_environment(self._named))
            if _wants_a_password():
                self._go_without(
                    f"The Prefect server at {_shown(self._named)} asks for a password: {HOW_TO_LOG_IN}"
                )
                return
        elif self._own is not None:
            try:
                self._own.wait_ready()
            except PatternmillError as error:
                self._go_without(str(error))
                return
            os.environ.update(prefect_environment(self._own.api_url, self._home))
        else:
            return
        # What Prefect's handlers cannot send is not for the terminal.
        logging.raiseExceptions = False
        self.is_there = True

    def watched_over(self) -> AbstractContextManager[object]:
        """While it lasts, a server that goes away holds nothing up."""
        if not self.is_there:
            return nullcontext()
        patience = _OWN_PATIENCE if self._own is not None else _PATIENCE
        self._breaker = PrefectBreaker(os.environ[API_URL], patience=patience, on_change=self._on_change)
        return self._breaker

    def _on_change(self, is_away: bool) -> None:
        if is_away:
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
        # The breaker's word may be older than the server's return.
        if self._breaker is not None and self._breaker.is_away and not server_is_there(os.environ[API_URL]):
            self.delivered = hand_over(_LAST_TRY)
            self._say(_INCOMPLETE)
            return False
        self.delivered = hand_over()
        if flow_run_id is None:
            return self.delivered
        try:
            whole = self._settled(flow_run_id, known_ends())
        except OSError:
            whole = False
        if not whole:
            self._say(_INCOMPLETE)
        return whole

    def _settled(self, flow_run_id: str, ends: KnownEnds | None) -> bool:
        """Wait for the record, and set right what a server that was away for a while has lost of it."""
        api, gap = prefect_api(), self._breaker is not None and self._breaker.was_away
        settled = settle(api, flow_run_id, patience=_SETTLING_AFTER_A_GAP if gap else _SETTLING)
        unknown = 0
        if settled.open:
            unknown = close_open_task_runs(api, flow_run_id, ends.tasks if ends is not None else {})
        if ends is not None:
            correct_flow_runs(api, flow_run_id, ends.top, ends.nested)
        return unknown == 0

    def _go_without(self, why: str) -> None:
        self._own = None
        self._say(f"{why}\nThe run goes on without the Prefect UI; results and ledger do not depend on it.")


def _wants_a_password() -> bool:
    """Whether the server refuses what Prefect's client in this process knows itself by."""
    try:
        prefect_api().get("version")
    except HTTPError as refused:
        with refused:
            return refused.code in {401, 403}
    except OSError:
        pass
    return False


def _shown(url: str) -> str:
    """The address without a user name or password in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
