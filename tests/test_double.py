"""The double of the service and its audit: a proof is worth what these are."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from tests.double import DIALECTS, Audit, Double, DoubleTransport, Line, Spell, Weather, serving
from tests.double.audit import sheet_of
from tests.double.server import KEY
from tests.double.service import NOT_MADE, REFUSED
from tests.double.weather import FAULTS, WORDS

CALM = Weather(latency=0.0, pattern_time=0.01, product_time=0.01, spread=0.0)
LINE = Line("S-1", "herons")


def asked(double, *exchanges):
    """Return what the double answers to these operations, one after the other: status and body, or the trouble."""

    async def ask():
        transport, answers = DoubleTransport(double), []
        for operation, body in exchanges:
            request = httpx.Request("POST", f"http://double.test/v1/{operation}", json=body)
            try:
                response = await transport.handle_async_request(request)
                answers.append((response.status_code, json.loads(await response.aread() or b"null")))
            except (httpx.TransportError, ValueError) as error:
                answers.append((type(error).__name__, None))
            await asyncio.sleep(0.02)
        return answers

    return asyncio.run(ask())


def pattern(request="r1", prompt="herons"):
    return "patterns/create", {"requestId": request, "prompt": prompt}


def product(request="r2", built_on="pat_1", size="s", label="S-1"):
    choice = {"categoryId": "cat_tote", "selections": {"size": size, "label": label}}
    return "products/create", {"requestId": request, "patternId": built_on, **choice}


def poll(job):
    return "jobs/get", {"jobId": job}


def test_a_row_is_made_once():
    double = Double(CALM)
    answers = asked(double, pattern(), pattern(), poll("job_1"), product(), poll("job_2"))
    assert [status for status, _ in answers] == [200] * 5
    assert answers[2][1]["result"] == {"patternId": "pat_1"}
    assert answers[4][1]["result"] == {"productId": "pro_2"}
    audit = Audit(double.record)
    rows = [{"sku": "S-1", "status": "succeeded", "product_id": "pro_2", "pattern_id": "pat_1", "error": ""}]
    assert [*audit.bought_twice(), *audit.changed()] == []
    assert [*audit.lost([LINE], rows), *audit.wrong_advice([LINE], rows)] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_known_request_is_made_once_in_every_dialect(dialect):
    double = Double(replace(CALM, dialect=dialect, timeout=0.1))
    (_, first), (status, again) = asked(double, pattern(), pattern())
    assert len(double.jobs) == 1
    if dialect in WORDS:
        assert (status, again) == WORDS[dialect]
    else:
        assert (again["jobId"] == first["jobId"]) == (dialect not in ("another job", "failed as a duplicate"))


def test_a_service_that_looks_before_it_writes_makes_two_jobs_of_copies_that_meet():
    double = Double(replace(CALM, dialect="looks up", timeout=1.0))

    async def both():
        raw = json.dumps(pattern()[1]).encode()
        await asyncio.gather(double.exchange("patterns/create", raw), double.exchange("patterns/create", raw))

    asyncio.run(both())
    assert len(list(Audit(double.record).bought_twice())) == 1


def test_an_id_is_forgotten_after_hours():
    now = [0.0]
    double = Double(replace(CALM, dialect="forgets"), clock=lambda: now[0])
    asked(double, pattern(), pattern())
    assert len(double.jobs) == 1
    now[0] = 14 * 3600.0
    asked(double, pattern())
    assert len(double.jobs) == 2


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_executed_or_not(fault):
    executed = fault not in ("unreachable", "reset", "failed", "limited", "busy")
    double = Double(replace(CALM, faults={fault: 1.0}, timeout=0.01))
    ((status, body),) = asked(double, pattern())
    assert len(double.jobs) == executed
    assert double.fired[fault] == 1
    assert (status == 200 and bool(body) and "jobId" in body) == (fault in ("late", "slow", "twice"))


@pytest.mark.parametrize(
    ("kind", "status"), [("away", "ConnectError"), ("gateway", 502), ("unauthorized", 401), ("no_more", 422)]
)
def test_a_spell_is_met_while_it_lasts(kind, status):
    double = Double(replace(CALM, spells=(Spell(kind, 10.0, 20.0),)), clock=lambda: 15.0)
    assert asked(double, pattern())[0][0] == status
    double = Double(double.weather, clock=lambda: 25.0)
    assert asked(double, pattern())[0][0] == 200


def test_refusals_name_the_row():
    double = Double(CALM)
    refused, _, not_made = asked(
        double, pattern("r0", f"a {REFUSED} word"), pattern(), product(size=NOT_MADE)
    )
    assert [refused[1]["error"]["field"], not_made[1]["error"]["field"]] == ["prompt", "selections.size"]


def record_of(*events):
    """Return a record: each event is a job with its reason to fail, or the ID of a job that was told as failed."""
    record, at = [], 0.0
    for event in events:
        at += 1
        if isinstance(event, str):
            record.append({"event": "told", "at": at, "job": event})
        else:
            job, reason = event
            body = {"requestId": f"r-{job}", "prompt": "herons"}
            record.append(
                {"event": "job", "at": at, "job": job, "stage": "pattern", "request": f"r-{job}", "body": body,
                 "result": f"pat-{job}", "reason": reason, "odd": ""}
            )  # fmt: skip
    return record


@pytest.mark.parametrize(
    ("events", "twice"),
    [
        ([("a", "")], 0),
        ([("a", ""), ("b", "")], 1),
        ([("a", "broke"), "a", "a", ("b", "")], 0),
        ([("a", "broke"), "a", ("b", "")], 1),
        ([("a", "broke"), ("b", ""), "a", "a"], 1),
        ([("a", "against the policy"), "a", "a", ("b", "")], 1),
        ([("a", ""), "a", "a", ("b", "")], 1),  # it was told as failed, and has not
    ],
)
def test_the_audit_finds_what_was_bought_twice(events, twice):
    assert len(list(Audit(record_of(*events)).bought_twice())) == twice
    assert list(Audit(record_of(*events), excused={"r-a"}).bought_twice()) == []


def row(**cells):
    empty = dict.fromkeys(("error_code", "error", "product_id", "pattern_id"), "")
    return {"sku": "S-1", "status": "failed"} | empty | cells


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        ([row()], 0),  # its last job failed
        ([], 1),
        ([row(), row()], 1),
        ([row(sku="S-2")], 1),
        ([row(status="waiting")], 1),
        ([row(status="succeeded", product_id="pro_9", pattern_id="pat-a")], 1),
    ],
)
def test_the_audit_finds_what_was_lost(rows, lost):
    assert len(list(Audit(record_of(("a", "broke"))).lost([LINE], rows))) == lost


@pytest.mark.parametrize(
    ("line", "record", "wrong"),
    [
        (LINE, [], 1), (replace(LINE, prompt=f"{REFUSED} herons"), [], 0),
        (replace(LINE, size=NOT_MADE), record_of(("a", "")), 0), (LINE, record_of(("a", "")), 1),
    ],
)  # fmt: skip
def test_the_audit_finds_wrong_advice(line, record, wrong):
    rows = [row(error="The service refused it. Correct the row.")]
    assert len(list(Audit(record).wrong_advice([line], rows))) == wrong


def test_the_same_double_behind_a_socket(tmp_path):
    double = Double(replace(CALM, faults={"lost": 0.3}), "3", file=tmp_path / "record.jsonl")
    with serving(double) as url, httpx.Client(headers={"Authorization": f"Bearer {KEY}"}) as client:
        assert httpx.post(f"{url}/categories/list", json={}).status_code == 401
        answers = []
        for number in range(20):
            try:
                sent = client.post(f"{url}/patterns/create", json=pattern(f"r{number}")[1])
                answers.append(sent.status_code)
            except (httpx.ReadError, httpx.RemoteProtocolError):
                answers.append(0)
    assert answers.count(200) + answers.count(0) == 20
    assert answers.count(0) == double.fired["lost"] > 0
    assert len(double.jobs) == 20
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert record == double.record


def test_a_sheet_of_lines():
    assert sheet_of([LINE]).splitlines()[1] == "S-1,herons,Tote,s,S-1"
