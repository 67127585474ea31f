"""The server of the page: who may do what at which door, that bodies break nothing, and that a plan is one run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from patternmill.errors import ConfigurationError
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import last_decisions
from patternmill.looking.actions import Action, Actions, BegunCommand, ShownPlan
from patternmill.looking.pictures import picture_cache, picture_name
from patternmill.looking.server import CODE_SECONDS, Door, LookServer, network_door
from patternmill.looking.viewed_run import ViewedRun
from patternmill.runs.approval import request_approval
from patternmill.states import Stage
from prefect_host.shared_process import bound_socket
from tests.acceptance.prefect_servers import eventually
from tests.hostile.in_process import made

from .workshop import Ended, Workshop, rows

HERONS = "http://127.0.0.1:9/herons"
#: A command that writes its arguments.
ECHO = (sys.executable, "-c", "import sys; print(*sys.argv[1:])")

#: A command that ends with the second SIGINT.
STUBBORN = """
import signal, sys, time
def drain(number, frame):
    print("draining", flush=True)
    signal.signal(signal.SIGINT, lambda number, frame: sys.exit(130))
signal.signal(signal.SIGINT, drain)
print("ready", flush=True)
while True: time.sleep(0.1)
"""


@pytest.fixture
def ended(shop: Workshop) -> Ended:
    """Two rows share a pattern, whose picture is at hand; a third has one of its own."""
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-herons", patternUrl=HERONS)]
    folder = picture_cache(shop.home)
    folder.mkdir(parents=True)
    (folder / picture_name(HERONS)).write_bytes(b"blue")
    return shop.run(rows(("A", "herons"), ("B", "herons"), ("C", "ferns")))


class Bench:
    """A served page with a door at home and one to the network, and what a person does there."""

    def __init__(self, shop: Workshop, ended: Ended) -> None:
        self.viewed = ViewedRun(shop.settings, ended.run.record)
        self.plan: ShownPlan | None = ShownPlan("1 pattern", ("To buy: 1 pattern.",), "d1")
        self.reasons: list[str] = []
        self.now = 0.0
        self.home = Door(bound_socket())
        self.network = Door(bound_socket(), "ABCDEFGH", lambda: self.now)
        self.actions = Actions({"remake": Action(lambda: self.plan, ECHO)})
        self.server = LookServer(self.viewed, "anna", [self.home, self.network], self.actions, self._pause)

    def _pause(self, reason: str) -> str:
        self.reasons.append(reason)
        return "Paused."

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        door: Door | None = None,
        secret: str | None = None,
        **headers: str,
    ) -> httpx.Response:
        """Ask once, by GET or with a body; `secret` is that of the person who is signed in, or of whoever tries."""
        door = door or self.home
        is_raw = body is None or isinstance(body, bytes) or hasattr(body, "__aiter__")
        content = body if is_raw else json.dumps(body)
        authorization = f"Bearer {door.secret if secret is None else secret}".encode()
        transport = httpx.ASGITransport(self.server.app(door), raise_app_exceptions=False)

        async def main() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{door.netloc}") as browser:
                browser.headers = httpx.Headers({b"authorization": authorization})
                method = "GET" if body is None else "POST"
                return await browser.request(method, path, content=content, headers=headers)

        return asyncio.run(main())

    def close(self) -> None:
        for door in (self.home, self.network):
            door.socket.close()


@pytest.fixture
def bench(shop: Workshop, ended: Ended) -> Iterator[Bench]:
    bench = Bench(shop, ended)
    yield bench
    bench.close()


def item(ended: Ended, sku: str) -> str:
    pattern = ended.rows[sku].pattern
    assert pattern is not None
    return pattern.key


def patterns_on(page: str) -> Any:
    return json.loads(page.partition('id="pattern-data">')[2].partition("</script>")[0])


def event(key: str, **given: Any) -> dict[str, Any]:
    time = "2026-11-24T12:00:00Z"
    return {"id": "1", "item": key, "picture": "", "verdict": "pick", "note": "", "at": time} | given


def test_page_is_its_own_persons_and_saves_each_decision_once(bench: Bench, ended: Ended) -> None:
    """Without what opens it nothing is shown or written; a changed picture asks again."""
    decision = event(item(ended, "A"), picture=bench.viewed.digest(ItemKey(item(ended, "A"))))
    assert len(decision["picture"]) == 64
    assert item(ended, "A") not in bench.ask("/", secret="").text
    for secret in ("", "guess", "gu\u00e9ss"):
        asked = [
            *(bench.ask(path, secret=secret) for path in ("/page", "/pictures/a.png", "/commands")),
            *(bench.ask(path, [decision], secret=secret) for path in ("/decisions", "/approve", "/pause")),
            *(bench.ask(f"/{what}/remake", {}, secret=secret) for what in ("plans", "commands")),
        ]
        assert [answer.status_code for answer in asked] == [401] * 8
    groups = patterns_on(bench.ask("/page").text)
    assert {group["takes"][0]["item"] for group in groups} == {item(ended, "A"), item(ended, "C")}
    events = [decision, decision, {**decision, "id": "2", "picture": "00"}]
    answers = [bench.ask("/decisions", events).json() for _ in range(2)]
    refused = {"id": "2", "why": "The picture has changed since: look at it and decide again."}
    assert answers == [{"saved": ["1"], "refused": [refused]}] * 2
    with bench.viewed.ledger() as ledger:
        (saved,) = last_decisions(ledger, "staging", "spring").values()
    assert (saved.verdict, saved.by) == ("pick", "anna")
    page = bench.ask("/page").text
    assert f'"cell":"{ended.run.record.run_id}@{saved.sequence}"' in page
    (take,) = patterns_on(page)[0]["takes"]
    assert (take["decision"]["verdict"], take["decision"]["changed"]) == ("pick", False)


def test_network_opens_the_page_once_and_buys_nothing(bench: Bench, ended: Ended) -> None:
    """With the code alone; its session is not that of the other door, and decides and shows pictures."""
    door = bench.network
    assert door.secret not in door.address and bench.home.secret in bench.home.address
    assert bench.ask("/page", door=door, secret=bench.home.secret).status_code == 401
    assert bench.ask("/code", {"code": "wrong"}, door=door).status_code == 403
    opened = bench.ask("/code", {"code": "abcd-efgh"}, door=door)
    assert opened.json() == {"secret": door.secret}
    assert bench.ask("/code", {"code": "abcd-efgh"}, door=door).status_code == 403
    assert bench.ask("/code", {"code": ""}).status_code == 404
    page = bench.ask("/page", door=door)
    assert '"actions":[]' in page.text and '"actions":["remake","pause"]' in bench.ask("/page").text
    assert bench.ask(f"/pictures/{picture_name(HERONS)}", door=door).content == b"blue"
    assert bench.ask("/decisions", [event(item(ended, "A"))], door=door).json()["saved"] == ["1"]
    for path in ("/plans/remake", "/commands/remake", "/approve", "/pause"):
        assert bench.ask(path, {}, door=door).status_code == 404
    assert bench.ask("/commands", door=door).status_code == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "224.0.0.1", "198.51.100.7", "phone.local"])
def test_host_is_one_address_of_this_machine(host: str) -> None:
    with pytest.raises(ConfigurationError, match="is not one IP address of this machine"):
        network_door(host)


def done(begun: BegunCommand) -> dict[str, Any]:
    begun.wait()
    return begun.shown()


def test_plan_that_was_shown_is_one_run(bench: Bench) -> None:
    """However often it is confirmed; and its command gets the digest that was shown."""
    first, second = (bench.ask("/plans/remake", {}).json()["plan"] for _ in range(2))
    assert (first["sum"], first["lines"]) == ("1 pattern", ["To buy: 1 pattern."])
    for _ in range(2):
        answer = bench.ask("/commands/remake", first)
        assert (answer.status_code, answer.json()["name"]) == (200, "remake")
    (begun,) = bench.actions._begun.values()
    assert done(begun) == {"name": "remake", "lines": ["--approve d1"], "steps": [], "code": 0}
    assert bench.ask("/commands").json() == [begun.shown()]
    # Confirmed where it was shown too, after it ended: nothing was made by it.
    assert bench.ask("/commands/remake", second).status_code == 200
    _, again = bench.actions._begun.values()
    assert again is not begun and done(again)["code"] == 0


def test_each_ctrl_c_reaches_the_command(bench: Bench) -> None:
    """The first one lets it drain, and the second ends it, as on a terminal of its own; confirmed twice it is one."""
    bench.actions = Actions({"remake": Action(lambda: bench.plan, [sys.executable, "-c", STUBBORN])})
    first, second = (bench.actions.show("remake") or {} for _ in range(2))
    begun = bench.actions.begin("remake", first["token"])
    assert bench.actions.begin("remake", second["token"]) is begun

    def press_again() -> None:
        eventually(lambda: "draining" in begun.lines, 20)
        os.kill(os.getpid(), signal.SIGINT)

    eventually(lambda: "ready" in begun.lines, 20)
    threading.Thread(target=press_again).start()
    stopped: list[str] = []
    bench.actions.stop(stopped.append)
    assert (stopped, begun.code) == (["remake"], 130)


@pytest.mark.parametrize(
    ("tries", "seconds", "opens"), [(4, 0.0, True), (5, 0.0, False), (0, CODE_SECONDS + 1, False)]
)
def test_code_lasts_five_minutes_and_four_wrong_ones(tries: int, seconds: float, opens: bool) -> None:
    now = [0.0]
    with bound_socket() as bound:
        door = Door(bound, "ABCDEFGH", lambda: now[0])
        assert all(door.exchange("ABCDEFGX") is None for _ in range(tries))
        now = [seconds]
        assert (door.exchange("ABCDEFGH") is not None) == opens


def test_another_host_or_origin_is_refused(bench: Bench) -> None:
    """At both doors, for whatever is asked, with the session too."""
    hosts = ("evil.example:{}", "localhost:{}", "127.0.0.1", "127.0.0.1:1")
    origins = ("http://evil.example", "null", "https://127.0.0.1:{}", "http://127.0.0.1:1")
    asked = {"/": None, "/page": None, "/decisions": [], "/code": {"code": "ABCDEFGH"}}
    for door in (bench.home, bench.network):
        for name, text in [*(("host", host) for host in hosts), *(("origin", origin) for origin in origins)]:
            header = {name: text.format(door.place[1])}
            for path, body in asked.items():
                assert bench.ask(path, body, door=door, **header).status_code == 403
        assert bench.ask("/page", door=door, origin=f"http://{door.netloc}").status_code == 200


def test_other_plan_than_the_one_shown_is_refused(bench: Bench) -> None:
    """Also one that was shown, and is another one now, by its sum alone; nothing to do is no plan."""
    for token in ("guess", ["x"], None):
        answer = bench.ask("/commands/remake", {"token": token})
        assert answer.status_code == 409 and "was not shown, or was carried out" in answer.json()["error"]
    shown = bench.ask("/plans/remake", {}).json()["plan"]
    bench.plan = ShownPlan("1 pattern for €9.00", ("To buy: 1 pattern.",), "d1")
    answer = bench.ask("/commands/remake", shown)
    assert answer.status_code == 409 and "has changed since it was shown" in answer.json()["error"]
    bench.plan = None
    assert bench.ask("/plans/remake", {}).json() == {"plan": None}
    assert bench.ask("/plans/order", {}).status_code == bench.ask("/commands/order", {}).status_code == 404
    assert bench.actions.begun() == []


def test_page_approves_what_waits_and_pauses(shop: Workshop, bench: Bench) -> None:
    """With the price that the plan has at most, and none where none is known; only a terminal unpauses."""
    assert '"approval":null' in bench.ask("/page").text
    assert bench.ask("/approve", {"digest": "d1"}).status_code == 409
    plan = shop.previewed(rows(("D", "owls")), pattern_price=40, product_price=10, attempts=2).proposal
    request_approval(shop.settings, plan, "flow-run")
    page = bench.ask("/page").text
    assert f'"digest":"{plan.digest}","text":"{plan}"' in page and "at most 100 units if jobs fail" in page
    assert "is approved" in bench.ask("/approve", {"digest": plan.digest}).json()["text"]
    assert bench.ask("/approve", {"digest": plan.digest}).status_code == 409
    assert bench.ask("/pause", {"reason": "wrong prices"}).json() == {"text": "Paused."}
    assert bench.reasons == ["wrong prices"] and bench.ask("/unpause", {}).status_code == 404


def test_no_decision_breaks_the_reading_of_all(shop: Workshop, bench: Bench, ended: Ended) -> None:
    """A time at the end of the calendar, or half an emoji, would fail in the ledger, and every run after it."""
    key = item(ended, "A")
    times = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z")
    refused = [*(event(key, at=time) for time in times), event(key, id=["1"])]
    assert bench.ask("/decisions", refused).json()["saved"] == []
    assert bench.ask("/decisions", [event(key, note="brighter \ud83d\0")]).json()["saved"] == ["1"]
    with shop.ledger() as ledger:
        notes = [decision.note for decision in last_decisions(ledger, "staging", "spring").values()]
    assert notes == ["brighter ?"]
    # JSON that Python reads, and cannot write.
    for text in ('{"id": NaN}', '{"id": "\\ud83d", "item": "x"}', '{"id": 1e999}', "{}"):
        answer = bench.ask("/decisions", f"[{text}]".encode())
        assert [refusal["why"] for refusal in answer.json()["refused"]] == ["This is no decision."]


def test_no_body_breaks_the_server(bench: Bench) -> None:
    """Nor fills its memory: it is read up to a mebibyte, and not at all before what opens the server is seen."""
    read: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, 1 << 26, 65_536):
            read.append(start)
            yield bytes(65_536)

    bodies = {b"[" * 200_000: 400, b"\xff": 400, b"[1]": 400, b'"digest"': 400}
    bodies |= {b" " * (1 << 20): 400, b" " * ((1 << 20) + 1): 413}
    for path in ("/decisions", "/approve", "/pause", "/commands/remake"):
        assert bench.ask(path, chunks(), secret="guess").status_code == 401
        assert not read
        for body, status in bodies.items():
            assert bench.ask(path, body).status_code == status


def test_pictures_of_the_run_alone_are_served(shop: Workshop, bench: Bench) -> None:
    """Whatever else lies in their folder."""
    folder: Path = shop.settings.home / "pictures"
    (folder / "looks.json").write_text("{}")
    for name in ("looks.json", "%00.png", "..%2fledger.sqlite3", "x" * 5000):
        assert bench.ask(f"/pictures/{name}").status_code == 404


def test_address_that_is_none_is_no_picture(shop: Workshop) -> None:
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-herons", patternUrl="http://[half")]
    viewed = ViewedRun(shop.settings, shop.run(rows(("A", "herons"))).run.record)
    (take,) = patterns_on(b"".join(viewed.page()).decode())[0]["takes"]
    assert viewed.picture(Path(take["picture"]).name) is None and viewed.digest(take["item"]) == ""


def test_page_shows_a_take_refined_and_decides_about_it_unrefined(shop: Workshop) -> None:
    """Its picture is that of the refinement, and rows that share it are one group."""
    plain, recolored = "http://127.0.0.1:9/plain", "http://127.0.0.1:9/recolored"
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-1", patternUrl=plain)]
    refinement = made(Stage.REFINEMENT, "ref-1", patternUrl=recolored)
    shop.service.on_follow["refine/recolor on pat-1"] = [refinement]
    header = "sku,prompt,category,option:name,refine:recolor\n"
    ended = shop.run(header + "".join(f"{sku},herons,Tote,{sku},#1f3a5f\n" for sku in "AB"))
    viewed = ViewedRun(shop.settings, ended.run.record)
    (group,) = patterns_on(b"".join(viewed.page()).decode())
    (take,) = group["takes"]
    assert group["rows"] == [0, 1] and Path(take["picture"]).name == picture_name(recolored)
    assert viewed.items == {take["item"]} != {item(ended, "A")}
