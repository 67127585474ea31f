"""The faults: how a correct answer is changed, and how an answer is brought to the client badly, or not at all."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tests.dialects import DIALECTS
from tests.hostile.wire import Answer, json_answer, reset

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """What a spoiler may use in addition to the correct answer."""

    params: Params
    #: Base address of the second listener, and the path that was asked for.
    elsewhere: str
    path: str
    #: The job of another item, if there is one.
    other_job_id: str
    job_id: str


def retry_after_headers(form: str | None) -> dict[str, str]:
    """`None`: no header. `date:30`: an HTTP date in 30 s. Anything else as it is: "5", "0", "-5", "soon", "1e9"."""
    if form is None:
        return {}
    if form.startswith("date:"):
        form = email.utils.formatdate(time.time() + float(form.removeprefix("date:")), usegmt=True)
    return {"Retry-After": form}


def _status(correct: Answer, scene: Scene) -> Answer:
    code = int(scene.params["code"])
    body = scene.params.get("body", {"error": {"code": f"http_{code}", "message": f"refused with {code}"}})
    text = json.dumps(body).replace("$jobId", scene.job_id)
    answer = Answer(code, text.encode(), {"Content-Type": "application/json"})
    return replace(answer, headers={**answer.headers, **retry_after_headers(scene.params.get("retry_after"))})


def _redirect(correct: Answer, scene: Scene) -> Answer:
    where = scene.elsewhere + scene.path + str(scene.params.get("query", ""))
    return Answer(int(scene.params.get("code", 307)), b"", {"Location": where})


def _no_content(correct: Answer, scene: Scene) -> Answer:
    return Answer(204)


def _partial(correct: Answer, scene: Scene) -> Answer:
    half = correct.body[: len(correct.body) // 2]
    return Answer(
        206, half, {**correct.headers, "Content-Range": f"bytes 0-{len(half) - 1}/{len(correct.body)}"}
    )


def _html(correct: Answer, scene: Scene) -> Answer:
    page = b"<!doctype html><html><body><h1>Welcome to the network</h1>Please sign in.</body></html>"
    return Answer(int(scene.params.get("code", 200)), page, {"Content-Type": "text/html; charset=utf-8"})


def _proxy_page(correct: Answer, scene: Scene) -> Answer:
    page = b"<html><head><title>502 Bad Gateway</title></head><body><hr>squid/5.7</body></html>"
    headers = {
        "Content-Type": "text/html",
        "Via": "1.1 gateway (squid/5.7)",
        "X-Squid-Error": "ERR_CONNECT_FAIL 111",
    }
    return Answer(int(scene.params.get("code", 502)), page, headers)


def _empty(correct: Answer, scene: Scene) -> Answer:
    return replace(correct, body=b"")


def _half_json(correct: Answer, scene: Scene) -> Answer:
    return replace(correct, body=correct.body[: len(correct.body) // 2])


def _body(correct: Answer, scene: Scene) -> Answer:
    code = int(scene.params.get("code", 200))
    if "text" in scene.params:
        content_type = str(scene.params.get("content_type", "application/json"))
        return Answer(code, str(scene.params["text"]).encode(), {"Content-Type": content_type})
    return json_answer(scene.params["json"], code)


def _dialect(correct: Answer, scene: Scene) -> Answer:
    status, body = DIALECTS[scene.params["name"]]
    return Answer(status) if body is None else json_answer(body, status)


def _edit(correct: Answer, scene: Scene) -> Answer:
    fields = _fields(correct)
    for name in scene.params.get("remove", ()):
        fields.pop(name, None)
    if isinstance(fields.get("result"), dict):
        fields["result"] = {**fields["result"], **scene.params.get("result", {})}
    return json_answer({**fields, **scene.params.get("set", {})}, correct.status)


def _other_job(correct: Answer, scene: Scene) -> Answer:
    return json_answer({**_fields(correct), "jobId": scene.other_job_id}, correct.status)


def _unknown_status(correct: Answer, scene: Scene) -> Answer:
    return json_answer({**_fields(correct), "status": scene.params.get("word", "finalizing")}, correct.status)


def _gzip_bomb(correct: Answer, scene: Scene) -> Answer:
    size = int(scene.params.get("bytes", 64 * 2**20))
    head = json.dumps({**_fields(correct), "pad": ""})[:-2].encode()
    return Answer(correct.status, _bomb(head, size), {**correct.headers, "Content-Encoding": "gzip"})


@lru_cache(maxsize=4)
def _zeros(size: int) -> bytes:
    return b"0" * size


def _bomb(head: bytes, size: int) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    parts = [packer.compress(head)]
    parts += [packer.compress(_zeros(2**20)) for _ in range(max(1, size // 2**20))]
    return b"".join([*parts, packer.compress(b'"}'), packer.flush()])


def _deep(correct: Answer, scene: Scene) -> Answer:
    depth = int(scene.params.get("depth", 100_000))
    nest = b"[" * depth + b"]" * depth
    return replace(correct, body=correct.body[:-1] + b', "pad": ' + nest + b"}")


def _fields(correct: Answer) -> dict[str, Any]:
    try:
        value = json.loads(correct.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


SPOILERS: Mapping[str, Callable[[Answer, Scene], Answer]] = {
    "status": _status,
    "redirect": _redirect,
    "no_content": _no_content,
    "partial": _partial,
    "html": _html,
    "proxy_page": _proxy_page,
    "empty": _empty,
    "half_json": _half_json,
    "body": _body,
    "dialect": _dialect,
    "edit": _edit,
    "other_job": _other_job,
    "unknown_status": _unknown_status,
    "gzip_bomb": _gzip_bomb,
    "deep": _deep,
}


@dataclass
class Connection:
    """The connection to one client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    #: The connection was ended by us.
    over: bool = False

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, answer: Answer) -> None:
        await self.send(answer.head() + answer.body)

    def end(self, how: str) -> None:
        self.over = True
        if how == "reset":
            reset(self.writer)
        else:
            self.writer.close()

    async def gone(self) -> None:
        """Until the client closes the connection."""
        while await self.reader.read(4096):
            pass


