"""The settings: each in `.env.example`, refused by name and never by value, and masked wherever they are printed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from patternmill.addresses import service_identity
from patternmill.errors import ConfigurationError
from patternmill.parameters import RetireLimit
from patternmill.passwords import MASK, mask_passwords, passwords_in
from patternmill.settings import (
    PREFIX,
    Settings,
    load_settings,
    with_service,
)

EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"
#: Set by the command line for itself; not for a person.
INTERNAL = {"embedded"}
FIELDS = sorted(set(Settings.model_fields) - INTERNAL)
SECRETS = {"api_key", "ledger_url", "approval_code"}
CANARY = "canary-7f3a"
#: A value that each field refuses.
MALFORMED = {
    "studio_url": f"ftp://{CANARY}",
    "api_key": f"{CANARY}\n",
    "api_keys": f'{{"staging": "{CANARY} {CANARY}"}}',
    "plain_http": f'{{"{CANARY}": 1}}',
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
    "currency": CANARY,
    "pattern_price": "-1",
    "product_price": "1.5",
    "refinement_price": "-1",
    "reference_price": "1.5",
    "model": CANARY * 50,
    "day_budget": f"{CANARY}",
    "confirm_above": f"{CANARY}",
    "approve_above_items": "-1",
    "approve_above_cost": f"{CANARY}",
    "approval_code": f"sha256:{CANARY}",
    "approval_timeout": "PT1S",
    "embedded": f"{CANARY}",
    "shard_rows": "2501",
    "item_task_runs_up_to": "-1",
    "final_reasons": f"not JSON {CANARY}",
    "sources": f"not JSON {CANARY}",
    "source_folders": f"not JSON {CANARY}",
    "ledger_url": f"host=db password={CANARY}",
    "environment_urls": f"not JSON {CANARY}",
    "confirm": f"{CANARY} !",
    "retire_at_most": f"20,{CANARY}",
    "same_service": f'["ftp://{CANARY}"]',
}
#: Fields that take any text.
ANYTHING = {"home", "operations_file"}
#: More that would fail later, after the first purchases.
FAIL_LATER = [
    ("final_reasons", '["broken", "(canary-7f3a"]'),
    ("final_reasons", '["canary-7f3a", " "]'),
    ("final_reasons", '["(?P<a>x)(?P<a>canary-7f3a)"]'),
    *((field, "PT0S") for field in ("request_timeout", "job_timeout", "create_timeout", "in_doubt_limit")),
    *((field, "-PT1H") for field in ("request_timeout", "job_timeout", "create_timeout", "in_doubt_limit")),
    *((field, value) for field in ("create_rate", "poll_rate") for value in ("inf", "nan", "-1")),
    ("studio_url", "http://canary-7f3a:99999/v1"),
    ("studio_url", "http://canary-7f3a:port/v1"),
    ("studio_url", "http://[canary-7f3a/v1"),
    ("studio_url", "http://user:canary-7f3a\u2100@host/v1"),
    ("studio_url", "http://canary-7f3a /v1"),
    ("studio_url", "http://canary-7f3a\n/v1"),
    ("ledger_url", "postgresql:canary-7f3a"),
    ("ledger_url", " postgresql://canary-7f3a"),
    ("ledger_url", "sqlite://canary-7f3a"),
    ("ledger_url", "canary-7f3a"),
    ("ledger_url", "postgresql://u:canary-7f3a@[bad/ledger"),
    ("retire_at_most", "10 %, canary-7f3a"),
    ("retire_at_most", "110%"),
    ("sources", '{"shop": "", "other": "canary-7f3a"}'),
    ("sources", '{" ": "canary-7f3a"}'),
    ("sources", '{"https://canary-7f3a": "spring.csv"}'),
    ("environment_urls", '{"staging": ""}'),
    ("environment_urls", '{"Canary-7f3a !": "http://host/v1"}'),
    ("environment_urls", '{"staging": "http://u:canary-7f3a@host/v1"}'),
    ("environment_urls", '{"staging": "http://localhost:9/v1", "other": "http://127.0.0.1:9/v1/"}'),
    ("same_service", '[["http://host/v1", "http://u:canary-7f3a@host/v1"]]'),
]


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


def test_example_has_exactly_the_settings() -> None:
    """In the order of the code."""
    assert list(example()) == [variable(name) for name in Settings.model_fields if name not in INTERNAL]


@pytest.mark.parametrize("field", FIELDS)
def test_every_setting_is_explained(field: str) -> None:
    """One line before it."""
    before, _ = example()[variable(field)]
    assert re.fullmatch(r"# \S.{10,}[.:}]", before) and "=" not in before.split()[1]


def test_example_sets_nothing() -> None:
    """A copy of it changes nothing, and holds no secret."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    assert all(example()[variable(field)][1] == "" for field in SECRETS)


