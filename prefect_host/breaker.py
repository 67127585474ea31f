"""A breaker between a run and its Prefect server: while the server is away, nothing waits for it.

Prefect's client answers a lost server by trying again, which holds up the start and the end of every flow run for
some 20 seconds each, though the work itself could go on. The breaker looks after the server from a thread of its
own, and takes the retries away while the server is gone for longer than a restart takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from prefect_host.own_server import server_is_there

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 3.0


class PrefectBreaker:
    """Watches the server at `api_url` while entered; `is_away` once it has been silent for `patience`."""

    def __init__(
        self,
        api_url: str,
        *,
        patience: timedelta = timedelta(seconds=12),
        on_change: Callable[[bool], None] = lambda is_away: None,
        is_there: Callable[[str, float], bool] = server_is_there,
    ) -> None:
        self._api_url = api_url
        self._patience = patience.total_seconds()
        self._on_change = on_change
        self._is_there = is_there
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="prefect-breaker", daemon=True)
        self.is_away = False
        #: Whether it ever was.
        self.was_away = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(timeout=ANSWER_SECONDS + LOOK_SECONDS)

    def _watch(self) -> None:
        # A look at a server that takes connections and never answers takes its time: count that too.
        answered = time.monotonic()
        while not self._over.wait(LOOK_SECONDS):
            if self._is_there(self._api_url, ANSWER_SECONDS):
                answered = time.monotonic()
            if (time.monotonic() - answered >= self._patience) != self.is_away:
                self.is_away = not self.is_away
                self.was_away = True
                set_client_retries(0 if self.is_away else None)
                self._on_change(self.is_away)


_usual_retries: list[int] = []


def set_client_retries(retries: int | None) -> None:
    """Set how often Prefect's client of this process tries again, for calls under way too; None: as before."""
    from prefect.settings import get_current_settings

    client = get_current_settings().client
    if not _usual_retries:
        _usual_retries.append(client.max_retries)
    client.max_retries = _usual_retries[0] if retries is None else retries
