"""The Prefect server that shows a run: the configured one, one of our own, or none; and what happens without it.

Until a server is chosen nothing here imports Prefect, which reads its settings from the environment as it is imported.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import UUID

from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.files import keep_private, write_whole
from prefect_host.own_server import API_URL, OwnServer, server_answers, use_server

if TYPE_CHECKING:
    from prefect_host.record import KnownEnds


HOW_TO_LOG_IN = "set PREFECT_API_AUTH_STRING; for a server of `up`, leave PREFECT_API_URL out."
#: How long nothing may change on the server before what it has not recorded counts as lost.
_SETTLING = timedelta(seconds=8)
_SETTLING_AFTER_A_GAP = timedelta(seconds=3)
_PATIENCE = timedelta(seconds=12)
#: Our own server is restarted when it dies, which is slow on a busy machine.
_OWN_PATIENCE = timedelta(seconds=40)
_LAST_TRY = timedelta(seconds=1)
_VERSION_SECONDS = 20.0
_INCOMPLETE = (
    "The Prefect server does not have all of this run on record; "
    "the next command that finds it adds the rest."
)
#: The runs whose record is incomplete, in the home: a file each, named after the run, with its environment.
_MARKS = "incomplete-records"
#: After the environment: the run has no flow run yet.
_UNSHOWN = "unshown"
#: So many may be left to a later command; it completes them at once.
MOST_INCOMPLETE = 20


def mark_incomplete(home: Path, run_id: str, environment: str, *, is_shown: bool = True) -> None:
    """Have a later command of this home complete a run's record; on a full disk it stays as it is.

    `is_shown`: whether the run has a flow run, of which something is missing.
    """
    with suppress(OSError):
        text = environment if is_shown else f"{environment} {_UNSHOWN}"
        write_whole(home / _MARKS / run_id, [text.encode()])


def incomplete_records(home: Path) -> dict[str, str]:
    """The environments of the runs whose record is incomplete, by run."""
    return {run_id: mark.partition(" ")[0] for run_id, mark in _marks(home).items()}


def _marks(home: Path) -> dict[str, str]:
    marks = {}
    for mark in sorted((home / _MARKS).glob("[!.]*")):
        # Another command may complete the same record now.
        with suppress(FileNotFoundError):
            marks[mark.name] = mark.read_text("utf-8").strip()
    return marks


def may_go_without(home: Path) -> bool:
    """Whether a run with nothing to do need not start a Prefect server.

    It need where another is configured, and where earlier records wait for it.
    """
    marks = _marks(home).values()
    waiting = len(marks) >= MOST_INCOMPLETE or any(not mark.endswith(_UNSHOWN) for mark in marks)
    return not waiting and not os.environ.get(API_URL)


def mark_complete(home: Path, run_id: str) -> None:
    """The record of a run is complete, or will never be."""
    (home / _MARKS / run_id).unlink(missing_ok=True)


class PrefectConnection:
    """A run's connection to its Prefect server; without one it prints why, and the run continues."""

    def __init__(self, home: Path, print_line: Callable[[str], None]) -> None:
        self._home = home
        self._print = print_line
        self._own: OwnServer | None = None
        self._breaker: PrefectBreaker | None = None
        self._named = os.environ.get(API_URL)
        #: Known after `wait`.
        self.is_available = False
        #: Whether Prefect's client could send everything.
        self.delivered = True

    def __enter__(self) -> Self:
        with suppress(ConfigurationError):
            keep_private(self._home)
        if not self._named:
            try:
                self._own = OwnServer(self._home).for_this_process()
            except PatternmillError as error:
                self._go_without(str(error))
            except OSError as error:
                reason = error.strerror or type(error).__name__
                self._go_without(f"The Prefect server of {self._home} cannot be started: {reason}.")
        return self

    def __exit__(self, *error: object) -> None:
        if self._own is not None:
            # Ctrl-C waits no longer for its end, and changes nothing about how the run ended.
            with suppress(KeyboardInterrupt):
                self._own.stop()

    def what_starts(self) -> str:
        """What `wait` waits for, and why, for people."""
        if self._own is None:
            return f"Asking the Prefect server at {_shown(self._named)} …" if self._named else "Starting …"
        if not self._own.is_owner:
            return "Joining the Prefect server of this folder, which runs already …"
        return "Starting the Prefect server of this folder, which shows the run …"

    def wait(self) -> None:
        """Wait until the server answers, and point Prefect at it. Call it before Prefect is imported."""
        if self._named:
            self.is_available = self._named_answers(self._named)
        elif self._own is not None:
            self.is_available = self._own_answers(self._own)
        if self.is_available:
            # Else Prefect's handlers print what they cannot send.
            logging.raiseExceptions = False

    def _named_answers(self, api_url: str) -> bool:
        if not server_answers(api_url):
            self._go_without(f"The Prefect server at {_shown(api_url)} does not answer.")
            return False
        use_server(api_url)
        if asyncio.run(_needs_password()):
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

    def circuit_breaker(self) -> AbstractContextManager[object]:
        """While it lasts, the run does not wait for a server that becomes unavailable."""
        if not self.is_available:
            return nullcontext()
        patience = _OWN_PATIENCE if self._own is not None else _PATIENCE
        self._breaker = PrefectBreaker(os.environ[API_URL], patience=patience, on_change=self._on_change)
        return self._breaker

    def _on_change(self, is_open: bool) -> None:
        if is_open:
            self._print("The Prefect server does not answer; the run continues without it.")

    def run_address(self, flow_run_id: str) -> str:
        base = self._own.ui_url if self._own is not None else (self._named or "").removesuffix("/api")
        return f"{base}/runs/flow-run/{flow_run_id}"

    @property
    def outlives_run(self) -> bool:
        """Whether the server answers after this command has ended."""
        return self._own is None

    def complete_record(
        self, flow_run_id: str | None, known_ends: Callable[[], KnownEnds | None] = lambda: None
    ) -> bool:
        """Wait until the server's record of the run is complete and agrees with `known_ends`; whether it is.

        Call it once the event loop has ended.
        """
        if not self.is_available:
            return False
        from prefect_host.record import deliver

        # The server may have returned since the breaker's last check.
        if self._breaker is not None and self._breaker.is_open and not server_answers(os.environ[API_URL]):
            self.delivered = deliver(_LAST_TRY)
            self._print(_INCOMPLETE)
            return False
        self.delivered = deliver()
        if flow_run_id is None:
            return self.delivered
        try:
            complete = asyncio.run(self._complete(UUID(flow_run_id), known_ends()))
        except Exception:
            complete = False
        if not complete:
            self._print(_INCOMPLETE)
        return complete

    def leave_record(self) -> None:
        """Wait no longer for the server to have all that was sent; the next command completes the record."""
        self.delivered = False
        self._print(_INCOMPLETE)

    async def _complete(self, flow_run_id: UUID, ends: KnownEnds | None) -> bool:
        """Wait for the record, and restore what a server that was unavailable for a while has lost."""
        from prefect.client.orchestration import get_client

        from prefect_host.record import KnownEnds, close_inside, complete_record, correct_flow_runs

        gap = self._breaker is not None and self._breaker.has_opened
        known = ends or KnownEnds()
        async with get_client() as client:
            missing = await complete_record(
                client, flow_run_id, known, patience=_SETTLING_AFTER_A_GAP if gap else _SETTLING
            )
            unknown = await close_inside(client, flow_run_id, known)
            if ends is not None:
                await correct_flow_runs(client, flow_run_id, ends)
        return missing + unknown == 0

    def _go_without(self, why: str) -> None:
        self._own = None
        self._print(
            f"{why}\nThe run continues without the Prefect UI; results and ledger do not depend on it, "
            "and the next command that has a server shows it there."
        )


