"""The page of a catalog: who may come in, what it is told and when, what can be decided and done, and its pictures."""

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager

import httpx
import pytest

from patternmill.contract import Contract, Picture
from patternmill.errors import Refusal
from patternmill.ledger.brake import pause
from patternmill.ledger.database import Database
from patternmill.ledger.decisions import Verdict, decide, decisions_of, move
from patternmill.ledger.leases import Lease
from patternmill.ledger.reports import status_record
from patternmill.looking.cards import MOST, Made, gallery
from patternmill.looking.deeds import Asked, Deeds
from patternmill.looking.pictures import Pictures
from patternmill.looking.server import SESSION, Desk, Door, app_of
from patternmill.looking.view import View
from patternmill.pipeline import carry_out
from patternmill.request import End, Request, Summary
from patternmill.settings import Settings, read_settings
from patternmill.states import Outcome, Status
from tests.double import Weather
from tests.shelf import ended, shelved
from tests.spine import RUN, played, refuses
from tests.test_runs import double, made, row, sheet  # noqa: F401

SETTINGS = Settings(environment="production")
HOME = "http://127.0.0.1:4567"
PNG = b"\x89PNG picture"


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    database = Database("ledger.sqlite3")
    yield database
    database.disconnect()


def deeds_of(database, settings=SETTINGS, carried=None):
    async def carry(request):
        (carried if carried is not None else []).append(request)
        return End(Outcome.COMPLETED, "Completed: 1 succeeded", Summary(outcome=Outcome.COMPLETED))

    return Deeds(database, settings, "production", "spring", carry)


@asynccontextmanager
async def page(database, tmp_path, deeds=None):
    """A client that has not come in, and the door."""
    door, deeds = Door(4567), deeds or deeds_of(database)
    pictures = Pictures(tmp_path / "pictures", None, None, "")
    desk = Desk(View(database, "production", "spring"), deeds, pictures, door, Contract())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app_of(desk, door)), base_url=HOME) as client:
        yield client, door
    await pictures.close()
    await deeds.close()


def seen(view, since=0):
    return json.loads(view.since(since, {}))


def look(database, catalog="spring"):
    return View(database, "production", catalog)


# Who may come in


@played
async def test_the_link_opens_one_page_whose_session_is_a_cookie_or_a_header(database, tmp_path):
    shelved(database, ("herons", "succeeded"))
    async with page(database, tmp_path) as (client, door):
        assert (await client.head(door.link)).status_code != 200
        first = await client.get(door.link)
        assert (first.status_code, "no-store" in first.headers["cache-control"]) == (200, True)
        cookie = first.headers["set-cookie"].lower()
        assert ("httponly" in cookie, "samesite=strict" in cookie) == (True, True)
        assert (await client.get("/data")).status_code == 200
        assert (await client.get("/")).status_code == 200
        client.cookies.clear()
        assert (await client.get(f"/?key={first.request.url.params['key']}")).status_code == 403
        assert (await client.get("/data")).status_code == 403
        assert (await client.get("/data", headers={SESSION: door.session})).status_code == 200
        session = json.loads(re.search(r'id="data">(.*?)</script>', first.text)[1])
        assert session["session"] == door.session


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200), ({"host": "localhost:4567"}, 200),
        ({"host": "localhost:4567", "origin": "http://localhost:4567"}, 200), ({"origin": HOME}, 200),
        ({"host": "evil.example:4567"}, 403), ({"host": "127.0.0.1:4568"}, 403),
        ({"origin": "http://evil.example"}, 403), ({"origin": "http://127.0.0.1:4568"}, 403),
        ({"origin": "http://localhost:4567"}, 403), ({"origin": "null"}, 403),
    ],
)  # fmt: skip
@played
async def test_another_host_or_origin_is_turned_away(database, tmp_path, headers, code):
    shelved(database, ("herons", "succeeded"))
    async with page(database, tmp_path) as (client, door):
        for path in ("/data", "/page.js"):
            answer = await client.get(path, headers={SESSION: door.session, **headers})
            assert answer.status_code == code
            assert "default-src 'none'" in answer.headers["content-security-policy"]


