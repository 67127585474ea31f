"""What is removed before something is sent on, and what is left as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.service.redaction import REMOVED, scrubbed

CANARY = "c4nary0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://studio.example/v1/x?key={CANARY}",
        f"see /patterns?next={CANARY}#top",
        f"https://studio.example/x#{CANARY}",
        f"https://ann:{CANARY}@studio.example/x",
        f"Authorization: Bearer {CANARY}",
        f"Basic {CANARY}==",
        f"password={CANARY}",
        f'{{"api_key": "{CANARY}"}}',
        f'{{\\"access_token\\": \\"{CANARY}\\"}}',
        f"client_secret: '{CANARY}'",
        f"Set-Cookie: session={CANARY}",
        f"sk_live_{CANARY}",
        f"ghp_{CANARY}",
        f"eyJhbGciOi.{CANARY}.x",
        f"write to {CANARY}@example.org",
        f"ann.{CANARY}@mail.example.co.uk, please",
    ],
)
def test_secrets_are_removed(text: str) -> None:
    """In a text, deep in a value, and in the name of a field."""
    for value in (text, {"a": [{"b": text}]}, {text: 1}):
        assert CANARY not in repr(scrubbed(value))


@pytest.mark.parametrize(
    "name", ["password", "X-Api-Key", "accessToken", "Set-Cookie", "clientSecret", "SIGNATURE", "checkoutUrl"]
)
def test_fields_with_the_name_of_a_credential_lose_their_value(name: str) -> None:
    assert scrubbed({"kept": 1, name: {"any": CANARY}}) == {"kept": 1, name: REMOVED}


def test_known_secrets_are_removed_wherever_they_are() -> None:
    """The longer one first, so that nothing of it is left."""
    found = scrubbed([f"x{CANARY}-long-x", {CANARY: f"{CANARY}."}], {CANARY, f"{CANARY}-long"})
    assert CANARY not in repr(found)
    assert "-long" not in repr(found)


@pytest.mark.parametrize(
    "value",
    [
        "blue herons, 50 % linen, 3/4 drop; red or green?",
        "The service answered 422: option 'size' has no value 'XXL' (see categories/get).",
        "6f1c2d3e-0000-5000-8000-123456789abc",
        "https://studio.example/v1/patterns/create",
        "日本の鷺 🦢 à la main",
        {"requestId": "r-1", "prompt": "herons", "selections": {"Size": "50x50", "Stoff": "Leinen"}},
        {
            "jobId": "job_4c1f",
            "kind": "pattern",
            "status": "failed",
            "result": None,
            "error": {"message": "no"},
        },
        [0, 1.5, True, None, ""],
    ],
)
def test_everything_else_is_left_as_it_is(value: Any) -> None:
    assert scrubbed(value) == value


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert scrubbed("a\ud83eb").encode() == b"a?b"


def test_what_is_nested_too_deeply_is_none() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert scrubbed(deep) is None


@given(st.text(alphabet="/?#@:=&.\"'\\ \n-_abkeysk0123é🦢", max_size=400))
def test_any_text_is_scrubbed_at_once(text: str) -> None:
    """And once more changes nothing in what matters: the canary."""
    assert CANARY not in scrubbed(f"{text} password={CANARY}")
