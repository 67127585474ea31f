"""The faults: how a correct answer is changed, and how an answer is brought to the client badly, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile.wire import Answer, json_answer, reset

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """What a spoiler may use in addition to the correct answer."""

    params: Params
    #: Base address of the second listener, and the path that was asked for.
    elsewhere: str
    path: str


def _status(correct: Answer, scene: Scene) -> Answer:
    code = int(scene.params["code"])
    body = scene.params.get("body", {"error": {"code": f"http_{code}", "message": f"refused with {code}"}})
    wait = scene.params.get("retry_after")
    return json_answer(body, code, {"Retry-After": wait} if wait else {})


def _redirect(correct: Answer, scene: Scene) -> Answer:
    where = scene.elsewhere + scene.path + str(scene.params.get("query", ""))
    return Answer(int(scene.params.get("code", 307)), b"", {"Location": where})


def _no_content(correct: Answer, scene: Scene) -> Answer:
    return Answer(204)


def _half_json(correct: Answer, scene: Scene) -> Answer:
    return replace(correct, body=correct.body[: len(correct.body) // 2])


def _body(correct: Answer, scene: Scene) -> Answer:
    content_type = str(scene.params.get("content_type", "application/json"))
    text = str(scene.params["text"]).encode()
    return Answer(int(scene.params.get("code", 200)), text, {"Content-Type": content_type})


def _edit(correct: Answer, scene: Scene) -> Answer:
    fields = _fields(correct)
    for name in scene.params.get("remove", ()):
        fields.pop(name, None)
    return json_answer({**fields, **scene.params.get("set", {})}, correct.status)


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
    "half_json": _half_json,
    "body": _body,
    "edit": _edit,
}


@dataclass
class Connection:
    """The connection to one client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    #: Whether we have ended the connection.
    over: bool = False

    async def answer(self, answer: Answer) -> None:
        self.writer.write(answer.head() + answer.body)
        await self.writer.drain()

    def end(self, how: str) -> None:
        self.over = True
        if how == "reset":
            reset(self.writer)
        else:
            self.writer.close()


async def _lose(line: Connection, correct: Answer, params: Params) -> None:
    line.end(str(params.get("how", "reset")))


async def _late(line: Connection, correct: Answer, params: Params) -> None:
    await asyncio.sleep(float(params.get("delay", 1.0)))
    await line.answer(correct)


DELIVERIES: Mapping[str, Callable[[Connection, Answer, Params], Awaitable[None]]] = {
    "reset_before": _lose,
    "answer_lost": _lose,
    "late": _late,
}
