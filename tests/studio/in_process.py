"""A studio in this process, asked through its ASGI application."""

import asyncio
import base64
import io
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
from PIL import Image

from studio.app import build_app
from studio.operations.call import Studio
from studio.pictures import Pictures
from studio.store import Store

KEY = "key-for-tests"
HOST = "http://127.0.0.1"
MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "11oz", "finish": "matte"}}


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def pass_time(self, seconds):
        self.now += timedelta(seconds=seconds)


class InProcess:
    """A studio with short words for its operations."""

    def __init__(self, home, pace, clock):
        self.home = home
        self.store = Store(home / "studio.db")
        self.parts = Studio(self.store, Pictures(home), pace=pace, now=clock)
        self.app = build_app(self.parts, [KEY])

    @classmethod
    @contextmanager
    def open(cls, home, pace="instant", clock=None):
        made = cls(home, pace, clock or (lambda: datetime.now(UTC)))
        yield made
        made.parts.pictures.close()
        made.store.close()

    def request(self, operation, body, key=KEY):
        return self.post(operation, json.dumps(body).encode(), {"Authorization": f"Bearer {key}"})

    def post(self, operation, raw, headers=None):
        return asyncio.run(self.send("POST", f"/v1/{operation}", raw, headers))

    def get(self, address, headers=None):
        return asyncio.run(self.send("GET", address, b"", headers))

    async def send(self, method, address, raw=b"", headers=None, **options):
        """Send a request as a client does that has the key and knows what is wanted, but for these headers."""
        usual = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, **options) as client:
            return await client.request(method, address, content=raw, headers={**usual, **(headers or {})})

    def ask(self, operation, /, **body):
        """Return the body of an answer, which has to be a 200."""
        answer = self.request(operation, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def code(self, operation, body):
        """Return the status and the code of a refusal."""
        answer = self.request(operation, body)
        return answer.status_code, answer.json()["error"]["code"]

    def result(self, operation, /, **body):
        """Return the result of the job that this create starts."""
        job = self.ask("jobs/get", jobId=self.ask(operation, **body)["jobId"])
        assert job["status"] == "succeeded"
        return job["result"]

    def pattern(self, request_id, prompt="blue herons", **more):
        return self.result("patterns/create", requestId=request_id, prompt=prompt, **more)["patternId"]

    def product(self, request_id, pattern_id):
        made = self.result("products/create", requestId=request_id, patternId=pattern_id, **MUG)
        return made["productId"]

    def pay(self, checkout):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        address = checkout["checkoutUrl"].removeprefix(HOST) + "/pay"
        assert asyncio.run(self.send("POST", address, b"", form)).status_code == 303


def encoded_picture(colour):
    """Return a small JPEG, encoded as in an upload."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20), colour).save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode()
