"""The hostile service is correct without faults, and fails as planned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile import Hostile, HostileService, Plan, Rule, Times, audit
from tests.hostile.audit import ExpectedRow
from tests.hostile.record import lines_of
from tests.integration.hostile.support import Seen, post

KEY = "sk_test"


class Talk:
    """A service in this process, and raw requests to it from threads."""

    def __init__(self, plan: Plan, record: Path) -> None:
        self.plan, self.record = plan, record
        self._runner = asyncio.Runner()
        self.service: HostileService | None = None

    @contextmanager
    def open(self) -> Iterator[Talk]:
        with self._runner:
            self.service = self._runner.run(self._begin())
            try:
                yield self
            finally:
                self._runner.run(self.service.__aexit__(None, None, None))

    async def _begin(self) -> HostileService:
        return await HostileService(self.plan, self.record, keys=(KEY,)).__aenter__()

    def post(self, operation: str, body: object, *, key: str = KEY, timeout: float = 5.0) -> Seen:
        assert self.service is not None
        url = self.service.url
        return self._runner.run(_in_thread(url, key, operation, body, timeout))

    def stray(self) -> Seen:
        """A request as it arrives at the host that a redirect named."""
        assert self.service is not None
        return self._runner.run(_in_thread(self.service.elsewhere + "/v1", KEY, "patterns/create", {}, 5.0))

    def pattern(self, request_id: str = "r1", prompt: str = "blue herons") -> Seen:
        return self.post("patterns/create", {"requestId": request_id, "prompt": prompt})

    def poll(self, job_id: str) -> Seen:
        return self.post("jobs/get", {"jobId": job_id})

    def made(self, job_id: str) -> str:
        result = self.poll(job_id).json["result"]
        return str(next(iter(result.values())))

    def product(self, pattern_id: str, request_id: str = "p1", fabric: str = "linen") -> Seen:
        body = {"requestId": request_id, "patternId": pattern_id, "categoryId": "stag_cushion_01"}
        return self.post("products/create", {**body, "selections": {"fabric": fabric}})


async def _in_thread(url: str, key: str, operation: str, body: object, timeout: float) -> Seen:
    return await asyncio.to_thread(post, url, key, operation, body, timeout=timeout)


@contextmanager
def talking(folder: Path, *rules: Rule, **plan: object) -> Iterator[Talk]:
    with Talk(Plan(rules=rules, **plan), folder / "record.jsonl").open() as talk:  # type: ignore[arg-type]
        yield talk


def test_pattern_and_product_are_made_and_recorded(tmp_path: Path) -> None:
    """Without faults: both creates, both polls, and evidence that the product belongs to its row."""
    with talking(tmp_path) as talk:
        first = talk.pattern().json
        assert (first["kind"], first["status"], first["result"]) == ("pattern", "running", None)
        product_id = talk.made(talk.product(talk.made(first["jobId"])).json["jobId"])
    row = ExpectedRow("A-1", "blue herons", "cushion", {"fabric": "linen"})
    evidence = audit(talk.record, [row])
    assert evidence.wrong_products({"A-1": product_id}) == []
    assert evidence.double_purchases == ()
    assert not evidence.never_bought()
    assert audit(talk.record, [ExpectedRow("A-1", "red foxes", "cushion")]).wrong_products(
        {"A-1": product_id}
    )


def test_request_id_has_one_job_and_one_body(tmp_path: Path) -> None:
    """The same body gets the same job; another body gets 409."""
    with talking(tmp_path) as talk:
        jobs = {talk.pattern().json["jobId"] for _ in range(3)}
        assert len(jobs) == 1
        assert talk.pattern(prompt="red foxes").status == 409
    assert audit(talk.record).requests_with_two_jobs == ()
    assert audit(talk.record).changed_bodies == ("r1",)


def test_jobs_survive_a_restart(tmp_path: Path) -> None:
    """A service killed and started again knows its requests and ends its jobs in their time."""
    plan = Plan(patterns=Times(median=1.0))
    body = {"requestId": "r1", "prompt": "blue herons"}
    with Hostile(plan, tmp_path) as hostile:
        job_id = post(hostile.url, hostile.key, "patterns/create", body).json["jobId"]
        hostile.kill()
        hostile.start()
        assert post(hostile.url, hostile.key, "patterns/create", body).json["jobId"] == job_id
        until = time.monotonic() + 10
        while post(hostile.url, hostile.key, "jobs/get", {"jobId": job_id}).json["status"] == "running":
            assert time.monotonic() < until
            time.sleep(0.05)
    assert audit(hostile.record).bought("pattern") == 1


def test_executed_create_can_lose_its_answer(tmp_path: Path) -> None:
    """The first request is executed and reset; the same request again finds the job."""
    with talking(tmp_path, Rule("patterns/create", "answer_lost", each=1)) as talk:
        with pytest.raises(ConnectionResetError):
            talk.pattern()
        assert talk.pattern().status == 200
    evidence = audit(talk.record)
    assert evidence.bought("pattern") == 1
    assert evidence.faults == {"answer_lost": 1}
    assert evidence.unfired(talk.plan) == []


def test_second_purchase_counts_as_double_unless_the_first_failed(tmp_path: Path) -> None:
    """A new requestId for the same content is a double purchase, but after `failed` it is the next attempt."""
    with talking(tmp_path, Rule("patterns/create", "job_fails", matching="foxes", each=1)) as talk:
        talk.pattern("r1", "red foxes")
        talk.pattern("r2", "red foxes")
        assert audit(talk.record).double_purchases == ()
        talk.pattern("r3", "red foxes")
    doubles = audit(talk.record).double_purchases
    assert [(double.request_id, double.attempt) for double in doubles] == [("r3", 3)]


def test_forgotten_request_id_makes_a_second_job(tmp_path: Path) -> None:
    """The rule `forget` makes two jobs for one requestId, and the audit names it."""
    with talking(tmp_path, Rule("patterns/create", "forget", repeat=True, times=1)) as talk:
        assert talk.pattern().json["jobId"] != talk.pattern().json["jobId"]
    assert audit(talk.record).requests_with_two_jobs == ("r1",)
    assert len(audit(talk.record).double_purchases) == 1


def test_key_sent_to_a_redirect_target_is_recorded(tmp_path: Path) -> None:
    """The second listener records whether a key came with the request."""
    with talking(tmp_path) as talk:
        talk.stray()
    assert (audit(talk.record).strayed, audit(talk.record).keys_leaked) == (1, 1)


def test_same_seed_gives_the_same_faults(tmp_path: Path) -> None:
    """Which requests are hit depends on the seed and the requests, not on their order."""

    def hit(folder: str, order: list[int], seed: int) -> set[str]:
        rule = Rule("patterns/create", "empty", share=0.5)
        with talking(tmp_path / folder, rule, seed=seed) as talk:
            for number in order:
                talk.pattern(f"r{number}", f"prompt {number}")
        return {line["requestId"] for line in lines_of(talk.record) if line.get("fault")}

    one = hit("a", list(range(12)), 7)
    assert one == hit("b", list(reversed(range(12))), 7)
    assert one != hit("c", list(range(12)), 8)
