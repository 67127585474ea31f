"""The hostile service: an honest shop behind a wire that fails by plan, with a record of its own."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.hostile.chooser import Chooser
from tests.hostile.faults import DELIVERIES, SPOILERS, Connection, Scene
from tests.hostile.plan import FATES, NOT_EXECUTED, OPERATIONS, STARTS_JOB, WIRE_FAULTS, Plan, Rule
from tests.hostile.record import Record
from tests.hostile.shop import Call, Fate, Shop
from tests.hostile.wire import Answer, Request, json_answer, read_request, refusal

BASE = "/v1/"


class HostileService:
    """`async with HostileService(plan, record_path, keys=...) as service:` then `service.url`."""

    def __init__(
        self,
        plan: Plan,
        record_path: Path,
        *,
        keys: tuple[str, ...],
        tls: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keys = {f"Bearer {key}": hashlib.sha256(key.encode()).hexdigest()[:8] for key in keys}
        self._tls = tls
        self._clock = clock
        self._record = Record(record_path)
        self._tasks: set[asyncio.Task[None]] = set()
        self._shop = Shop(plan, self._record, clock)
        self._chooser = Chooser(plan)

    @property
    def url(self) -> str:
        """Return the base address, with its version segment."""
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    @property
    def _scheme(self) -> str:
        return "https" if self._tls else "http"

    async def __aenter__(self) -> HostileService:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls, backlog=1024)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._second = await asyncio.start_server(self._serve_elsewhere, "127.0.0.1", 0)
        self.elsewhere = f"http://127.0.0.1:{self._second.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in (self._server, self._second):
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.close()

    def close(self) -> None:
        """Close the record."""
        self._record.close()

    def ask(self, request: Request) -> Answer:
        """Answer without a wire and without faults."""
        call, refused = self._receive(request)
        return refused or self._execute(call)

    # One connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Connection(reader, writer)
        await self._within(line, self._converse)

    async def _within(self, line: Connection, talk: Callable[[Connection], Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await talk(line)
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except asyncio.CancelledError:
            pass  # the service stops; the stream's own callback would log a cancelled task as an error
        finally:
            self._tasks.discard(task)
            if not line.over:
                line.writer.close()

    async def _converse(self, line: Connection) -> None:
        while not line.over and (request := await read_request(line.reader)) is not None:
            await self._exchange(line, request)
            if request.headers.get("connection", "").lower() == "close":
                return

    # One request

    async def _exchange(self, line: Connection, request: Request) -> None:
        call, refused = self._receive(request)
        rule = self._chooser.choose(call, WIRE_FAULTS)
        if rule is not None:
            await self._misbehave(line, request, call, refused, rule)
            return
        answer = refused or self._execute(call)
        self._note(call, answer.status)
        await line.answer(answer)

    async def _misbehave(
        self, line: Connection, request: Request, call: Call, refused: Answer | None, rule: Rule
    ) -> None:
        correct = refused or json_answer({})
        if refused is None and rule.params.get("execute", rule.fault not in NOT_EXECUTED):
            correct = self._execute(call, forget=rule.fault == "forget")
        spoil = SPOILERS.get(rule.fault)
        answer = spoil(correct, Scene(rule.params, self.elsewhere, request.path)) if spoil else correct
        is_silent = rule.fault in {"reset_before", "answer_lost"}
        self._note(call, 0 if is_silent else answer.status, rule.fault)
        deliver = DELIVERIES.get(rule.fault)
        await (deliver(line, answer, rule.params) if deliver else line.answer(answer))

    def _receive(self, request: Request) -> tuple[Call, Answer | None]:
        """Return the request as the shop understands it, and the refusal if it cannot be let in."""
        operation = request.path.removeprefix(BASE)
        key = self._keys.get(request.headers.get("authorization", ""), "")
        call = self._shop.understand(operation, request.body, key)
        refused = self._unwelcome(request, operation, key, call)
        return call or Call(operation, {}, request.body, key, "", ""), refused

    def _unwelcome(self, request: Request, operation: str, key: str, call: Call | None) -> Answer | None:
        if not request.path.startswith(BASE) or operation not in OPERATIONS:
            return refusal(404, "not_found", "No such operation.")
        if request.method != "POST":
            return refusal(405, "method", "Every operation is a POST.")
        if not key:
            return refusal(401, "unauthorized", "The API key is missing or unknown.")
        if not request.headers.get("content-type", "").startswith("application/json"):
            return refusal(415, "media_type", "Content-Type must be application/json.")
        return None if call else refusal(400, "not_json", "The body must be a JSON object.")

    def _execute(self, call: Call, *, forget: bool = False) -> Answer:
        """Return the honest answer; a rule may decide what becomes of a new job."""
        if call.operation not in STARTS_JOB:
            read = {
                "jobs/get": self._shop.get_job,
                "categories/list": self._shop.list_categories,
                "categories/get": self._shop.get_category,
            }[call.operation]
            return read(call)
        rule = None
        if (forget or self._shop.known(call) is None) and self._shop.fault_of(call) is None:
            rule = self._chooser.choose(call, FATES)
        answer, _ = self._shop.create(call, Fate.of(rule) if rule else Fate(), forget=forget)
        call.job = self._shop.known(call)
        return answer

    def _note(self, call: Call, status: int, fault: str | None = None) -> None:
        self._record.write(
            "request", self._clock(), operation=call.operation, requestId=call.request_id,
            jobId=call.job.job_id if call.job else call.body.get("jobId"), status=status, fault=fault,
            rules=call.rules, repeat=call.is_repeat, sha=hashlib.sha256(call.raw).hexdigest()[:16],
        )  # fmt: skip

    # Beside the interface

    def change(self, plan: Plan) -> None:
        """Follow another plan from now on. Its rules are counted from nothing."""
        self._chooser = Chooser(plan)
        self._shop.plan = plan

    async def _serve_elsewhere(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._within(Connection(reader, writer), self._receive_strayed)

    async def _receive_strayed(self, line: Connection) -> None:
        """Answer as a foreign host: a key that arrives here has leaked."""
        if (request := await read_request(line.reader)) is not None:
            self._record.write("strayed", self._clock(), authorization="authorization" in request.headers)
            await line.answer(
                json_answer({"jobId": "job_from_elsewhere", "status": "running", "result": None})
            )
