"""`patternmill conformance` against an independent service that departs from the interface as planned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patternmill.conformance.check_results import CheckOutcome, SkipReason
from tests.hostile import Hostile, Limit, Plan, Rule
from tests.hostile.certificates import write_certificates
from tests.integration.conformance.conftest import Check

#: This service has none of these operations.
ABSENT = {"orders-unknown", "feedback"}
ABSENT_TOO = {*ABSENT, "checkouts-id"}
PATTERNS, PRODUCTS, POLLS, LIST = "patterns/create", "products/create", "jobs/get", "categories/list"


def rule(operation: str, fault: str, *, when: dict[str, Any] | None = None, **params: Any) -> Rule:
    return Rule(operation, fault, params, **(when or {}))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    with Hostile(Plan(), tmp_path_factory.mktemp("hostile")) as running:
        yield running


def test_without_faults_only_what_it_lacks_deviates(check: Check, hostile: Hostile) -> None:
    """Its products, patterns and jobs conform, and fifty at once are one."""
    hostile.change(Plan())
    before = hostile.stats()["jobs"]
    found = check(hostile.url, hostile.key, "--spend", "52", "--yes")
    assert found.deviations == ABSENT_TOO
    assert found.code == 1
    assert hostile.stats()["jobs"] - before == 3


FREE_SEEDS = [
    ("no-key", rule(LIST, "body", json={"categories": []}, when={"nth": (2,)})),
    ("wrong-key", rule(LIST, "body", json={"categories": []}, when={"nth": (3,)})),
    ("jobs-unknown", rule(POLLS, "body", json={"jobId": "x"})),
    ("categories-list", rule(LIST, "status", code=500)),
    ("json-answers", rule("categories/get", "html", code=200)),
    ("json-answers", rule("categories/get", "empty")),
    ("json-answers", rule("categories/get", "half_json")),
    ("json-answers", rule("categories/get", "no_content")),
    ("json-answers", rule("categories/get", "deep")),
    ("no-redirects", rule("categories/get", "redirect", code=307)),
    ("whole-answers", rule("categories/get", "answer_lost")),
    ("whole-answers", rule("categories/get", "cut")),
    ("whole-answers", rule("categories/get", "silence")),
    ("whole-answers", rule("categories/get", "drip", interval=0.5)),
    ("whole-answers", rule("categories/get", "huge", bytes=32 * 2**20)),
    ("whole-answers", rule("categories/get", "gzip_bomb")),
]


@pytest.mark.parametrize(("expected", "seed"), FREE_SEEDS, ids=[f"{e}-{s.fault}" for e, s in FREE_SEEDS])
def test_free_check_finds_its_deviation(expected: str, seed: Rule, check: Check, hostile: Hostile) -> None:
    """Seeded alone; and it ends with a code, not with a traceback."""
    hostile.change(Plan(rules=(seed,)))
    found = check(hostile.url, hostile.key, request_timeout="PT0.8S")
    assert expected in found.deviations - ABSENT
    assert found.deviations - ABSENT <= {expected, "no-key", "wrong-key"}
    assert found.code == 1
    assert found.complaint == ""


PAID_SEEDS = [
    ("pattern-accepted", rule(PATTERNS, "edit", remove=["kind"])),
    ("pattern-accepted", rule(PATTERNS, "status", code=422)),
    ("pattern-starts-running", rule(PATTERNS, "edit", set={"status": "succeeded"})),
    ("pattern-kind", rule(POLLS, "edit", set={"kind": "picture"})),
    ("pattern-same-job", rule(POLLS, "edit", set={"jobId": "job_else"}, when={"state": "ended"})),
    ("pattern-job-shape", rule(POLLS, "unknown_status", when={"state": "ended"})),
    ("pattern-result", rule(POLLS, "edit", set={"result": {"id": "p"}}, when={"state": "ended"})),
    ("pattern-transitions", rule(POLLS, "edit", set={"status": "running", "result": None}, when={"state": "reported"})),
    ("pattern-null-while-running", rule(POLLS, "edit", set={"status": "running"}, when={"state": "ended", "each": 1})),
    ("pattern-failure", rule(POLLS, "edit", set={"status": "failed", "result": None}, when={"state": "ended"})),
    ("pattern-repeat", rule(PATTERNS, "forget", when={"repeat": True})),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "seed"), PAID_SEEDS, ids=[f"{e}-{s.fault}" for e, s in PAID_SEEDS])
def test_paid_check_finds_its_deviation(expected: str, seed: Rule, check: Check, hostile: Hostile) -> None:
    """Within two patterns, however the service misbehaves."""
    hostile.change(Plan(rules=(seed,)))
    before = hostile.stats()["jobs"]
    found = check(hostile.url, hostile.key, "--spend", "2", "--yes", job_timeout="PT2S")
    assert expected in found.deviations
    assert {name for name in found.deviations if name.startswith("pattern-")} == {expected}
    assert hostile.stats()["jobs"] - before <= 2


@pytest.mark.parametrize("shape", ["plain", "bare", "nested", "map", "paged_info"])
def test_categories_of_any_shape_lead_to_a_product(shape: str, check: Check, hostile: Hostile) -> None:
    """The interface leaves their shape open; IDs of categories are no part of it in the report."""
    hostile.change(Plan(shape=shape))
    found = check(hostile.url, hostile.key, "--spend", "2", "--yes")
    assert found.deviations == ABSENT_TOO
    assert found.lines["product-result"].outcome is CheckOutcome.CONFORMANT
    assert found.report is not None
    assert "stag_" not in found.report.model_dump_json()


@pytest.mark.parametrize("shape", ["schema", "unreadable"])
def test_unreadable_categories_stop_at_the_product(shape: str, check: Check, hostile: Hostile) -> None:
    hostile.change(Plan(shape=shape))
    found = check(hostile.url, hostile.key, "--spend", "2", "--yes")
    assert found.lines["product-accepted"].reason is SkipReason.NO_OCCASION
    assert found.deviations == ABSENT


def test_rate_limit_of_the_service_is_obeyed(check: Check, hostile: Hostile) -> None:
    hostile.change(Plan(limits=(Limit(LIST, rate=1, burst=2, retry_after="1"),)))
    found = check(hostile.url, hostile.key)
    assert found.deviations == ABSENT
    assert found.lines["no-key"].outcome is CheckOutcome.CONFORMANT


def test_watch_names_what_changed(check: Check, hostile: Hostile) -> None:
    """First nothing to compare with, then no change, then another shape, then again none."""
    hostile.change(Plan())
    assert check(hostile.url, hostile.key, "--watch").code == 1
    assert "0 changes since" in check(hostile.url, hostile.key, "--watch").printed
    hostile.change(Plan(rules=(rule("categories/get", "edit", remove=["options"], set={"choices": []}),)))
    changed = check(hostile.url, hostile.key, "--watch")
    assert changed.code == 5
    assert (
        "categories-get: categories/get: was {categoryId: string, name: string, options:" in changed.printed
    )
    assert check(hostile.url, hostile.key, "--watch").code == 1


def test_report_that_cannot_be_written_ends_with_code_2(
    check: Check, hostile: Hostile, tmp_path: Path
) -> None:
    hostile.change(Plan())
    (tmp_path / "file").write_text("")
    found = check(hostile.url, hostile.key, "--json", str(tmp_path / "file" / "report.json"))
    assert found.code == 2
    assert "cannot be written" in found.complaint


@pytest.mark.parametrize("fault", ["nobody", "expired", "plain"])
def test_service_that_cannot_be_asked_ends_with_code_2(
    fault: str, check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens, its certificate is not valid, or it speaks no TLS."""
    made = write_certificates(tmp_path / "certificates", expired=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    certificate = None if fault == "plain" else made.service
    with Hostile(Plan(), tmp_path / "service", certificate=certificate) as service:
        url = service.url.replace("http://", "https://") if fault == "plain" else service.url
        if fault == "nobody":
            service.kill()
        found = check(url, service.key, request_timeout="PT1S")
    assert (found.code, found.report) == (2, None)
    assert found.complaint.startswith("error: ")
    assert "Nothing could be checked" in found.complaint


def test_certificate_that_is_trusted_is_asked(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_certificates(tmp_path / "certificates")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    with Hostile(Plan(), tmp_path / "service", certificate=made.service) as service:
        assert check(service.url, service.key).deviations == ABSENT
