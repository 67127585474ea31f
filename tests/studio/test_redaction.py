"""Reports without query strings, API keys and credential fields."""

from __future__ import annotations

import json

import pytest

from studio.redaction import redact, redact_text

SECRET = "c4nary-Value"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://host/v1/jobs?key={SECRET} failed",
        f"https://host/v1/jobs#access_token={SECRET}",
        f"/v1/jobs?signature={SECRET}",
        f"https://user:{SECRET}@host/v1",
        f"curl -H 'Authorization: Bearer {SECRET}' host",
        f"password={SECRET}&n=1",
        f"api_key: {SECRET}",
        f'{{"apiKey": "{SECRET} and more"}}',
        json.dumps(json.dumps({"client_secret": SECRET})),
        f"the key was studio_{SECRET * 2}",
        f"sk-{SECRET}-{SECRET}",
        f"eyJhbGciOi.eyJzdWIi.{SECRET}",
        rf"https:\/\/host\/v1?x={SECRET}",
    ],
)
def test_secrets_are_removed_from_text(text: str) -> None:
    assert SECRET not in redact_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Set-Cookie",
        "password",
        "passwd",
        "clientSecret",
        "access_token",
        "API-Key",
        "x-api-key",
    ],
)
def test_credential_fields_are_removed_at_any_depth(name: str) -> None:
    """The field goes with all that is in it; its neighbours stay."""
    report = {"request": {"body": [{"kept": 1, name: {"a": [SECRET]}}]}}

    assert redact(report) == {"request": {"body": [{"kept": 1}]}}


def test_what_is_no_secret_is_kept() -> None:
    """IDs, numbers, questions and addresses without a query string are no secrets."""
    report = {
        "requestId": "0b4d4a52-4bd0-5f3b-9a10-3a6b7d3b2a11",
        "text": "Why 409? See https://host/v1/jobs, or and/or; issue #4 is like it.",
        "response": {"status": 409, "body": None, "durationMs": 1.5, "ok": [True]},
    }

    assert redact(report) == report
