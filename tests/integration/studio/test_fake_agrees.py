"""The fake service and the studio answer generated sequences alike, wherever the interface says how."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule

from studio.pace import Pace
from tests.hostile import HostileService, Plan, Rule, Times
from tests.hostile.wire import Request

from .in_process import AUTHORIZED, KEY, InProcess

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
#: Seconds that no job exceeds at the pace of the interface.
LONG = 200.0
#: The part of the studio's offer that the fake has too.
CATALOG = {
    "Mug": {"size": ("11oz", "15oz"), "finish": ("matte",)},
    "Cushion": {"size": ("40x40", "50x50"), "fabric": ("linen",)},
}
PLAN = Plan(
    catalog=CATALOG,
    patterns=Times(median=90.0),
    products=Times(median=10.0),
    rules=(Rule("patterns/create", "job_fails", {"message": "the loom broke"}, matching="[fail]"),),
)
PROMPTS = st.sampled_from(["blue herons", "ferns", "broken looms [fail]", "", "   "])
REQUEST_IDS = st.sampled_from([f"r-{number}" for number in range(6)])


class FakeAgrees(RuleBasedStateMachine):
    """A machine that sends both the same requests, and translates the names of one into those of the other."""

    jobs: Bundle[str] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "studio").mkdir()
        self.open = ExitStack()
        self.studio = self.open.enter_context(
            InProcess.open(
                self.folder / "studio", Pace.REALISTIC, lambda: BEGAN + timedelta(seconds=self.seconds)
            )
        )
        self.fake = HostileService(
            PLAN, self.folder / "record", keys=(KEY,), clock=lambda: BEGAN.timestamp() + self.seconds
        )
        #: The studio's name for each name that the fake gave.
        self.names: dict[str, str] = {"pattern_of_nobody": "pattern_of_nobody"}

    def teardown(self) -> None:
        self.open.close()
        self.fake.close()
        shutil.rmtree(self.folder)

    def both(self, operation: str, body: dict[str, Any], key: str = KEY) -> dict[str, Any] | None:
        """Return the fake's answer, after comparing it with the studio's; None if both refuse."""
        head = {**AUTHORIZED, "content-type": "application/json", "authorization": f"Bearer {key}"}
        request = Request("POST", f"/v1/{operation}", head, json.dumps(body).encode())
        ours = self.fake.ask(request)
        theirs = self.studio.request(operation, self.translated(body), key)
        assert (ours.status >= 400) == (theirs.status_code >= 400), (operation, body, ours, theirs.text)
        if ours.status >= 400:
            return None
        mine, other = json.loads(ours.body), theirs.json()
        assert isinstance(mine, dict)
        if "jobId" in mine:
            self.compare(mine, other)
        return mine

    def translated(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.translated(one) for name, one in value.items()}
        return self.names.get(value, value) if isinstance(value, str) else value

    def compare(self, mine: dict[str, Any], other: dict[str, Any]) -> None:
        """The same job in the same state, with a result or an error where the interface says that there is one."""
        self.same_name(mine["jobId"], other["jobId"])
        assert (mine["kind"], mine["status"]) == (other["kind"], other["status"])
        assert set(mine["result"] or {}) <= set(other["result"] or {})
        assert (mine["result"] is None) == (other["result"] is None)
        for name, value in (mine["result"] or {}).items():
            self.same_name(value, other["result"][name])
        assert bool(mine.get("error", {}).get("message")) == bool(other.get("error", {}).get("message"))

    def same_name(self, mine: str, other: str) -> None:
        assert self.names.setdefault(mine, other) == other
        assert len(set(self.names.values())) == len(self.names), "two things with one name"

    # What clients do

    @initialize()
    def offers(self) -> None:
        """Categories are called otherwise by each; those that both have are asked for by their names."""
        listed = self.both("categories/list", {})
        assert listed is not None
        theirs = self.studio.ask("categories/list")["categories"]
        ids = {one["name"]: one["categoryId"] for one in theirs}
        self.categories = {one["name"]: one["categoryId"] for one in listed["categories"]}
        for name in CATALOG:
            self.same_name(self.categories[name], ids[name])
            assert self.both("categories/get", {"categoryId": self.categories[name]})

    @rule(target=jobs, request_id=REQUEST_IDS, prompt=PROMPTS)
    def make_pattern(self, request_id: str, prompt: str) -> Any:
        job = self.both("patterns/create", {"requestId": request_id, "prompt": prompt})
        return job["jobId"] if job else multiple()

    @rule(
        target=jobs,
        request_id=REQUEST_IDS,
        job=jobs,
        name=st.sampled_from(sorted(CATALOG)),
        size=st.sampled_from(["11oz", "40x40", "none"]),
    )
    def make_product(self, request_id: str, job: str, name: str, size: str) -> Any:
        asked = self.both("jobs/get", {"jobId": job})
        pattern = ((asked or {}).get("result") or {}).get("patternId", "pattern_of_nobody")
        fabric = {"finish": "matte"} if name == "Mug" else {"fabric": "linen"}
        body = {
            "patternId": pattern,
            "categoryId": self.categories[name],
            "selections": {"size": size, **fabric},
        }
        made = self.both("products/create", {"requestId": request_id, **body})
        return made["jobId"] if made else multiple()

    @rule(job=jobs)
    def poll(self, job: str) -> None:
        assert self.both("jobs/get", {"jobId": job}) is not None

    @rule(seconds=st.sampled_from([1.0, LONG]))
    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    @rule(operation=st.sampled_from(["patterns/create", "jobs/get", "categories/list"]))
    def ask_with_a_wrong_key(self, operation: str) -> None:
        assert self.both(operation, {"requestId": "r-0", "prompt": "ferns", "jobId": "none"}, "wrong") is None

    @rule(body=st.sampled_from([{}, {"jobId": 7}, {"jobId": "none"}, {"prompt": "no ID"}]))
    def ask_nonsense(self, body: dict[str, Any]) -> None:
        for operation in ("jobs/get", "patterns/create", "products/create", "unknown/operation"):
            assert self.both(operation, body) is None


TestFakeAgrees = pytest.mark.slow(FakeAgrees.TestCase)
TestFakeAgrees.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