@pytest.mark.parametrize("field", FIELDS)
def test_example_shows_the_default(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to the example's value, a setting equals its default."""
    value = example()[variable(field)][1]
    if value:
        monkeypatch.setenv(variable(field), value)
    assert getattr(load_settings(), field) == Settings.model_fields[field].get_default(
        call_default_factory=True, validated_data={}
    )
    assert bool(value) is (getattr(load_settings(), field) is not None)


def test_currency_is_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any case; anything else is refused before anything is bought."""
    monkeypatch.setenv("PATTERNMILL_CURRENCY", " eur ")
    assert load_settings().currency == "EUR"
    monkeypatch.setenv("PATTERNMILL_CURRENCY", "EURO")
    with pytest.raises(ConfigurationError, match="PATTERNMILL_CURRENCY: must be a currency's ISO 4217 code"):
        load_settings()


def test_every_setting_is_known_to_these_tests() -> None:
    """A new one needs a value that it refuses."""
    assert set(MALFORMED) | ANYTHING == set(Settings.model_fields)


@pytest.mark.parametrize("field", sorted(MALFORMED))
def test_malformed_value_is_refused_by_name_alone(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named; its value, which may be a secret in the wrong place, is not shown."""
    monkeypatch.setenv(variable(field), MALFORMED[field])
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert variable(field) in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.__cause__!r}"


