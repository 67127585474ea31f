"""The studio without HTTP: accepted once, ended by the clock, refused with reasons."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from studio.errors import Refusal
from studio.offer import CATEGORIES
from studio.operations.context import Caller
from studio.pace import Pace
from studio.requests import CreatePattern, CreateProduct, GetJob
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Store, read_record
from studio.wire import read_body

CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")
AT = "http://studio.test/pictures"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Studio:
    """A service on a file, with short words for its operations."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = Clock()
        self.store = Store(path)
        self.service = Service(self.store, pace=Pace.REALISTIC, clock=self.clock)

    def restart(self) -> None:
        self.store.close()
        self.store = Store(self.path)
        self.service = Service(self.store, pace=Pace.INSTANT, clock=self.clock)

    def pattern(self, request_id: str, prompt: str = "blue herons") -> dict[str, object]:
        return self.service.patterns.create(CreatePattern(requestId=request_id, prompt=prompt), CALLER)

    def product(self, request_id: str, pattern_id: str, **change: str) -> dict[str, object]:
        body = {"categoryId": CATEGORIES[0].category_id("staging"), "patternId": pattern_id, **change}
        selections = {"size": "40x40", "fabric": "linen"}
        return self.service.products.create(
            CreateProduct(requestId=request_id, selections=selections, **body), CALLER
        )

    def job(self, job: dict[str, object]) -> dict[str, object]:
        return self.service.jobs.get(GetJob(jobId=str(job["jobId"])), CALLER)

    def made_pattern(self, request_id: str, prompt: str = "blue herons") -> str:
        job = self.pattern(request_id, prompt)
        self.clock.pass_time(120)
        return result(self.job(job))["patternId"]


def result(job: dict[str, object]) -> dict[str, str]:
    found = job["result"]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = Studio(tmp_path / "studio.db")
    yield made
    made.store.close()


def test_job_runs_and_succeeds(studio: Studio) -> None:
    """A pattern takes one to two minutes; then its job names it and its picture."""
    job = studio.pattern("r1")
    assert job == {"jobId": job["jobId"], "kind": "pattern", "status": "running", "result": None}

    studio.clock.pass_time(59)
    assert studio.job(job) == job

    studio.clock.pass_time(61)
    ended = studio.job(job)
    assert ended["status"] == "succeeded"
    assert result(ended)["patternId"].startswith("pat_")
    assert result(ended)["imageUrl"].startswith(AT)


def test_same_request_is_the_same_job_for_ever(studio: Studio) -> None:
    """However often or late it is repeated, and after a restart."""
    job = studio.pattern("r1")

    assert studio.pattern("r1") == job
    studio.clock.pass_time(1e6)
    studio.restart()
    assert studio.pattern("r1")["jobId"] == job["jobId"]
    assert studio.pattern("r1")["status"] == "succeeded"
    assert [line.verdict for line in read_record(studio.path)] == [
        "accepted",
        "repeated",
        "repeated",
        "repeated",
    ]


def test_request_id_has_one_body(studio: Studio) -> None:
    """Another prompt, another operation or one field more under a used ID is a conflict."""
    pattern_id = studio.made_pattern("r1")

    for other in (
        lambda: studio.pattern("r1", "red herons"),
        lambda: studio.product("r1", pattern_id),
        lambda: studio.service.patterns.create(
            read_body(CreatePattern, b'{"requestId":"r1","prompt":"blue herons","model":"x"}'), CALLER
        ),
    ):
        with pytest.raises(Refusal, match="already used") as refused:
            other()
        assert (refused.value.status, refused.value.code) == (409, "request_id_conflict")


def test_product_needs_a_finished_pattern(studio: Studio) -> None:
    """Until its job has succeeded, a pattern is unknown; so are a product's ID and a made-up one."""
    job = studio.pattern("r1")
    hidden = sqlite3.connect(studio.path).execute("SELECT result_id FROM job").fetchone()[0]
    for pattern_id in (hidden, "pat_nothing"):
        with pytest.raises(Refusal) as refused:
            studio.product("p1", pattern_id)
        assert (refused.value.status, refused.value.code) == (404, "unknown_pattern")

    studio.clock.pass_time(120)
    assert studio.product("p1", result(studio.job(job))["patternId"])["kind"] == "product"


def test_product_job_ends_with_its_product(studio: Studio) -> None:
    """Building takes seconds; the job then names the product."""
    job = studio.product("p1", studio.made_pattern("r1"))
    studio.clock.pass_time(20)

    assert result(studio.job(job))["productId"].startswith("prod_")


@pytest.mark.parametrize(
    ("prompt", "statuses"),
    [
        ("x [fail]", ["failed", "failed"]),
        ("x [FAIL once]", ["failed", "succeeded"]),
        ("x", ["succeeded", "succeeded"]),
    ],
)
def test_failures_can_be_rehearsed(studio: Studio, prompt: str, statuses: list[str]) -> None:
    """Marks in a prompt make its jobs fail, with a reason, and never with a result."""
    jobs = [studio.pattern(request_id, prompt) for request_id in ("r1", "r2")]
    studio.clock.pass_time(120)
    ended = [studio.job(job) for job in jobs]

    assert [job["status"] for job in ended] == statuses
    assert all(("error" in job) == (job["result"] is None) for job in ended)


def test_picture_is_available_once_its_job_succeeded(studio: Studio) -> None:
    """Not earlier, nor without its ID."""
    job = studio.pattern("r1")
    picture_id = sqlite3.connect(studio.path).execute("SELECT picture_id FROM job").fetchone()[0]
    assert studio.service.picture(picture_id) is None

    studio.clock.pass_time(120)
    picture = studio.service.picture(picture_id)
    assert picture is not None
    assert (picture.order.design.prompt, picture.order.category) == ("blue herons", None)
    assert result(studio.job(job))["imageUrl"] == f"{AT}/{picture_id}.png"
    assert studio.service.picture("guess") is None


@pytest.mark.parametrize("statement", ["DELETE FROM record", "UPDATE record SET body = '{}'"])
def test_record_is_append_only(studio: Studio, statement: str) -> None:
    """The database itself refuses to change what was accepted."""
    studio.pattern("r1")

    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        sqlite3.connect(studio.path).execute(statement)
