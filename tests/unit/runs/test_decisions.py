"""Decisions on a run, from both kinds of files and from its page: each once, and all that is wrong is named."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from patternmill.catalog.catalog_file import SheetChoices
from patternmill.catalog.rows import run_cell
from patternmill.errors import InputRefused
from patternmill.ledger.decisions import last_decisions, last_sequence
from patternmill.looking.decision_files import (
    FILE_COLUMNS,
    DecisionsFile,
    decided_run,
    keep_decisions,
    read_decisions,
    record_file,
)
from patternmill.looking.kept_pictures import picture_cache, picture_name
from patternmill.looking.page import gallery
from patternmill.looking.pictures import Pictures
from patternmill.looking.server import Approve, LookServer
from patternmill.looking.viewed_run import ViewedRun
from patternmill.results.results_files import rebuild
from patternmill.runs.results_input import run_of_file
from patternmill.states import Decided, Stage
from prefect_host.shared_process import bound_socket

from .fake_studio import made
from .workshop import Ended, Workshop, rows

NO_APPROVALS: Approve = pytest.fail
HERONS, FERNS = "http://127.0.0.1:9/herons", "http://127.0.0.1:9/ferns"


@pytest.fixture
def ended(shop: Workshop) -> Ended:
    """Two rows share a pattern, a third has one of its own; both pictures are at hand."""
    shop.service.on_follow["herons"] = [made(Stage.PATTERN, "pat-herons", patternUrl=HERONS)]
    shop.service.on_follow["ferns"] = [made(Stage.PATTERN, "pat-ferns", patternUrl=FERNS)]
    for url, colour in ((HERONS, "blue"), (FERNS, "green")):
        put_picture(shop, url, colour)
    return shop.run(rows(("A", "herons"), ("B", "herons"), ("C", "ferns")))


def put_picture(shop: Workshop, url: str, colour: str) -> None:
    folder = picture_cache(shop.home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / picture_name(url)).write_bytes(colour.encode())


def cell(shop: Workshop, ended: Ended) -> str:
    """What a file has in its column `run` that is written now."""
    with shop.ledger() as ledger:
        return run_cell(ended.run.record.run_id, last_sequence(ledger, "staging", "spring"))


def sheet(folder: Path, ended: Ended, *decisions: tuple[str, str, str], run: str = "") -> Path:
    """A results file in which a person wrote."""
    run = run or ended.run.record.run_id
    text = "".join(f"{sku},{decision},{note},{run}\n" for sku, decision, note in decisions)
    (folder / "results.csv").write_text(f"sku,decision,note,run\n{text}")
    return folder / "results.csv"


def page_file(folder: Path, ended: Ended, *decisions: Mapping[str, str]) -> Path:
    """As the page saves it."""
    lines = [FILE_COLUMNS]
    for number, given in enumerate(decisions):
        row = {name: "" for name in FILE_COLUMNS} | {
            "run": ended.run.record.run_id,
            "id": f"id-{number}",
            **given,
        }
        cells = [row[name] for name in FILE_COLUMNS[:-1]]
        lines.append((*cells, given.get("checksum") or f"{zlib.crc32(chr(31).join(cells).encode()):08x}"))
    with (folder / "decisions.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(lines)
    return folder / "decisions.csv"


def item(ended: Ended, sku: str) -> str:
    pattern = ended.rows[sku].pattern
    assert pattern is not None
    return pattern.key


def read(shop: Workshop, ended: Ended, path: Path) -> DecisionsFile:
    with shop.ledger() as ledger:
        return read_decisions(ledger, ended.run.record, path, Pictures(shop.home))


def kept(shop: Workshop, ended: Ended, path: Path) -> str:
    with shop.ledger() as ledger:
        return keep_decisions(ledger, ended.run.record, read(shop, ended, path))


def verdicts(shop: Workshop) -> set[str]:
    with shop.ledger() as ledger:
        return {
            f"{one.verdict} {one.note}".strip()
            for one in last_decisions(ledger, "staging", "spring").values()
        }


def test_sheet_and_page_say_the_same_and_each_is_recorded_once(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    """A row's decision is its pattern's; neither file undoes what was decided since it was written."""
    path = sheet(tmp_path, ended, ("A", "Pick", ""), ("C", "reject", "too dark"), ("B", "", ""))
    assert decided_run(path) == ended.run.record.run_id
    assert read(shop, ended, path).decided(Decided.PICK) == ("A",)
    for new in (2, 0):
        assert kept(shop, ended, path) == f"{new} decisions recorded, {2 - new} known before."
    assert verdicts(shop) == {"pick", "reject too dark"}
    again = {"item": item(ended, "A"), "verdict": "again", "note": "brighter"}
    early = kept(shop, ended, page_file(tmp_path, ended, again))
    assert "0 decisions recorded, 0 known" in early and "since that file was written, and left so: A" in early
    assert verdicts(shop) == {"pick", "reject too dark"}
    assert kept(shop, ended, page_file(tmp_path, ended, again | {"run": cell(shop, ended)})).startswith("1 ")
    assert "left so: A" in kept(shop, ended, path)
    assert read(shop, ended, path).decided(Decided.PICK) == ()
    assert verdicts(shop) == {"again brighter", "reject too dark"}
    now = sheet(tmp_path, ended, ("A", "Pick", ""), run=cell(shop, ended))
    assert kept(shop, ended, now).startswith("1 ") and "pick" in verdicts(shop)


def test_decision_of_the_input_itself_is_none(shop: Workshop, tmp_path: Path) -> None:
    """A source may have a column of that name; only what a person changed in the results says something."""
    ended = shop.run("sku,prompt,category,option:name,decision\nA,owls,Tote,A,by Anna\nB,does,Tote,B,again\n")
    with shop.ledger() as ledger:
        rebuild(ledger, ended.run.record.run_id, tmp_path / "out", gallery)
    path = tmp_path / "out" / "results.csv"
    assert read(shop, ended, path).decisions == ()
    path.write_text(path.read_text("utf-8-sig").replace("by Anna", "pick"))
    assert read(shop, ended, path).decided(*Decided) == ("A",)


def test_results_files_say_as_of_which_decision_they_are(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    kept(shop, ended, sheet(tmp_path, ended, ("A", "pick", "")))
    run_id = ended.run.record.run_id
    with shop.ledger() as ledger:
        rebuild(ledger, run_id, tmp_path / "out", gallery)
    texts = [(tmp_path / "out" / name).read_text("utf-8-sig") for name in ("results.csv", "gallery.html")]
    assert run_id != cell(shop, ended)
    assert all(cell(shop, ended) in text for text in texts)
    found = run_of_file(tmp_path / "out" / "results.csv", SheetChoices(), shop.settings)
    assert found is not None and found.run_id == run_id


@pytest.mark.parametrize(
    ("decisions", "named"),
    [
        ([("A", "pick", ""), ("B", "reject", "")], "row 3: `B` says reject, and row 2"),
        ([("A", "keep", "")], "row 2, column decision: `keep` is no decision"),
        ([("Z", "pick", "")], "has no pattern for `Z`"),
    ],
)
def test_everything_wrong_in_a_sheet_is_named(
    shop: Workshop, ended: Ended, tmp_path: Path, decisions: list[tuple[str, str, str]], named: str
) -> None:
    with pytest.raises(InputRefused, match="cannot be used") as refused:
        read(shop, ended, sheet(tmp_path, ended, *decisions))
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"item": "nobody's", "verdict": "pick"}, "row 2, column item"),
        ({"verdict": "pick", "picture": "00"}, "the picture has changed since"),
        ({"verdict": "pick", "checksum": "00000000"}, "its checksum does not fit"),
        ({"verdict": "buy"}, "is no decision"),
        ({"verdict": "pick", "note": "x" * 2001}, "longer than a decision may be"),
        ({"verdict": "pick", "by": "x" * 200}, "longer than a decision may be"),
        ({"verdict": "pick", "id": ""}, "has no ID"),
        ({"verdict": "pick", "id": "x" * 101}, "longer than a decision may be"),
        ({"verdict": "pick", "run": "RUN@7"}, "names decision 7, and the last one here is 0"),
    ],
)
def test_everything_wrong_in_the_pages_file_is_named(
    shop: Workshop, ended: Ended, tmp_path: Path, given: dict[str, str], named: str
) -> None:
    given = {name: text.replace("RUN", ended.run.record.run_id) for name, text in given.items()}
    with pytest.raises(InputRefused) as refused:
        read(shop, ended, page_file(tmp_path, ended, {"item": item(ended, "A"), **given}))
    assert named in str(refused.value)


def test_file_says_neither_who_decided_nor_how_late(shop: Workshop, ended: Ended, tmp_path: Path) -> None:
    """Anybody can write one: its name for a person is marked, and it is no newer than the ledger."""
    key = item(ended, "A")
    forged = page_file(tmp_path, ended, {"item": key, "verdict": "pick", "by": "root", "note": "dim"})
    (decision,) = read(shop, ended, forged).decisions
    assert (decision.by, decision.note) == ("file: root", "dim")
    run = ended.run.record.run_id
    for decisions, at in (("pick", ""), 9), (("pick", "x" * 2001), 0):
        with pytest.raises(InputRefused, match=r"names decision 9|longer than a decision may be"):
            read(shop, ended, sheet(tmp_path, ended, ("A", *decisions), run=f"{run}@{at}"))


def test_file_of_decisions_never_chooses_the_environment(
    shop: Workshop, ended: Ended, tmp_path: Path
) -> None:
    """It was mailed: its run was in staging, and this machine is set to production."""
    path = page_file(tmp_path, ended, {"item": item(ended, "A"), "verdict": "pick"})
    with pytest.raises(InputRefused, match=r"environment staging.*'production' is configured"):
        record_file(shop.settings.model_copy(update={"environment": "production"}), path)
    assert record_file(shop.settings, path) == "1 decision recorded, 0 known before."


def test_page_is_its_own_persons_and_saves_each_decision_once(shop: Workshop, ended: Ended) -> None:
    """Without what opens it nothing is shown or written; a changed picture asks again."""
    viewed = ViewedRun(shop.settings, ended.run.record)
    with bound_socket() as bound:
        server = LookServer(viewed, bound, "anna", NO_APPROVALS)
        found = asyncio.run(_visit(server, item(ended, "A"), viewed.digests()[item(ended, "A")]))
    assert found["strange"] == [401] * 6
    assert found["page"] == {item(ended, "A"), item(ended, "C")}
    assert found["answer"] == {
        "saved": ["1"],
        "refused": [{"id": "2", "why": "The picture has changed since: look at it and decide again."}],
    }
    assert [(one.verdict, one.by) for one in viewed.decisions().values()] == [("pick", "anna")]


@pytest.mark.parametrize(
    ("given", "saved"),
    [
        ({"at": "0001-01-01T00:00:00+14:00"}, False),
        ({"at": "9999-12-31T23:59:59.999999Z"}, False),
        ({"id": ["1"]}, False),
        ({"note": "brighter \ud83d\0"}, True),
    ],
)
def test_no_decision_breaks_the_reading_of_all(
    shop: Workshop, ended: Ended, given: dict[str, Any], saved: bool
) -> None:
    """A time at the end of the calendar, or half an emoji, would fail in the ledger, and every run after it."""
    with bound_socket() as bound:
        server = LookServer(ViewedRun(shop.settings, ended.run.record), bound, "anna", NO_APPROVALS)
        answer = asyncio.run(_decided(server, [_event(item(ended, "A"), **given)]))
    assert answer["saved"] == ["1"] * saved
    assert verdicts(shop) == {"pick brighter ?"} if saved else not verdicts(shop)


def _event(key: str, **given: Any) -> dict[str, Any]:
    event = {
        "id": "1",
        "item": key,
        "picture": "",
        "verdict": "pick",
        "note": "",
        "at": "2026-11-24T12:00:00Z",
    }
    return event | given


def _browser(server: LookServer, token: str = "secret") -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {token}".encode()}
    transport = httpx.ASGITransport(server.app("secret"), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=server.address, headers=headers)


async def _decided(server: LookServer, events: list[dict[str, Any]]) -> dict[str, Any]:
    async with _browser(server) as browser:
        answer = await browser.post("/decisions", content=json.dumps(events))
        return dict(answer.json())


async def _visit(server: LookServer, key: str, digest: str) -> dict[str, Any]:
    event = _event(key, picture=digest)
    strange = []
    for token in ("guess", "gu\u00e9ss"):
        async with _browser(server, token) as browser:
            assert key not in (await browser.get("/")).text
            asked = [
                browser.get("/page"),
                browser.get("/pictures/a.png"),
                browser.post("/decisions", json=[event]),
            ]
            strange += [(await answer).status_code for answer in asked]
    async with _browser(server) as browser:
        page = (await browser.get("/page")).text
        patterns = re.search(r'id="pattern-data">(.*?)</script>', page, re.DOTALL)
        assert patterns is not None
        events = [event, event, {**event, "id": "2", "picture": "00"}]
        answers = [(await browser.post("/decisions", json=events)).json() for _ in range(2)]
    return {
        "strange": strange,
        "page": {group["item"] for group in json.loads(patterns[1])},
        "answer": answers[1],
    }


@pytest.mark.parametrize("path", ["/decisions", "/approve"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 200_000, 400),
        (b"\xff", 400),
        (b"[1]", 400),
        (b'{"digest": {}}', 400),
        (b'"digest"', 400),
        (b" " * (1 << 20), 400),
        (b" " * ((1 << 20) + 1), 413),
    ],
)
def test_no_body_breaks_the_server(shop: Workshop, ended: Ended, path: str, body: bytes, status: int) -> None:
    """Nor fills its memory: it is read up to a mebibyte, and not at all before what opens the server is seen."""
    read: list[int] = []

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, 50 * len(body), 65_536):
            read.append(start)
            yield body[start : start + 65_536]

    async def main() -> list[int]:
        async with _browser(server) as browser, _browser(server, "guess") as stranger:
            strange = (await stranger.post(path, content=chunks())).status_code
            assert not read
            return [strange, (await browser.post(path, content=body)).status_code]

    with bound_socket() as bound:
        server = LookServer(ViewedRun(shop.settings, ended.run.record), bound, "anna", NO_APPROVALS)
        assert asyncio.run(main()) == [401, status]


@pytest.mark.parametrize("event", ['{"id": NaN}', '{"id": "\\ud83d", "item": "x"}', '{"id": 1e999}', "{}"])
def test_no_decision_breaks_the_answer(shop: Workshop, ended: Ended, event: str) -> None:
    """JSON that Python reads, and cannot write."""

    async def main() -> httpx.Response:
        async with _browser(server) as browser:
            return await browser.post("/decisions", content=f"[{event}]")

    with bound_socket() as bound:
        server = LookServer(ViewedRun(shop.settings, ended.run.record), bound, "anna", NO_APPROVALS)
        answer = asyncio.run(main())
    assert answer.status_code == 200
    assert [one["why"] for one in answer.json()["refused"]] == ["It is no decision."]


@pytest.mark.parametrize("name", ["looks.json", "%00.png", "..%2fledger.sqlite3", "x" * 5000])
def test_pictures_of_the_run_alone_are_served(shop: Workshop, ended: Ended, name: str) -> None:
    """Whatever else lies in their folder."""

    async def main() -> int:
        async with _browser(server) as browser:
            return (await browser.get(f"/pictures/{name}")).status_code

    folder = shop.settings.home / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "looks.json").write_text("{}")
    with bound_socket() as bound:
        server = LookServer(ViewedRun(shop.settings, ended.run.record), bound, "anna", NO_APPROVALS)
        assert asyncio.run(main()) == 404
