"""The hostile service in a thread of the test, started in milliseconds."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import threading
from pathlib import Path

from tests.hostile.plan import Plan
from tests.hostile.record import Line, lines_of
from tests.hostile.service import HostileService


class Hostile:
    """`with Hostile(plan, folder) as hostile:` then `hostile.url`, `hostile.key`, `hostile.record`."""

    def __init__(self, plan: Plan, folder: Path, *, certificate: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.plan = plan
        self.key = f"sk_{secrets.token_hex(12)}"
        self.record = folder / "hostile-record.jsonl"
        self.url = self.elsewhere = ""
        self._certificate = certificate
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a run of patternmill needs to find this service."""
        return {"PATTERNMILL_STUDIO_URL": self.url, "PATTERNMILL_API_KEY": self.key}

    def __enter__(self) -> Hostile:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop at once: what was not answered by now never is."""
        ending = self._service.__aexit__(None, None, None)
        asyncio.run_coroutine_threadsafe(ending, self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _begin(self) -> None:
        tls = None
        if self._certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self._certificate)
        service = HostileService(self.plan, self.record, keys=(self.key,), tls=tls)
        self._service = await service.__aenter__()
        self.url, self.elsewhere = service.url, service.elsewhere

    def change(self, plan: Plan) -> None:
        """Follow another plan from now on."""
        self.plan = plan
        self._loop.call_soon_threadsafe(self._service.change, plan)

    def lines(self) -> list[Line]:
        return list(lines_of(self.record))