@pytest.mark.parametrize(("field", "value"), FAIL_LATER)
def test_unusable_value_is_refused_at_once(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is spent, by the variable's name, and without its value."""
    monkeypatch.setenv(variable(field), value)
    with pytest.raises(ConfigurationError, match=variable(field)) as caught:
        load_settings()
    assert CANARY not in f"{caught.value} {caught.value.__cause__!r}".lower()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("final_reasons", '["broken( loom)?", "^no "]'),
        ("ledger_url", "postgres://user:p%20w@host:5432/db?sslmode=require"),
        ("ledger_url", "postgresql:///ledger?host=/run/postgresql"),
        ("ledger_url", "sqlite:///ledger.sqlite3"),
        ("retire_at_most", "20"),
        ("retire_at_most", "10.5% and 3"),
        ("same_service", '["http://old/v1", "https://new/v1"]'),
        ("confirm", "duplicates, production"),
    ],
)
def test_valid_value_is_accepted(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every form that its reader accepts."""
    monkeypatch.setenv(variable(field), value)
    found = load_settings()
    RetireLimit.parse(found.retire_at_most)
    assert getattr(found, field) != Settings.model_fields[field].default


def test_settings_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"PATTERNMILL_HOME=\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"\.env: cannot be read"):
        load_settings()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://localhost:8123/v1", "http://127.0.0.1:8123/v1"),
        ("http://[::1]:8123/v1", "http://LOCALHOST.:8123/v1/"),
        ("http://127.0.0.1:8123/v1", "http://[::ffff:127.0.0.1]:8123/v1"),
        ("https://Studio.Example./v1", "https://studio.example:443/v1/"),
        ("http://studio.example:80/v1", "https://studio.example/v1"),
        ("https://stüdio.example/v1", "https://xn--stdio-lva.example/v1"),
    ],
)
def test_addresses_of_one_service(one: str, other: str) -> None:
    """Names of this machine, case, default ports and slashes are no other service."""
    assert service_identity(one) == service_identity(other)


@pytest.mark.parametrize(
    "other",
    [
        "https://studio.example/V1",
        "https://studio.example/v2",
        "https://studio.example/v%31",
        "https://studio.example:8443/v1",
        "https://other.example/v1",
        "http://localhost/v1",
    ],
)
def test_addresses_of_two_services(other: str) -> None:
    """Path and port make a difference."""
    assert service_identity(other) != service_identity("https://studio.example/v1")


@pytest.mark.parametrize(
    ("url", "key"), [("http://u:canary-7f3a@host/v1", None), (None, SecretStr("canary-7f3a\n"))]
)
def test_address_and_key_of_prefect_are_checked_alike(url: str | None, key: SecretStr | None) -> None:
    """A block and a variable are typed by people too."""
    with pytest.raises(ConfigurationError, match="that Prefect has for 'staging'") as caught:
        with_service(load_settings(), url, key)
    assert CANARY not in f"{caught.value}"
    found = with_service(load_settings(), "https://studio.example/v1/", SecretStr("key"))
    assert found.studio_url == "https://studio.example/v1"
    urls = {"production": "https://studio.example/v1", "staging": "https://staging.example/v1"}
    with pytest.raises(ConfigurationError, match="belongs to the environment 'production'"):
        with_service(load_settings(environment_urls=urls), "https://STUDIO.example:443/v1", None)


def test_declared_names_of_one_service() -> None:
    """One list, or a list of lists."""
    one = load_settings(same_service=["https://old.example/v1", "https://new.example/v1"])
    assert one.service_at("http://OLD.example/v1/") == one.service_at("https://new.example/v1")
    assert one.service_at("https://third.example/v1") == "third.example/v1"
    two = load_settings(same_service=[["http://a/v1", "http://b/v1"], ["http://c/v1", "http://d/v1"]])
    assert two.service_at("http://a/v1") == two.service_at("http://b/v1") != two.service_at("http://d/v1")


def test_all_errors_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in ("attempts", "shard_rows", "api_key"):
        monkeypatch.setenv(variable(field), MALFORMED[field])
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert all(variable(field) in str(caught.value) for field in ("attempts", "shard_rows", "api_key"))


@pytest.mark.parametrize("key", ["a b", "a\nb", "a\r\n", "\tab", "ab ", "schlüssel", "a\x00"])
def test_key_that_no_header_can_carry_is_refused(key: str) -> None:
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
def test_invalid_address_is_refused(url: str) -> None:
    """No other schemes, and no password where a log would show it."""
    with pytest.raises(ConfigurationError, match="PATTERNMILL_STUDIO_URL") as caught:
        load_settings(studio_url=url)
    assert "pass@" not in str(caught.value)


def test_address_ends_without_a_slash() -> None:
    """One spelling, so that paths can be added."""
    assert load_settings(studio_url="https://studio.example/v1/").studio_url == "https://studio.example/v1"


@pytest.mark.parametrize("field", FIELDS)
def test_empty_value_is_not_set(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line in `.env` is no value."""
    default = getattr(load_settings(), field)
    monkeypatch.setenv(variable(field), "")
    assert getattr(load_settings(), field) == default


def test_settings_are_frozen() -> None:
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


def test_option_wins_over_the_environment_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The command line, then the environment, then `.env`; None is no option."""
    (tmp_path / ".env").write_text("PATTERNMILL_ATTEMPTS=3\nPATTERNMILL_SHARD_ROWS=7\nPATTERNMILL_OTHER=1\n")
    assert load_settings().attempts == 3
    monkeypatch.setenv(variable("attempts"), "4")
    assert load_settings(attempts=None).attempts == 4
    assert load_settings(attempts=5).attempts == 5
    assert load_settings().shard_rows == 7


def test_address_is_taken_from_the_list_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is set; one that belongs to another environment is refused."""
    urls = {"staging": "https://staging.example/v1/", "production": "https://studio.example/v1"}
    monkeypatch.setenv(variable("environment_urls"), json.dumps(urls))
    assert load_settings(environment="staging").studio_url == "https://staging.example/v1"
    assert load_settings(environment="production").studio_url == "https://studio.example/v1"
    with pytest.raises(ConfigurationError, match="belongs to the environment 'production'"):
        load_settings(environment="staging", studio_url="https://studio.example/v1/")
    assert load_settings(environment="other", studio_url="https://else.example/v1").environment == "other"


@pytest.mark.parametrize("field", ["pattern_price", "product_price", "day_budget", "approve_above_cost"])
def test_amount_that_no_sum_could_hold_is_refused(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is spent, by the variable's name; large currencies are not."""
    name = PREFIX + field.upper()
    monkeypatch.setenv(name, str(10**11))
    assert getattr(load_settings(), field) == 10**11
    monkeypatch.setenv(name, str(2**63))
    with pytest.raises(ConfigurationError, match=f"{name}: Input should be less than or equal to 1000"):
        load_settings()


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
    """With the address in a message, and with its password alone, as written or decoded."""
    for text in (address, f"cannot use {address}.", *(f"<{password}>" for password in passwords_in(address))):
        masked = mask_passwords(text, address)
        assert CANARY not in masked and MASK in masked
    assert "host" in mask_passwords(address) or "PASSWORD" in address


@pytest.mark.parametrize("address", [f"host=db password={CANARY}", f"{CANARY}:x", f"mysql://u:{CANARY}@h/d"])
def test_ledger_address_of_another_form_is_refused(address: str) -> None:
    """With how it should begin, and without any part of it."""
    with pytest.raises(ConfigurationError, match="postgresql://") as refused:
        load_settings(ledger_url=address)
    assert CANARY not in str(refused.value)
