"""A stop that reaches everybody who waits, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class Interrupt:
    """Once begun, it ends every wait that it watches over, then and later."""

    def __init__(self) -> None:
        self._waits: set[asyncio.Timeout] = set()
        self.begun = False

    def begin(self) -> None:
        self.begun = True
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(asyncio.get_running_loop().time())
        self._waits.clear()

    async def ends(self, awaited: Awaitable[None]) -> bool:
        """Wait for `awaited`; False when the interrupt came first, which cancels it."""
        try:
            async with asyncio.timeout(0 if self.begun else None) as wait:
                self._waits.add(wait)
                await awaited
        except TimeoutError:
            return False
        finally:
            self._waits.discard(wait)
        return True
