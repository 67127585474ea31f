"""The studio's file: an older one goes on, and two processes may open one."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from studio.operations.context import Caller
from studio.pace import Pace
from studio.requests import CreatePattern, GetJob, GetProduct, Page
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Account, Store, read_record
from studio.store.migrations import MIGRATIONS
from studio.wire import digest

CALLER = Caller(DEFAULT_ACCOUNT, "http://studio.test")
STARTED = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def older_file(path: Path) -> None:
    """As the first studios wrote it: two jobs, one of them a product, and a record."""
    connection = sqlite3.connect(path)
    for statement in MIGRATIONS[0]:
        connection.execute(statement)
    connection.execute(
        "CREATE INDEX job_prompt ON job (json_extract(subject, '$.prompt')) WHERE kind = 'pattern'"
    )
    body = CreatePattern(requestId="r1", prompt="ferns")
    pattern = '{"prompt": "ferns"}'
    product = (
        '{"prompt": "ferns", "pattern": "pat_1", "category": "mug",'
        ' "selections": {"size": "11oz", "finish": "matte", "colour": "navy"}}'
    )
    insert = "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)"
    times = (STARTED, STARTED + 1)
    connection.execute(
        insert, ("job_1", "pattern", "r1", digest("patterns/create", body), pattern, "pat_1", "p1", *times)
    )
    connection.execute(insert, ("job_2", "product", "r2", "x", product, "prod_1", "p2", *times))
    connection.execute(
        "INSERT INTO record (at, operation, verdict, request_id, job_id, body) VALUES (?, ?, ?, ?, ?, ?)",
        (STARTED, "patterns/create", "accepted", "r1", "job_1", "{}"),
    )
    connection.commit()
    connection.close()


def test_older_file_goes_on(tmp_path: Path) -> None:
    """Its jobs, request IDs, products and record are all there, for the account `default`."""
    older_file(tmp_path / "studio.db")
    store = Store(tmp_path / "studio.db")
    service = Service(store, home=tmp_path, pace=Pace.INSTANT)

    repeated = service.patterns.create(CreatePattern(requestId="r1", prompt="ferns"), CALLER)
    assert repeated["jobId"] == "job_1"
    assert service.jobs.get(GetJob(jobId="job_2"), CALLER)["kind"] == "product"
    product = service.products.get(GetProduct(productId="prod_1"), CALLER)
    assert product["patternId"] == "pat_1"
    assert "None" not in str(product["printFiles"])
    listed = service.jobs.list(Page(), CALLER)["jobs"]
    assert isinstance(listed, list)
    assert [job["jobId"] for job in listed] == ["job_2", "job_1"]
    assert service.picture("p1") is not None
    store.close()
    assert [line.account for line in read_record(tmp_path / "studio.db")] == ["default", "default"]


def test_accounts_have_their_own_request_ids(tmp_path: Path) -> None:
    """The same requestId of two accounts is two requests."""
    store = Store(tmp_path / "studio.db")
    service = Service(store, home=tmp_path, pace=Pace.INSTANT)
    other = Caller(Account("other"), CALLER.origin)

    jobs = [
        service.patterns.create(CreatePattern(requestId="r", prompt=prompt), caller)["jobId"]
        for caller, prompt in ((CALLER, "ferns"), (other, "moons"), (other, "moons"))
    ]
    store.close()

    assert len(set(jobs)) == 2
    assert jobs[1] == jobs[2]


def test_two_processes_may_open_the_file(tmp_path: Path) -> None:
    """A command on keys opens it while a studio runs; the second finds nothing to migrate."""
    first, second = Store(tmp_path / "studio.db"), Store(tmp_path / "studio.db")
    first.settings.set("feedback", "off")

    assert second.settings.get("feedback") == "off"
    first.close()
    second.close()
