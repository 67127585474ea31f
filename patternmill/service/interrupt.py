"""A stop that ends all waits at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Interrupt:
    """Once begun, it ends every wait inside of a `guard`, then and later."""

    def __init__(self) -> None:
        self._guards: set[asyncio.Timeout] = set()
        self.begun = False

    def begin(self) -> None:
        self.begun = True
        for guard in self._guards:
            if not guard.expired():
                guard.reschedule(asyncio.get_running_loop().time())
        self._guards.clear()

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        """What is awaited inside is cancelled, and TimeoutError raised, when the interrupt comes first."""
        async with asyncio.timeout(0 if self.begun else None) as guard:
            self._guards.add(guard)
            try:
                yield
            finally:
                self._guards.discard(guard)
