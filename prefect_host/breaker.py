"""A circuit breaker between a run and its Prefect server: while the server is unavailable, nothing waits for it.

Prefect's client retries when a server is lost, which holds up the start and the end of every flow run for some 20
seconds each, though the work itself could go on. The breaker checks the server from a thread of its own, and opens,
which takes the retries away, while the server is gone for longer than a restart takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from prefect_host.own_server import server_is_there

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
        is_there: Callable[[str, float], bool] = server_is_there,
    ) -> None:
        self._api_url = api_url
        self._patience = patience.total_seconds()
        self._on_change = on_change
        self._is_there = is_there
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="prefect-breaker", daemon=True)
        self.is_open = False
        #: Whether it ever was open.
        self.has_opened = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=ANSWER_SECONDS + CHECK_SECONDS)

    def _watch(self) -> None:
        # It imports Prefect, which this module must not: see connection.py.
        from prefect_host.internals import set_client_retries

        # A check of a server that takes connections and never answers takes its time: count that too.
        answered = time.monotonic()
        while not self._over.wait(CHECK_SECONDS):
            if self._is_there(self._api_url, ANSWER_SECONDS):
                answered = time.monotonic()
            if (time.monotonic() - answered >= self._patience) != self.is_open:
                self.is_open = not self.is_open
                self.has_opened = True
                set_client_retries(0 if self.is_open else None)
                self._on_change(self.is_open)