@played
async def test_nothing_is_told_or_done_without_a_session(database, tmp_path):
    (pattern,) = shelved(database, ("herons", "succeeded"))
    said = {"pattern": pattern, "take": 1, "verdict": "pick"}
    async with page(database, tmp_path) as (client, door):
        for path in ("/", "/data", "/takes", f"/picture/pat_herons?key={door.session}"):
            assert (await client.get(path, headers={SESSION: "x"})).status_code == 403
        for path, body in (("/decide", said), ("/plan", {"kind": "unpause"}), ("/begin", {"plan": 1})):
            assert (await client.post(path, json=body)).status_code == 403
    assert decisions_of(database, "production") == {}


# What it shows


def test_counts_are_those_of_the_ledger_at_any_moment(database):
    shelved(database, *(("herons", status) for status in Status))
    view = look(database)
    for sku, status in (("A-2", "waiting"), ("A-2", "held"), ("A-3", "succeeded"), ("A-6", "failed")):
        database.change(lambda connection, sku=sku, status=status: ended(connection, sku, status))
        said = status_record(database, "production", "spring")["rows"]
        assert seen(view)["counts"] == {row["status"]: row["count"] for row in said}


def test_only_what_has_changed_is_sent(database):
    shelved(database, *((f"herons {number}", "waiting") for number in range(50)))
    view = look(database)
    first = seen(view)
    assert (len(first["cards"]), len(first["order"])) == (50, 50)
    again = seen(view, first["version"])
    assert (again["cards"], "order" in again, again["version"]) == ([], False, first["version"])
    database.change(lambda connection: ended(connection, "A-7", "succeeded"))
    news = seen(view, first["version"])
    assert [[line["status"] for line in card["rows"]] for card in news["cards"]] == [["succeeded"]]
    assert "order" not in news
    assert seen(view, news["version"])["cards"] == []
    shelved(database, ("herons 0", "waiting"), ("ferns", "waiting"))
    moved = seen(view, news["version"])
    assert (len(moved["order"]), {card["prompt"] for card in moved["cards"]}) == (50, {"ferns"})


def test_rows_are_shown_as_they_are_now_with_what_happened_and_what_to_do(database):
    shelved(database, *((f"of {status}", status) for status in Status))
    lines = {card["prompt"][3:]: card["rows"][0] for card in seen(look(database))["cards"]}
    assert {name: line["status"] for name, line in lines.items()} == {status: status for status in Status}
    assert lines["succeeded"]["message"] == ""
    assert lines["refused"]["message"] == "Row 4 of its sheet: no size `huge`; write s or m"
    assert lines["failed"]["message"] == "no ink. `patternmill retry` tries once more."
    words = {"held": "settle", "in_doubt": "same request", "waiting": "goes on", "not_started": "not begun"}
    for name, said in words.items():
        assert said in lines[name]["message"]
    shelved(database, *((f"of {one}", "succeeded") for one in Status))
    now = [line for card in seen(look(database))["cards"] for line in card["rows"]]
    assert {(line["status"], line["message"]) for line in now} == {("succeeded", "")}


def test_a_card_has_all_rows_that_share_its_pattern_and_names_those_of_other_catalogs(database):
    shelved(database, ("herons", "succeeded"), ("herons", "failed"), ("ferns", "succeeded"))
    shelved(database, ("moss", "waiting"), ("herons", "waiting"), catalog="summer")
    herons, ferns = seen(look(database))["cards"]
    assert [line["sku"] for line in herons["rows"]] == ["A-2", "A-3"]
    assert (herons["others"], ferns["others"]) == (["summer: A-3"], [])
    assert (herons["picture"], herons["take"], herons["newest"]) == ("pat_herons", 1, 1)


def test_a_row_whose_own_cell_names_another_take_has_a_card_of_its_own(database):
    (pattern,) = shelved(database, ("herons", "succeeded"), ("herons", "succeeded"))
    decide(database, "production", pattern, 1, Verdict.PICK)
    sql = "UPDATE catalog_rows SET take = 3 WHERE sku = 'A-3'"
    database.change(lambda connection: connection.execute(sql))
    cards = seen(look(database))["cards"]
    assert [(card["take"], card["newest"], card["verdict"]) for card in cards] == [(1, 1, "pick"), (3, 3, "")]
    assert cards[0]["id"] != cards[1]["id"]


