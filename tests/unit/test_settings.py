"""The settings: each in `.env.example`, refused by name and never by value, and masked wherever they are printed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from patternmill.errors import ConfigurationError
from patternmill.settings import MASK, PREFIX, Settings, load_settings, mask_passwords, passwords_in

EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"
#: Set by the command line for itself; not for a person.
INTERNAL = {"embedded"}
FIELDS = sorted(set(Settings.model_fields) - INTERNAL)
SECRETS = {"api_key", "ledger_url"}
CANARY = "canary-7f3a"
#: A value that each field refuses.
MALFORMED = {
    "studio_url": f"ftp://{CANARY}",
    "api_key": f"{CANARY}\n",
    "environment": f"{CANARY} !",
    "max_in_flight": f"{CANARY}",
    "create_rate": f"{CANARY}",
    "poll_rate": "0",
    "request_timeout": f"{CANARY}",
    "job_timeout": f"{CANARY}",
    "create_timeout": f"{CANARY}",
    "in_doubt_limit": f"{CANARY}",
    "attempts": "0",
    "prompt_limit": f"{CANARY}",
    "pattern_price": "-1",
    "product_price": "1.5",
    "day_budget": f"{CANARY}",
    "confirm_above": f"{CANARY}",
    "approve_above_items": "-1",
    "approve_above_cost": f"{CANARY}",
    "approval_timeout": "PT1S",
    "embedded": f"{CANARY}",
    "shard_rows": "2501",
    "final_reasons": f"not JSON {CANARY}",
    "sources": f"not JSON {CANARY}",
    "source_folders": f"not JSON {CANARY}",
    "ledger_url": f"host=db password={CANARY}",
    "environment_urls": f"not JSON {CANARY}",
}
#: Fields that take any text.
ANYTHING = {"home", "confirm", "retire_at_most"}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable and no `.env` of the machine's."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def variable(field: str) -> str:
    return PREFIX + field.upper()


def example() -> dict[str, tuple[str, str]]:
    """By variable: the line before it, and what it is set to."""
    found: dict[str, tuple[str, str]] = {}
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        match = re.fullmatch(r"#(PATTERNMILL_\w+)=(.*)", line)
        if match:
            assert match.group(1) not in found, "each variable once"
            found[match.group(1)] = (before, match.group(2))
    return found


def test_the_example_names_every_setting_and_no_other() -> None:
    """In the order of the code."""
    assert list(example()) == [variable(name) for name in Settings.model_fields if name not in INTERNAL]


@pytest.mark.parametrize("field", FIELDS)
def test_every_setting_is_explained(field: str) -> None:
    """One line before it."""
    before, _ = example()[variable(field)]
    assert re.fullmatch(r"# \S.{10,}[.:}]", before) and "=" not in before.split()[1]


def test_nothing_in_the_example_is_set() -> None:
    """A copy of it changes nothing, and holds no secret."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    assert all(example()[variable(field)][1] == "" for field in SECRETS)


@pytest.mark.parametrize("field", FIELDS)
def test_the_example_shows_the_default(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to what the example says, a setting is what it is without."""
    value = example()[variable(field)][1]
    if value:
        monkeypatch.setenv(variable(field), value)
    assert getattr(load_settings(), field) == Settings.model_fields[field].get_default(
        call_default_factory=True, validated_data={}
    )
    assert bool(value) is (getattr(load_settings(), field) is not None)


def test_every_setting_is_known_to_these_tests() -> None:
    """A new one needs a value that it refuses."""
    assert set(MALFORMED) | ANYTHING == set(Settings.model_fields)


@pytest.mark.parametrize("field", sorted(MALFORMED))
def test_what_is_malformed_is_refused_by_name_alone(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named; its value, which may be a secret in the wrong place, is not shown."""
    monkeypatch.setenv(variable(field), MALFORMED[field])
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert variable(field) in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.__cause__!r}"


