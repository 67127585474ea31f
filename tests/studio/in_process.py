"""A studio in this process, asked through its ASGI application."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from PIL import Image
from starlette.applications import Starlette

from studio.app import build_app
from studio.operations.context import Clock
from studio.pace import Pace
from studio.pictures import Pictures
from studio.service import Service, utc_now
from studio.store import Store

KEY = "key-for-tests"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
HOST = "http://127.0.0.1"
Headers = dict[str, str]


@dataclass
class InProcess:
    """A studio whose jobs end at once, with short words for its operations."""

    home: Path
    service: Service
    app: Starlette

    @classmethod
    @contextmanager
    def open(cls, home: Path, pace: Pace = Pace.INSTANT, clock: Clock = utc_now) -> Iterator[InProcess]:
        store = Store(home / "studio.db")
        service = Service(store, home=home, pace=pace, clock=clock)
        yield cls(home, service, build_app(service, Pictures(home), frozenset({KEY})))
        store.close()

    def request(self, operation: str, body: object, key: str = KEY) -> httpx.Response:
        return self.post(operation, json.dumps(body).encode(), {"Authorization": f"Bearer {key}"})

    def post(self, operation: str, raw: bytes, headers: Headers | None = None) -> httpx.Response:
        return asyncio.run(self.send("POST", f"/v1/{operation}", raw, headers))

    def get(self, address: str, headers: Headers | None = None) -> httpx.Response:
        return asyncio.run(self.send("GET", address, b"", headers))

    async def send(
        self, method: str, address: str, raw: bytes = b"", headers: Headers | None = None, **options: Any
    ) -> httpx.Response:
        """Send a request as a client does that has the key and knows what is wanted, but for these headers."""
        usual = {**AUTHORIZED, "Content-Type": "application/json"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=HOST, **options
        ) as client:
            return await client.request(method, address, content=raw, headers={**usual, **(headers or {})})

    def ask(self, operation: str, /, **body: object) -> dict[str, Any]:
        """Return the body of an answer, which has to be a 200."""
        answer = self.request(operation, body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert isinstance(found, dict)
        return found

    def result(self, operation: str, /, **body: object) -> dict[str, str]:
        """The result of the job that this create starts."""
        job = self.ask("jobs/get", jobId=self.ask(operation, **body)["jobId"])
        assert job["status"] == "succeeded"
        result = job["result"]
        assert isinstance(result, dict)
        return result

    def pattern(self, request_id: str, prompt: str = "blue herons", **more: object) -> str:
        return self.result("patterns/create", requestId=request_id, prompt=prompt, **more)["patternId"]

    def product(self, request_id: str, pattern_id: str) -> str:
        return self.result(
            "products/create",
            requestId=request_id,
            patternId=pattern_id,
            categoryId="cat_stg_mug",
            selections={"size": "11oz", "finish": "matte"},
        )["productId"]

    def pay(self, checkout: dict[str, Any]) -> None:
        found = self.service.store.checkouts.one(page_id=str(checkout["checkoutUrl"]).rsplit("/", 1)[-1])
        assert found is not None
        self.service.checkouts.pay(found)


def encoded_picture(colour: str) -> str:
    """Return a small JPEG, encoded as in an upload."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20), colour).save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode()
