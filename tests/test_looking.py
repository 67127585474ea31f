"""The page of a catalog: who is let in, numbers that are the ledger's, what is sent after a change, and its deeds."""

import asyncio
from collections import Counter

import httpx
import pytest

from patternmill.contract import NO_CONTRACT
from patternmill.ledger.catalogs import catalog_rows
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import decisions_of
from patternmill.looking.deeds import Deeds
from patternmill.looking.pictures import Pictures
from patternmill.looking.server import SESSION, Desk, Door, app_of
from patternmill.looking.view import View
from patternmill.pipeline import carry_out
from patternmill.settings import read_settings
from tests.test_remake import HERONS, say
from tests.test_runs import double, made, row, run, sheet  # noqa: F401

BASE = "http://127.0.0.1:8123"


def visiting(visit, tmp_path):
    """Carry out a visit of the page, of a catalog that is there."""

    async def whole():
        database, settings = Database("home/ledger.sqlite3"), read_settings()
        door = Door(8123)
        view = View(database, "production", "spring")
        deeds = Deeds(database, settings, "production", "spring", carry_out)
        pictures = Pictures(tmp_path / "pictures", None, None, settings.studio_url)
        app = app_of(Desk(view, deeds, pictures, door, NO_CONTRACT), door)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as client:
            try:
                return await visit(client, door, database)
            finally:
                await deeds.close()
                await pictures.close()
                await database.close()

    return asyncio.run(whole())


async def asked(client, door, path, **body):
    answer = await client.post(path, json=body, headers={SESSION: door.session})
    return answer.status_code, answer.json()


async def data(client, door, since=0):
    return (await client.get(f"/data?since={since}", headers={SESSION: door.session})).json()


@pytest.fixture
def catalog(double):  # noqa: F811
    sheet(row(1, "herons"), row(2, "herons", label="x"), row(3, "ferns"), row(4, size="huge"))
    run()
    return double


def test_only_the_link_opens_the_page_and_only_once(catalog, tmp_path):
    async def visit(client, door, database):
        assert (await client.get("/")).status_code == 403
        assert (await client.get("/data")).status_code == 403
        opened = await client.get(door.link)
        assert opened.status_code == 200
        assert "default-src 'none'" in opened.headers["content-security-policy"]
        link = f"{BASE}/?key=" + door.link.partition("=")[2]
        client.cookies.clear()
        assert (await client.get(link)).status_code == 403
        assert (await client.get("/data", headers={SESSION: door.session})).status_code == 200

    visiting(visit, tmp_path)


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}]
)
def test_another_host_or_origin_is_turned_away(catalog, tmp_path, headers):
    async def visit(client, door, database):
        told = {**headers, SESSION: door.session}
        assert (await client.get("/data", headers=told)).status_code == 403
        assert (await client.post("/plan", json={"kind": "remake"}, headers=told)).status_code == 403

    visiting(visit, tmp_path)


def test_every_number_is_the_ledgers_and_each_pattern_has_one_card(catalog, tmp_path):
    async def visit(client, door, database):
        return await data(client, door), catalog_rows(database, "production", "spring")

    shown, rows = visiting(visit, tmp_path)
    assert shown["counts"] == Counter(one.status for one in rows)
    cards = {card["prompt"]: card for card in shown["cards"] if card["pattern"]}
    assert [line["sku"] for line in cards["herons"]["rows"]] == ["A-1", "A-2"]
    (refused,) = [card for card in shown["cards"] if not card["pattern"]]
    assert "unknown value" in refused["rows"][0]["message"]


def test_after_a_decision_only_its_card_is_sent_again(catalog, tmp_path):
    async def visit(client, door, database):
        first = await data(client, door)
        assert not (await data(client, door, first["version"]))["cards"]
        said = {"pattern": HERONS, "take": 1, "verdict": "reject", "note": "too blue"}
        assert await asked(client, door, "/decide", **said) == (200, {})
        (card,) = (await data(client, door, first["version"]))["cards"]
        assert (card["verdict"], card["note"]) == ("reject", "too blue")
        status, refused = await asked(client, door, "/decide", **{**said, "take": 2})
        assert (status, refused["code"]) == (409, "newer_take")

    visiting(visit, tmp_path)


async def done(client, door, **what):
    """Ask for a plan, agree to it, and return its lines and what came of it."""
    status, plan = await asked(client, door, "/plan", **what)
    assert status == 200, plan
    await asked(client, door, "/begin", plan=plan["plan"])
    while not (job := (await data(client, door))["job"])["over"]:
        await asyncio.sleep(0.05)
    return plan, job["lines"]


def test_what_is_marked_is_remade_as_the_plan_said(catalog, tmp_path):
    say("again")
    bought = made(catalog)

    async def visit(client, door, database):
        plan, lines = await done(client, door, kind="remake")
        assert plan["question"] == "Make 3 items for 2.00 EUR in production?"
        assert lines[0].startswith("Completed")
        assert decisions_of(database, "production")[HERONS].take == 2
        takes = await client.get(f"/takes?card={HERONS}", headers={SESSION: door.session})
        assert [(take["number"], take["state"]) for take in takes.json()] == [
            (1, "succeeded"),
            (2, "succeeded"),
        ]

    visiting(visit, tmp_path)
    assert made(catalog) == (bought[0] + 1, bought[1] + 2)


def test_an_order_and_a_pause_are_made_on_the_page(catalog, tmp_path):
    async def visit(client, door, database):
        plan, lines = await done(client, door, kind="order", name="samples", quantities={"A-1": 2})
        assert "2 pieces" in plan["question"]
        assert "https://pay.example/" in lines[0]
        status, refused = await asked(client, door, "/plan", kind="pause")
        assert (status, refused["code"]) == (409, "no_reason")
        await done(client, door, kind="pause", reason="new colours")
        assert (await data(client, door))["paused"]
        status, refused = await asked(client, door, "/plan", kind="order", name="more", quantities={"A-1": 1})
        await done(client, door, kind="unpause")
        assert not (await data(client, door))["paused"]

    visiting(visit, tmp_path)


def test_what_was_begun_by_another_plan_than_the_shown_one_is_refused(catalog, tmp_path):
    async def visit(client, door, database):
        assert (await asked(client, door, "/begin", plan=7))[1]["code"] == "other_plan"
        assert (await asked(client, door, "/plan", kind="nothing"))[0] == 422

    visiting(visit, tmp_path)