async def _needs_password() -> bool:
    """Whether the server refuses this process's credential."""
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


CHECK_SECONDS = 1.0
ANSWER_SECONDS = 3.0


class PrefectBreaker:
    """Checks the server at `api_url` while entered; open once it has not answered for `patience`."""

    def __init__(
        self,
        api_url: str,
        *,
        patience: timedelta = timedelta(seconds=12),
        on_change: Callable[[bool], None] = lambda is_open: None,
    ) -> None:
        self._api_url = api_url
        self._patience = patience.total_seconds()
        self._on_change = on_change
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="prefect-breaker", daemon=True)
        self.is_open = False
        self.has_opened = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=ANSWER_SECONDS + CHECK_SECONDS)

    def _watch(self) -> None:
        # Imports Prefect, which this module must not: see connection.py.
        from prefect_host.internals import set_client_retries

        # Counts the time of the check too: a server may accept connections and never answer.
        answered = time.monotonic()
        while not self._over.wait(CHECK_SECONDS):
            if server_answers(self._api_url, ANSWER_SECONDS):
                answered = time.monotonic()
            if (time.monotonic() - answered >= self._patience) != self.is_open:
                self.is_open = not self.is_open
                self.has_opened = True
                set_client_retries(0 if self.is_open else None)
                self._on_change(self.is_open)
