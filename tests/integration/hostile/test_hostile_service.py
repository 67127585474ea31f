"""The hostile service is correct without faults, and fails as planned."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.hostile import Hostile, HostileService, Limit, Plan, Rule, Times, audit
from tests.hostile.audit import ExpectedRow
from tests.hostile.certificates import write_certificates
from tests.hostile.record import lines_of
from tests.hostile.shapes import PAGED
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


def test_invalid_requests_are_refused(tmp_path: Path) -> None:
    """A wrong key, an unknown operation, pattern, category or value, and a missing prompt."""
    with talking(tmp_path) as talk:
        assert talk.post("patterns/create", {}, key="wrong").status == 401
        assert talk.post("patterns/remove", {}).status == 404
        assert talk.post("patterns/create", {"requestId": "r"}).status == 422
        assert talk.poll("job_nobody").status == 404
        assert talk.product("pat_nobody").status == 422
        pattern_id = talk.made(talk.pattern().json["jobId"])
        assert talk.product(pattern_id, fabric="linnen").status == 422


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


SPOILT = [
    (
        "status",
        {"code": 503, "retry_after": "7"},
        lambda s: s.status == 503 and s.headers["retry-after"] == "7",
    ),
    ("status", {"code": 429, "retry_after": "date:9"}, lambda s: s.headers["retry-after"].endswith(" gmt")),
    (
        "status",
        {"code": 409, "execute": True, "body": {"jobId": "$jobId"}},
        lambda s: "job_" in s.json["jobId"],
    ),
    ("redirect", {"code": 308}, lambda s: s.status == 308 and "127.0.0.1" in s.headers["location"]),
    ("no_content", {}, lambda s: s.status == 204 and not s.body),
    ("partial", {}, lambda s: s.status == 206),
    ("html", {}, lambda s: s.status == 200 and b"<html>" in s.body),
    ("proxy_page", {}, lambda s: s.status == 502 and "via" in s.headers),
    ("empty", {}, lambda s: s.status == 200 and s.body == b""),
    ("half_json", {}, lambda s: s.body.startswith(b"{") and not s.body.endswith(b"}")),
    ("body", {"json": None}, lambda s: s.body == b"null"),
    ("body", {"text": "[[["}, lambda s: s.body == b"[[["),
    ("edit", {"remove": ["jobId"]}, lambda s: "jobId" not in s.json and s.json["kind"] == "pattern"),
    ("edit", {"set": {"jobId": 17}}, lambda s: s.json["jobId"] == 17),
    ("other_job", {}, lambda s: s.json["jobId"] == "job_of_nobody"),
    ("unknown_status", {}, lambda s: s.json["status"] == "finalizing"),
    ("gzip_bomb", {"bytes": 2**22}, lambda s: len(gzip.decompress(s.body)) > 2**22 and len(s.body) < 2**16),
    ("deep", {"depth": 5000}, lambda s: s.body.count(b"[") == 5000),
    ("huge", {"bytes": 2**20}, lambda s: len(s.json["pad"]) == 2**20),
    ("cut", {}, lambda s: len(s.body) < int(s.headers["content-length"])),
    ("drip", {"piece": 20, "interval": 0.001}, lambda s: s.json["status"] in {"running", "succeeded"}),
    ("late", {"delay": 0.01}, lambda s: s.status == 200),
    ("close_after", {}, lambda s: s.status == 200),
    ("answer_lost", {"how": "close"}, lambda s: s.status == 0),
]


@pytest.mark.parametrize(
    ("fault", "params", "shows"), SPOILT, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_fault_reaches_the_wire(
    tmp_path: Path, fault: str, params: dict[str, object], shows: object
) -> None:
    """Every spoilt answer looks to a raw socket as its name implies, and is counted."""
    with talking(tmp_path, Rule("patterns/create", fault, params)) as talk:
        assert shows(talk.pattern())  # type: ignore[operator]
    assert audit(talk.record).faults == {fault: 1}


def test_unanswered_request_ends_by_the_clients_timeout(tmp_path: Path) -> None:
    """A request that is never answered is executed only if planned."""
    body = {"requestId": "r1", "prompt": "herons"}
    silence = Rule("patterns/create", "silence", {"execute": True})
    with talking(tmp_path, silence) as talk, pytest.raises(TimeoutError):
        talk.post("patterns/create", body, timeout=0.2)
    assert audit(talk.record).bought("pattern") == 1


def test_job_status_may_run_backward_or_never_end(tmp_path: Path) -> None:
    """A job reported as ended reads `running` again; another has no end at all."""
    back = Rule("jobs/get", "edit", {"set": {"status": "running", "result": None}}, state="reported", times=1)
    endless = Rule("patterns/create", "job_never_ends", matching="endless")
    with talking(tmp_path, back, endless) as talk:
        job_id = talk.pattern().json["jobId"]
        statuses = [talk.poll(job_id).json["status"] for _ in range(3)]
        assert statuses == ["succeeded", "running", "succeeded"]
        assert talk.poll(talk.pattern("r2", "endless knots").json["jobId"]).json["status"] == "running"
    assert len(audit(talk.record).unfinished) == 1


def test_young_job_may_be_unknown(tmp_path: Path) -> None:
    """404 on a job that is younger than the rule's limit."""
    with talking(tmp_path, Rule("jobs/get", "status", {"code": 404}, younger=60.0, each=2)) as talk:
        job_id = talk.pattern().json["jobId"]
        assert [talk.poll(job_id).status for _ in range(3)] == [404, 404, 200]