async def _lose(line: Connection, correct: Answer, params: Params) -> None:
    line.end(str(params.get("how", "reset")))


async def _silence(line: Connection, correct: Answer, params: Params) -> None:
    await line.gone()
    line.end("close")


async def _late(line: Connection, correct: Answer, params: Params) -> None:
    await asyncio.sleep(float(params.get("delay", 1.0)))
    await line.answer(correct)


async def _drip(line: Connection, correct: Answer, params: Params) -> None:
    piece = int(params.get("piece", 1))
    await line.send(correct.head())
    for start in range(0, len(correct.body), piece):
        await line.send(correct.body[start : start + piece])
        await asyncio.sleep(float(params.get("interval", 1.0)))


async def _cut(line: Connection, correct: Answer, params: Params) -> None:
    await line.send(correct.head() + correct.body[: len(correct.body) // 2])
    line.end(str(params.get("how", "close")))


async def _close_after(line: Connection, correct: Answer, params: Params) -> None:
    await line.answer(correct)
    await asyncio.sleep(float(params.get("delay", 0.0)))
    line.end(str(params.get("how", "close")))


async def _huge(line: Connection, correct: Answer, params: Params) -> None:
    size = int(params.get("bytes", 2 * 2**30))
    head = correct.body[:-1] + b', "pad": "'
    await line.send(correct.head(len(head) + size + 2) + head)
    piece = _zeros(2**18)
    for start in range(0, size, len(piece)):
        await line.send(piece[: size - start])
    await line.send(b'"}')


DELIVERIES: Mapping[str, Callable[[Connection, Answer, Params], Awaitable[None]]] = {
    "reset_before": _lose,
    "answer_lost": _lose,
    "silence": _silence,
    "late": _late,
    "drip": _drip,
    "cut": _cut,
    "close_after": _close_after,
    "huge": _huge,
}