@played
async def test_a_pause_and_a_run_that_goes_on_are_told_and_a_dead_run_is_not(database):
    shelved(database, ("herons", "waiting"))
    view = look(database)
    for holder, is_living in (("elsewhere:1", True), (f"{socket.gethostname()}:999999999", False)):
        sql = "INSERT INTO leases (key, driver, holder) VALUES ('production/spring', 'run 1', :holder)"
        database.change(lambda connection, holder=holder, sql=sql: connection.execute(sql, holder=holder))
        assert bool(seen(view)["run"]) is is_living
        database.change(lambda connection: connection.execute("DELETE FROM leases"))
    lease = Lease(database, "production", "spring")
    assert seen(view)["dead"] is False
    await lease.take(RUN, lambda connection: None)
    assert (bool(seen(view)["run"]), seen(view)["dead"]) == (True, False)
    database.change(lambda connection: connection.execute("UPDATE leases SET driver = NULL"))
    assert (seen(view)["run"], seen(view)["dead"]) == (None, True)
    await pause(database, "production", "a review")
    assert "a review" in seen(view)["paused"][0]["words"]


# What is decided


@played
async def test_a_decision_is_saved_at_once_and_refused_where_there_is_a_newer_take(database, tmp_path):
    (pattern,) = shelved(database, ("herons", "succeeded"))
    said = {"pattern": pattern, "take": 1, "verdict": "again", "note": "warmer <b>"}
    async with page(database, tmp_path) as (client, door):
        client.headers[SESSION] = door.session
        assert (await client.post("/decide", json=said)).status_code == 200
        decision = decisions_of(database, "production")[pattern]
        assert (decision.verdict, decision.note, bool(decision.person)) == ("again", "warmer <b>", True)
        data = (await client.get("/data")).json()
        card = data["cards"][0]
        assert (data["marked"], card["verdict"], card["note"]) == (1, "again", "warmer <b>")
        assert (await client.post("/decide", json={**said, "verdict": ""})).status_code == 200
        database.change(lambda connection: move(connection, "production", decision, 2))
        refused = await client.post("/decide", json=said)
        assert (refused.status_code, refused.json()["code"]) == (409, "newer_take")
        assert "There is a newer take" in refused.json()["error"]
        assert (await client.post("/decide", json={**said, "verdict": "love"})).status_code == 422


def test_takes_are_shown_with_what_became_of_them(database):
    (pattern,) = shelved(database, ("herons", "succeeded"))
    view = look(database)
    assert view.takes_of(pattern, Contract()) == [(1, "pat_herons", "succeeded")]
    decide(database, "production", pattern, 1, Verdict.AGAIN)
    seen_as = decisions_of(database, "production")[pattern]
    database.change(lambda connection: move(connection, "production", seen_as, 2))
    database.change(lambda connection: connection.execute("UPDATE catalog_rows SET take = 2"))
    assert view.takes_of(pattern, Contract()) == [(1, "pat_herons", "succeeded"), (2, "", "")]
    with pytest.raises(Refusal):
        view.takes_of("gone", Contract())


# What is done


async def planned_and_done(deeds, **asked):
    plan = await deeds.plan(Asked(**asked))
    deeds.begin(plan["plan"])
    job = deeds.jobs[-1]
    while not job["over"]:
        await asyncio.sleep(0.01)
    return plan, job["lines"]


@played
async def test_a_pause_needs_its_reason_and_is_lifted_again(database):
    deeds, view = deeds_of(database), look(database)
    with refuses("no_reason"):
        await deeds.plan(Asked(kind="pause", reason="  "))
    plan, lines = await planned_and_done(deeds, kind="pause", reason="a review")
    assert (plan["question"], lines) == ("Pause production/spring?", ["Paused: production/spring."])
    assert [brake["scope"] for brake in seen(view)["paused"]] == ["production/spring"]
    _, lines = await planned_and_done(deeds, kind="unpause")
    assert (lines, seen(view)["paused"]) == (["Lifted: production/spring."], [])


