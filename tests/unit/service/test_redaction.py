"""Texts of the service: what is removed from them, what is left as it is, and where the reason is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patternmill.service.redaction import MASK, clean, reason_in, scrubbed, without_key
from patternmill.text import REMOVED

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
    """They may be in a text, deep in a value, or in the name of a field."""
    for value in (text, {"a": [{"b": text}]}, {text: 1}):
        assert CANARY not in repr(scrubbed(value))


def test_fields_with_the_name_of_a_credential_lose_their_value() -> None:
    names = ["password", "X-Api-Key", "accessToken", "Set-Cookie", "clientSecret", "SIGNATURE", "checkoutUrl"]
    fields = {name: {"any": CANARY} for name in names}
    assert scrubbed({"size": 1, **fields}) == {"size": 1, **dict.fromkeys(names, REMOVED)}


def test_known_secrets_are_removed_wherever_they_are() -> None:
    """The longer one goes first, so that nothing of it is left."""
    text = repr(scrubbed([f"x{CANARY}-long-x", {CANARY: f"{CANARY}."}], {CANARY, f"{CANARY}-long"}))
    assert CANARY not in text and "-long" not in text


@pytest.mark.parametrize(
    "value",
    [
        "blue herons, 50 % linen, 3/4 drop; red or green? 日本の鷺 🦢 à la main",
        "The service answered 422: option 'size' has no value 'XXL' (see categories/get).",
        "https://studio.example/v1/patterns/create 6f1c2d3e-0000-5000-8000-123456789abc",
        {"requestId": "r-1", "prompt": "herons", "selections": {"Size": "50x50", "Stoff": "Leinen"}},
        {"jobId": "job_4c1f", "status": "failed", "result": None, "error": {"message": "no"}},
        [0, 1.5, True, None, ""],
    ],
)
def test_everything_else_is_left_as_it_is(value: Any) -> None:
    assert scrubbed(value) == value


@given(st.text(alphabet="/?#@:=&.\"'\\ \n-_abkeysk0123é🦢\ud83e", max_size=400))
def test_any_text_is_scrubbed_at_once(text: str) -> None:
    """Half a surrogate pair is replaced, too."""
    assert CANARY not in scrubbed(f"{text} password={CANARY}").encode().decode()


def test_text_is_one_short_printable_line_without_the_key() -> None:
    """Control characters, bidi marks and echoes of the key do not reach a log."""
    text = clean("a\x1b[31m\r\nb\u202e sekret-key " + "x" * 900, secret="sekret-key")
    assert text.startswith(f"a [31m b {MASK} x")
    assert text.isprintable() and len(text) == 500
    assert "sekret" not in clean(" " * 2001 + "sekret-key", secret="sekret-key")


def test_key_is_masked_but_a_short_one_is_not() -> None:
    """A key of a few letters would be found in ordinary words."""
    assert without_key("my sekret-key", "sekret-key") == f"my {MASK}"
    assert without_key("keyboard", "key") == "keyboard"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"message": "no"}, "no"),
        ({"error": "no"}, "no"),
        ({"error": {"message": "no"}}, "no"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"detail": [{"loc": ["body", "requestId"], "msg": "taken"}]}, "requestId: taken"),
        ({"errors": {"requestId": ["taken"]}}, "requestId: taken"),
        ({"errors": [{"title": "a"}, {"title": "b"}]}, "a; b"),
        ({"code": "DUPLICATE_ORDER"}, "DUPLICATE_ORDER"),
        ({"message": "the prompt is empty", "field": "prompt"}, "the prompt is empty"),
        ("plain", "plain"),
        ({"code": 7}, ""),
    ],
)
def test_reason_is_read_from_any_plausible_shape(body: Any, reason: str) -> None:
    """Error bodies are not specified."""
    assert reason_in(body) == reason


def test_deep_nesting_is_harmless() -> None:
    deep: Any = "deep"
    for _ in range(100_000):
        deep = {"error": deep}
    assert reason_in(deep) == "" and scrubbed(deep) is None