def test_all_that_is_wrong_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody mends one setting a try."""
    for field in ("attempts", "shard_rows", "api_key"):
        monkeypatch.setenv(variable(field), MALFORMED[field])
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert all(variable(field) in str(caught.value) for field in ("attempts", "shard_rows", "api_key"))


@pytest.mark.parametrize("key", ["a b", "a\nb", "a\r\n", "\tab", "ab ", "schlüssel", "a\x00"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    """Refused before anything is asked."""
    with pytest.raises(ConfigurationError, match="PATTERNMILL_API_KEY"):
        load_settings(api_key=key)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:pass@studio.example/v1",
        "https://user@studio.example/v1",
        "studio.example/v1",
        "file:///etc/passwd",
        "https:///v1",
        "https://studio.example/v1?key=1",
        "https://studio.example/v1#x",
    ],
)
def test_an_address_that_is_not_one(url: str) -> None:
    """No other schemes, and no password where a log would show it."""
    with pytest.raises(ConfigurationError, match="PATTERNMILL_STUDIO_URL") as caught:
        load_settings(studio_url=url)
    assert "pass@" not in str(caught.value)


def test_an_address_ends_without_a_slash() -> None:
    """One spelling, so that paths can be added."""
    assert load_settings(studio_url="https://studio.example/v1/").studio_url == "https://studio.example/v1"


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_left_empty_is_not_set(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line in `.env` is no value."""
    default = getattr(load_settings(), field)
    monkeypatch.setenv(variable(field), "")
    assert getattr(load_settings(), field) == default


def test_settings_cannot_be_changed() -> None:
    """They are values, read once."""
    with pytest.raises(ValidationError):
        setattr(load_settings(), "attempts", 3)  # noqa: B010


def test_secrets_are_masked() -> None:
    """However the settings are printed."""
    found = load_settings(
        api_key=CANARY,
        ledger_url=f"postgresql://user:{CANARY}@host/db",
        sources={"shop": f"https://host/x.csv?{CANARY}"},
    )
    assert CANARY not in f"{found!r} {found} {found.model_dump()} {found.model_dump_json()}"
    assert found.api_key is not None and found.api_key.get_secret_value() == CANARY


def test_what_is_given_wins_over_the_environment_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command line, then the environment, then `.env`; None is not given."""
    (tmp_path / ".env").write_text("PATTERNMILL_ATTEMPTS=3\nPATTERNMILL_SHARD_ROWS=7\nPATTERNMILL_OTHER=1\n")
    assert load_settings().attempts == 3
    monkeypatch.setenv(variable("attempts"), "4")
    assert load_settings(attempts=None).attempts == 4
    assert load_settings(attempts=5).attempts == 5
    assert load_settings().shard_rows == 7


def test_the_address_of_the_environment_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken from the list where none is given; one that belongs to another environment is refused."""
    urls = {"staging": "https://staging.example/v1/", "production": "https://studio.example/v1"}
    monkeypatch.setenv(variable("environment_urls"), json.dumps(urls))
    assert load_settings(environment="staging").studio_url == "https://staging.example/v1"
    assert load_settings(environment="production").studio_url == "https://studio.example/v1"
    with pytest.raises(ConfigurationError, match="belongs to the environment 'production'"):
        load_settings(environment="staging", studio_url="https://studio.example/v1/")
    assert load_settings(environment="other", studio_url="https://else.example/v1").environment == "other"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://mill:{CANARY}@host/db",
        f"postgresql://mill:a@b{CANARY}@host/db",
        f"postgresql://mill:a/b?{CANARY}@host/db",
        f"postgresql://mill:%21{CANARY}@host/db",
        f"postgresql://host/db?user=mill&password={CANARY}&x=y",
        f"postgresql://host/db?sslpassword={CANARY}",
        f"host=db password={CANARY} dbname=x",
        f"host=db password = '{CANARY} x' dbname=x",
        f"PASSWORD='{CANARY}",
    ],
)
def test_password_is_masked_in_every_form_of_an_address(address: str) -> None:
    """Where the address stands in a message, and where its password stands alone, as written or decoded."""
    for text in (address, f"cannot use {address}.", *(f"<{password}>" for password in passwords_in(address))):
        masked = mask_passwords(text, address)
        assert CANARY not in masked and MASK in masked
    assert "host" in mask_passwords(address) or "PASSWORD" in address


@pytest.mark.parametrize("address", [f"host=db password={CANARY}", f"{CANARY}:x", f"mysql://u:{CANARY}@h/d"])
def test_ledger_address_of_another_form_is_refused_unread(address: str) -> None:
    """With how it should begin, and without any part of it."""
    with pytest.raises(ConfigurationError, match="postgresql://") as refused:
        load_settings(ledger_url=address)
    assert CANARY not in str(refused.value)