@played
async def test_only_the_plan_that_was_shown_last_is_carried_out_and_only_once(database):
    deeds = deeds_of(database)
    first = await deeds.plan(Asked(kind="pause", reason="one"))
    second = await deeds.plan(Asked(kind="pause", reason="two"))
    with refuses("other_plan"):
        deeds.begin(first["plan"])
    deeds.begin(second["plan"])
    with refuses("other_plan"):
        deeds.begin(second["plan"])
    while not deeds.jobs[-1]["over"]:
        await asyncio.sleep(0.01)
    assert seen(look(database))["paused"][0]["words"].endswith("(two)")


@asynccontextmanager
async def shop(*rows):
    """The page of a catalog that was made just now: what can be done, and what is shown."""
    sheet(*rows)
    await carry_out(Request(file="spring.csv"))
    database = Database("home/ledger.sqlite3")
    yield Deeds(database, read_settings(), "production", "spring", carry_out), look(database)
    await database.close()


@played
async def test_what_is_marked_again_is_remade_for_what_was_agreed_to(double):  # noqa: F811
    async with shop(row(1, "herons"), row(2, "herons", label="x"), row(3, "ferns")) as (deeds, view):
        pattern = next(card["id"] for card in seen(view)["cards"] if card["prompt"] == "herons")
        decide(deeds.database, "production", pattern, 1, Verdict.AGAIN)
        assert seen(view)["marked"] == 1
        plan, lines = await planned_and_done(deeds, kind="remake")
        assert plan["question"] == "Make 3 items for 2.00 EUR in production?"
        assert "patterns: 1 to make" in plan["lines"]
        assert (lines[0], made(double)) == ("Completed: 2 succeeded", (3, 5))
        takes = [(card["take"], card["newest"], card["verdict"]) for card in seen(view)["cards"]]
        assert takes == [(2, 2, ""), (1, 1, "")]
        assert [take.state for take in view.takes_of(pattern, Contract())] == ["succeeded", "succeeded"]
        plan, lines = await planned_and_done(deeds, kind="remake", sku=["A-1", "A-2"], take=1)
        assert plan["question"] == "Do so? It costs nothing."
        assert (seen(view)["cards"][0]["take"], made(double)) == (1, (3, 5))
        with pytest.raises(Refusal):
            await deeds.plan(Asked(kind="remake"))


@played
async def test_a_pause_does_not_wait_for_what_it_stops(double):  # noqa: F811
    async with shop(row(1, "herons")) as (deeds, view):
        double.weather = Weather(latency=0.001, pattern_time=1.5, product_time=0.1)
        decide(deeds.database, "production", seen(view)["cards"][0]["id"], 1, Verdict.AGAIN)
        deeds.begin((await deeds.plan(Asked(kind="remake")))["plan"])
        remaking = deeds.jobs[-1]
        while made(double) == (1, 1):
            await asyncio.sleep(0.01)
        with refuses("under_way"):
            await deeds.plan(Asked(kind="remake"))
        _, lines = await planned_and_done(deeds, kind="pause", reason="stock")
        assert (lines, remaking["over"]) == (["Paused: production/spring."], False)
        assert deeds.jobs[0] is remaking
        while not remaking["over"]:
            await asyncio.sleep(0.01)
        assert (remaking["lines"][0][:6], made(double)) == ("Paused", (2, 1))
        await deeds.close()


@played
async def test_what_is_ticked_is_ordered_with_its_quantities(double):  # noqa: F811
    async with shop(row(1), row(2), row(3, size="huge")) as (deeds, _):
        asked = {"kind": "order", "name": "samples", "quantities": {"A-1": 2, "A-2": 1, "A-3": 1}}
        plan, lines = await planned_and_done(deeds, **asked)
        assert plan["question"] == "Make the checkout samples of 3 pieces?"
        assert "A-3" in plan["lines"][0]
        assert plan["lines"][1].startswith("2 × A-1 (")
        (job,) = [job for job in double.jobs.values() if job.stage == "checkout"]
        assert f"https://pay.example/{job.result}" in lines[0]
        for name, code in {" ": "no_name", "samples": "order_exists", "b": "unknown_environment"}.items():
            deeds.environment = "staging" if code == "unknown_environment" else "production"
            with refuses(code):
                await deeds.plan(Asked(kind="order", quantities={"A-1": 1}, name=name))