def test_hidden_limit_answers_429(tmp_path: Path) -> None:
    """Beyond the burst of a token bucket come refusals, and nothing is executed."""
    with talking(tmp_path, limits=(Limit("patterns/create", rate=0.001, burst=2),)) as talk:
        statuses = [talk.pattern(f"r{n}", f"prompt {n}").status for n in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert audit(talk.record).share_of(429) == 0.5
    assert audit(talk.record).bought("pattern") == 2


def test_key_sent_to_a_redirect_target_is_recorded(tmp_path: Path) -> None:
    """The second listener records whether a key came with the request."""
    with talking(tmp_path) as talk:
        talk.stray()
    assert (audit(talk.record).strayed, audit(talk.record).keys_leaked) == (1, 1)


def test_connection_may_be_reset_before_anything_is_read(tmp_path: Path) -> None:
    """The first connection is reset, the second is served."""
    with talking(tmp_path, Rule("connect", "reset", nth=(1,))) as talk:
        with pytest.raises(ConnectionError):
            talk.pattern()
        assert talk.pattern().status == 200


@pytest.mark.parametrize("shape", ["plain", "bare", "nested", "map", "schema", *PAGED, "unreadable"])
def test_categories_come_in_every_shape(tmp_path: Path, shape: str) -> None:
    """Each shape answers both operations; pages are walked by whatever field carries the cursor."""
    with talking(tmp_path, shape=shape) as talk:
        listing = talk.post("categories/list", {})
        details = talk.post("categories/get", {"categoryId": "stag_mug_02"})
        assert (listing.status, details.status) == (200, 200)
        assert (b"Mug" in listing.body) == (shape != "unreadable")
        if shape == "paged":
            second = talk.post("categories/list", {"cursor": listing.json["nextCursor"]}).json
            assert [c["name"] for c in second["categories"]] == ["Tote Bag", "Wallpaper"]
            assert second["nextCursor"] is None


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


def test_plan_can_be_replaced_in_mid_run(tmp_path: Path) -> None:
    """A key expires while the service runs."""
    body = {"requestId": "r1", "prompt": "blue herons"}
    with Hostile(Plan(), tmp_path) as hostile:
        assert post(hostile.url, hostile.key, "patterns/create", body).status == 200
        hostile.change(Plan(rules=(Rule("*", "status", {"code": 401}),)))
        assert post(hostile.url, hostile.key, "patterns/create", body).status == 401
        assert hostile.stats()["counts"]["fault status"] == 1


def test_plan_is_read_back_and_unknown_names_are_refused() -> None:
    """What is written is read back the same; a typo is an error, not a fault that never fires."""
    plan = Plan(
        seed=3, rules=(Rule("jobs/get", "drip", {"piece": 2}, nth=(1, 3)),), limits=(Limit("jobs/get", 5.0),)
    )
    read = Plan.from_json(plan.to_json())
    assert (read.rules, read.limits, read.patterns) == (plan.rules, plan.limits, plan.patterns)
    with pytest.raises(ValueError, match="no such fault"):
        Rule("jobs/get", "dripp")


@pytest.mark.parametrize(
    ("expired", "host", "trusted"),
    [(False, "127.0.0.1", True), (True, "127.0.0.1", False), (False, "example.org", False)],
)
def test_tls_certificates_are_valid_or_not_as_planned(
    tmp_path: Path, expired: bool, host: str, trusted: bool
) -> None:
    """A client that trusts the test's authority accepts the valid certificate, and neither of the invalid ones."""
    made = write_certificates(tmp_path / "tls", expired=expired, host=host)
    context = ssl.create_default_context(cafile=str(made.authority))
    with Hostile(Plan(), tmp_path, certificate=made.service) as hostile:
        address = urlsplit(hostile.url)
        assert address.scheme == "https"
        met = nullcontext() if trusted else pytest.raises(ssl.SSLCertVerificationError)
        with socket.create_connection((address.hostname, address.port), timeout=5) as sock, met:
            context.wrap_socket(sock, server_hostname="127.0.0.1").close()
