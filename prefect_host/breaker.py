"""A circuit breaker between a run and its Prefect server: while the server is unavailable, nothing waits for it.

Prefect's client retries when a server is lost, which delays the start and the end of every flow run by some 20
seconds each, though the work itself could proceed. The breaker checks the server from its own thread, and opens, which
switches the retries off, while the server is unavailable for longer than a restart takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from prefect_host.own_server import server_answers

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
