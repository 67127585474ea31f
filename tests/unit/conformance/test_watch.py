"""What changed since the last report, and whom the key may be sent to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from patternmill.conformance.conformance_report import ConformanceReport, changes
from patternmill.conformance.suite import check_service
from patternmill.conformance.watch import compare_with_last, report_path, settings_for
from patternmill.errors import ConfigurationError
from patternmill.settings import Settings
from tests.unit.conformance.whole_service import Asked, Departure, WholeService, answered, checked, refused


def report_of(departure: Departure | None = None, spend: int = 0) -> ConformanceReport:
    service = WholeService(departure) if departure else WholeService()
    return asyncio.run(checked(service, spend=spend))


def answering(operation: str, status: int, body: object) -> Departure:
    def depart(asked: Asked, normal):  # type: ignore[no-untyped-def]
        return answered(status, body) if asked.operation == operation and asked.key == "own" else normal()

    return depart


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_same_service_has_no_changes() -> None:
    assert changes(report_of(), report_of()) == []


@pytest.mark.parametrize(
    ("departure", "text"),
    [
        (answering("models/list", 200, {"models": []}), ""),
        (
            answering("models/list", 200, [{"modelId": "m"}]),
            "unstated-models-list: nothing named: was {models:",
        ),
        (answering("models/list", 403, {"error": 1}), "answered 200, now 403"),
        (answering("models/list", 404, None), "unstated-models-list"),
        (answering("orders/list", 200, {"orders": []}), "unstated-orders-list: was not run"),
        (
            answering("jobs/get", 200, {}),
            "jobs-unknown: was conformant (answers 404), is deviates (answers 200)",
        ),
    ],
)
def test_change_of_outcome_or_shape_is_named(departure: Departure, text: str) -> None:
    found = changes(report_of(), report_of(departure))
    assert any(text in change for change in found) if text else found == []


def test_checks_that_were_not_allowed_are_compared_with_the_last_time_that_they_were(
    settings: Settings,
) -> None:
    """A nightly run without spending does not forget what a run with it found."""
    assert compare_with_last(settings, report_of(spend=5)).before is None
    assert compare_with_last(settings, report_of()).changes == ()

    def twice(asked: Asked, normal):  # type: ignore[no-untyped-def]
        is_repeat = asked.operation == "patterns/create" and asked.key == "own" and asked.number == 2
        return refused(409, "used") if is_repeat else normal()

    (change,) = compare_with_last(settings, report_of(twice, spend=5)).changes
    assert change.startswith("pattern-repeat: was conformant")


def test_report_that_cannot_be_read_is_refused(settings: Settings) -> None:
    report = report_of()
    compare_with_last(settings, report)
    report_path(settings, report.url).write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        compare_with_last(settings, report)


def test_service_without_a_key_is_not_asked(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="key is missing"):
        asyncio.run(check_service(settings.model_copy(update={"studio_url": "https://studio.example/v1"})))


def test_address_of_an_environment_takes_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    urls = {"staging": "https://staging.example/v1", "production": "https://live.example/v1"}
    monkeypatch.setenv("PATTERNMILL_ENVIRONMENT_URLS", json.dumps(urls))
    monkeypatch.setenv("PATTERNMILL_API_KEYS", json.dumps({"staging": "sk_staging", "production": "sk_live"}))
    found = settings_for("https://live.example/v1/")
    assert (found.environment, found.api_key and found.api_key.get_secret_value()) == (
        "production",
        "sk_live",
    )
    with pytest.raises(ConfigurationError) as refusal:
        settings_for("https://elsewhere.example/v1")
    assert refusal.value.code == "key_at_new_address"
    with pytest.raises(ConfigurationError):
        settings_for("https://live.example/v1", "staging")


@pytest.mark.parametrize(
    "url", ["studio.example/v1", "https://me:pass@studio.example/v1", "ftp://studio.example"]
)
def test_unusable_address_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as refusal:
        settings_for(url)
    assert "me:pass" not in str(refusal.value)
