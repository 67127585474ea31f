"""Jobs by a clock that the test sets: when they end, what is there before, and what they cost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from studio.instruments.meter import PATTERN_PRICE, PRODUCT_PRICE, read_meter
from studio.keys import Keys
from studio.pace import Pace
from studio.store.records import Account

from .in_process import KEY, InProcess

MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "11oz", "finish": "matte"}}


@dataclass
class Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def studio(tmp_path: Path, clock: Clock) -> Iterator[InProcess]:
    """Yield a studio whose jobs take as long as the interface says."""
    with InProcess.open(tmp_path, Pace.REALISTIC, clock) as made:
        yield made


def begin(studio: InProcess, request_id: str, prompt: str = "ferns") -> dict[str, Any]:
    return studio.ask("patterns/create", requestId=request_id, prompt=prompt)


def poll(studio: InProcess, job: dict[str, Any]) -> dict[str, Any]:
    return studio.ask("jobs/get", jobId=job["jobId"])


def of_record(studio: InProcess, column: str) -> str:
    """What the studio has of its only job, and tells nobody before it ended."""
    with sqlite3.connect(studio.home / "studio.db") as database:
        return str(database.execute(f"SELECT {column} FROM job").fetchone()[0])


def test_pattern_takes_one_to_two_minutes(studio: InProcess, clock: Clock) -> None:
    """Until then there is no pattern to build on, and no picture."""
    job = begin(studio, "1")
    pattern_id, picture_id = of_record(studio, "result_id"), of_record(studio, "picture_id")
    build = {"requestId": "2", "patternId": pattern_id, **MUG}
    clock.pass_time(59)
    assert poll(studio, job) == {**job, "status": "running", "result": None}
    assert studio.request("products/create", build).json()["error"]["code"] == "unknown_pattern"
    assert studio.service.picture(picture_id) is None
    clock.pass_time(61)
    result = poll(studio, job)["result"]
    assert result["patternId"] == pattern_id
    assert result["imageUrl"].endswith(f"/pictures/{picture_id}.png")
    picture = studio.service.picture(picture_id)
    assert picture is not None and picture.design.prompt == "ferns"
    assert studio.service.picture("guess") is None
    product = studio.ask("products/create", **build)
    clock.pass_time(20)
    assert poll(studio, product)["result"]["productId"].startswith("prod_")
    assert begin(studio, "1")["jobId"] == job["jobId"]


@pytest.mark.parametrize(
    ("prompt", "statuses"),
    [
        ("x [fail]", ["failed", "failed"]),
        ("x [FAIL once]", ["failed", "succeeded"]),
        ("x", ["succeeded", "succeeded"]),
    ],
)
def test_failures_can_be_rehearsed(studio: InProcess, clock: Clock, prompt: str, statuses: list[str]) -> None:
    """Marks in a prompt make its jobs fail, with a reason, and never with a result."""
    jobs = [begin(studio, request_id, prompt) for request_id in ("1", "2")]
    clock.pass_time(120)
    ended = [poll(studio, job) for job in jobs]
    assert [job["status"] for job in ended] == statuses
    assert all(("error" in job) == (job["result"] is None) for job in ended)


@pytest.mark.parametrize("statement", ["DELETE FROM record", "UPDATE record SET body = '{}'"])
def test_record_is_append_only(studio: InProcess, statement: str) -> None:
    """The database itself refuses to change what was accepted."""
    begin(studio, "1")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sqlite3.connect(studio.home / "studio.db").execute(statement)


def test_meter_has_what_was_bought_and_what_was_bought_twice(studio: InProcess, clock: Clock) -> None:
    """A repeated request is bought once, and a checkout when it is paid; another account's or prompt's is another."""
    other = Keys(studio.service.store).create("other", Account("other"))[1]
    for request_id, prompt, key in (
        *(("1", "ferns", KEY), ("1", "ferns", KEY), ("1", "ferns", other)),
        *(("2", "ferns", KEY), ("3", "ferns", KEY), ("4", "moons", KEY)),
    ):
        studio.request("patterns/create", {"requestId": request_id, "prompt": prompt}, key)
        clock.pass_time(120)
    pattern = poll(studio, begin(studio, "4", "moons"))["result"]["patternId"]
    product = studio.ask("products/create", requestId="5", patternId=pattern, **MUG)
    clock.pass_time(20)
    product_id = poll(studio, product)["result"]["productId"]
    for request_id in ("6", "7"):
        lines = [{"productId": product_id, "quantity": 2}]
        checkout = studio.ask("checkouts/create", requestId=request_id, lines=lines)
    studio.pay(checkout)

    reading = read_meter(studio.home / "studio.db", clock.now)
    amounts = [one["amount"] for one in reading["purchases"]]
    assert amounts[:-1] == [PATTERN_PRICE] * 5 + [PRODUCT_PRICE]
    assert amounts[-1] == checkout["total"]["amount"] > 2000
    assert reading["total"] == sum(amounts)
    bought = [(one["account"], one["requestId"], one["what"]) for one in reading["purchases"]]
    patterns = [("default", "1"), ("other", "1"), *(("default", name) for name in "234")]
    assert bought == [
        *((*name, "pattern") for name in patterns),
        ("default", "5", "product"),
        ("default", "7", "order"),
    ]
    assert [one["requestIds"] for one in reading["suspectedDoublePurchases"]] == [("1", "2"), ("1", "3")]