# Pictures


class Service:
    """Answers where a picture is."""

    def __init__(self, address):
        self.address, self.asked = address, []

    async def read(self, operation, question):
        self.asked.append((operation, question["patternId"]))
        return {"imageUrl": self.address}


def pictures_of(tmp_path, address, answer=None, service="http://127.0.0.1:1/v1"):
    async def answered(request):
        assert "authorization" not in request.headers
        return answer or httpx.Response(200, headers={"content-type": "image/png"}, content=PNG)

    asked = Service(address)
    where, transport = Picture(path="patterns/get", field="imageUrl"), httpx.MockTransport(answered)
    return asked, Pictures(tmp_path / "pictures", asked, where, service, transport)


@played
async def test_a_picture_is_fetched_once_and_kept_beside_the_results(tmp_path):
    service, pictures = pictures_of(tmp_path, "http://127.0.0.1:2/pat.png")
    assert await asyncio.gather(*(pictures.find("pat_1") for _ in range(3))) == [PNG] * 3
    assert await pictures.find("pat_1") == PNG
    assert service.asked == [("patterns/get", "pat_1")]
    assert (tmp_path / "pictures/pat_1.png").read_bytes() == PNG
    await pictures.close()


NEAR, FAR = "http://127.0.0.1:2/p.png", "https://8.8.8.8/v1"


@pytest.mark.parametrize(
    ("address", "service", "status", "kind", "content"),
    [
        (None, "", 200, "image/png", PNG), ("file:///etc/passwd", "", 200, "image/png", PNG),
        ("not an address", "", 200, "image/png", PNG), (NEAR, FAR, 200, "image/png", PNG),
        ("http://[::1]:2/p.png", FAR, 200, "image/png", PNG),
        ("http://169.254.169.254/p.png", FAR, 200, "image/png", PNG),
        ("http://10.0.0.7/p.png", FAR, 200, "image/png", PNG), (NEAR, "", 200, "text/html", PNG),
        (NEAR, "", 404, "image/png", PNG), (NEAR, "", 302, "image/png", PNG),
        (NEAR, "", 200, "image/svg+xml", b"<svg>"), (NEAR, "", 200, "image/png", PNG * 500_000),
    ],
)  # fmt: skip
@played
async def test_what_is_no_picture_or_lies_deeper_inside_than_the_service_is_none_and_not_asked_for_again(
    tmp_path, address, service, status, kind, content
):
    answer = httpx.Response(status, headers={"content-type": kind}, content=content)
    asked, pictures = pictures_of(tmp_path, address, answer, service or "http://127.0.0.1:1/v1")
    assert [await pictures.find("pat_1"), await pictures.find("pat_1")] == [None, None]
    assert len(asked.asked) == 1
    assert not (tmp_path / "pictures").exists()
    await pictures.close()


@pytest.mark.parametrize("name", ["../ledger", "a/b", ".hidden", "", "a" * 200, "ü"])
@played
async def test_an_id_that_is_no_name_of_a_file_has_no_picture(tmp_path, name):
    service, pictures = pictures_of(tmp_path, "http://127.0.0.1:2/p.png")
    assert (await pictures.find(name), service.asked) == (None, [])
    await pictures.close()


@played
async def test_a_service_without_pictures_makes_nobody_wait(database, tmp_path):
    shelved(database, ("herons", "succeeded"))
    async with page(database, tmp_path) as (client, door):
        answer = await client.get(f"/picture/pat_herons?key={door.pictures}")
        assert answer.status_code == 404


# The gallery


def test_a_gallery_holds_up_to_two_thousand_patterns_and_no_text_of_others_ends_its_data():
    about = "Mug", '{"size": "m"}', "succeeded", "prd", ""
    rows = [Made(f"pat_{at}", "</script><!--head-->{}", f"A-{at}", *about) for at in range(MOST + 1)]
    text = gallery("spring", rows)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert (len(data["cards"]), data["patterns"]) == (MOST, MOST + 1)
    assert data["cards"][0]["prompt"] == "</script><!--head-->{}"
    assert data["cards"][0]["rows"][0]["selections"] == "size: m"
    assert text.count("</script>") == 2
