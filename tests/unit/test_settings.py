"""The settings: each in `.env.example`, refused by name and never by value, and masked wherever they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.addresses import service_identity
from patternmill.env_file import variable
from patternmill.errors import ConfigurationError
from patternmill.parameters import RowLimit
from patternmill.passwords import MASK, mask_passwords, passwords_in
from patternmill.profiles import Profile
from patternmill.settings import Settings, load_settings

pytestmark = pytest.mark.usefixtures("folder")
EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"
SECRETS = {"api_key", "ledger_url"}
CANARY = "canary-7f3a"
#: A value that each field refuses.
MALFORMED = {
    "profiles": f"not JSON {CANARY}",
    "environment": f"{CANARY} !",
    "max_in_flight": CANARY,
    "request_timeout": CANARY,
    "job_timeout": CANARY,
    "create_timeout": CANARY,
    "in_doubt_limit": CANARY,
    "attempts": "0",
    "currency": CANARY,
    "pattern_price": "-1",
    "product_price": "1.5",
    "refinement_price": "-1",
    "day_budget": CANARY,
    "confirm_above": CANARY,
    "approve_above_items": "-1",
    "approve_above_cost": CANARY,
    "final_reasons": f"not JSON {CANARY}",
    "out_below": "https://canary-7f3a/x",
    "sources": f"not JSON {CANARY}",
    "ledger_url": f"host=db password={CANARY}",
    "dask": f"tcp://{CANARY}:8786",
    "confirm": f"{CANARY} !",
    "retire_at_most": f"20,{CANARY}",
    "change_at_most": f"20,{CANARY}",
}
#: Fields that take any text.
ANYTHING = {"home", "operations_file"}
#: More values that are refused, and would otherwise fail only after the first purchases.
FAIL_LATER = [
    ("final_reasons", '["broken", "(canary-7f3a"]'),
    ("final_reasons", '["canary-7f3a", " "]'),
    *((field, "PT0S") for field in ("request_timeout", "job_timeout", "create_timeout", "in_doubt_limit")),
    ("job_timeout", "-PT1H"),
    # No sum could hold them.
    *((field, str(2**63)) for field in ("pattern_price", "day_budget")),
    ("ledger_url", "postgresql:canary-7f3a"),
    ("ledger_url", "sqlite://canary-7f3a"),
    ("ledger_url", "mysql://u:canary-7f3a@h/d"),
    ("ledger_url", "postgresql://u:canary-7f3a@[bad/ledger"),
    ("retire_at_most", "110%"),
    ("sources", '{"shop": "", "other": "canary-7f3a"}'),
    ("sources", '{" ": "canary-7f3a"}'),
    ("sources", '{"https://canary-7f3a": "spring.csv"}'),
    ("sources", '["canary-7f3a"]'),
    ("sources", '{"shop": {"address": "https://h/x.csv", "token": "canary-7f3a"}}'),
    ("sources", '{"shop": {"address": "https://h/x.csv", "bearer": "canary-7f3a\\n"}}'),
    ("sources", '{"shop": {"address": "http://h/x.csv", "bearer": "canary-7f3a"}}'),
    ("sources", '{"shop": {"address": "https://a:b@h/x.csv", "bearer": "canary-7f3a"}}'),
    ("sources", '{"a": "https://h/x.csv", "b": {"address": "https://h/x.csv", "bearer": "canary-7f3a"}}'),
]


def example() -> dict[str, tuple[str, str]]:
    """Return, by variable, the line before it and what it is set to."""
    settings: dict[str, tuple[str, str]] = {}
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        match = re.fullmatch(r"#(PATTERNMILL_\w+)=(.*)", line)
        if match:
            assert match.group(1) not in settings, "each variable once"
            settings[match.group(1)] = (before, match.group(2))
    return settings


def test_example_explains_every_setting_and_sets_nothing() -> None:
    """There is one line before each; a copy of the file changes nothing, and holds no secret."""
    for before, _ in example().values():
        assert re.fullmatch(r"# \S.{10,}[.:}]", before) and "=" not in before.split()[1]
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    assert all(example()[variable(field)][1] == "" for field in SECRETS)


def test_example_shows_every_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set to the example's value, a setting equals its default; set to nothing, it is not set."""
    defaults = load_settings()
    for field in Settings.model_fields:
        default, value = getattr(defaults, field), example()[variable(field)][1]
        for text in (value, "") if value else ("",):
            monkeypatch.setenv(variable(field), text)
            assert getattr(load_settings(), field) == default, field
        assert bool(value) is (default is not None), field


def test_amounts_are_money_in_the_currency(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("CURRENCY", " eur "), ("PATTERN_PRICE", "€10"), ("DAY_BUDGET", "500.00")):
        monkeypatch.setenv(f"PATTERNMILL_{name}", text)
    settings = load_settings()
    assert (settings.currency, settings.pattern_price, settings.day_budget) == ("EUR", 1000, 50000)
    monkeypatch.setenv("PATTERNMILL_DAY_BUDGET", "500")
    with pytest.raises(ConfigurationError, match=r"DAY_BUDGET: may be €500\.00 or €5\.00: write which"):
        load_settings()


def test_every_setting_is_known_to_these_tests() -> None:
    """A new one needs a value that it refuses."""
    assert set(MALFORMED) | ANYTHING == set(Settings.model_fields)


@pytest.mark.parametrize(("field", "value"), [*MALFORMED.items(), *FAIL_LATER])
def test_unusable_value_is_refused_at_once(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is spent, by the name; its value, perhaps a secret in the wrong place, is not shown."""
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
        ("confirm", "duplicates, production"),
        *((field, str(10**11)) for field in ("pattern_price", "day_budget")),
    ],
)
def test_valid_value_is_accepted(field: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have any form that its reader accepts."""
    monkeypatch.setenv(variable(field), value)
    settings = load_settings()
    RowLimit.parse(settings.retire_at_most)
    assert getattr(settings, field) != Settings.model_fields[field].default


def test_settings_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"PATTERNMILL_CURRENCY=\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"\.env: cannot be read"):
        load_settings()


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("http://localhost:8123/v1", "http://127.0.0.1:8123/v1", True),
        ("http://[::1]:8123/v1", "http://LOCALHOST.:8123/v1/", True),
        ("http://127.0.0.1:8123/v1", "http://[::ffff:127.0.0.1]:8123/v1", True),
        ("https://Studio.Example./v1", "https://studio.example:443/v1/", True),
        ("http://studio.example:80/v1", "https://studio.example/v1", True),
        ("https://stüdio.example/v1", "https://xn--stdio-lva.example/v1", True),
        ("https://studio.example/v1", "https://studio.example/v2", False),
        ("https://studio.example/v1", "https://studio.example/v%31", False),
        ("https://studio.example/v1", "https://studio.example:8443/v1", False),
        ("https://studio.example/v1", "http://localhost/v1", False),
    ],
)
def test_addresses_of_one_service(one: str, other: str, are_same: bool) -> None:
    """Names of this machine, case, default ports and slashes are no other service; path and port are."""
    assert (service_identity(one) == service_identity(other)) is are_same


def test_all_errors_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in ("attempts", "day_budget", "retire_at_most"):
        monkeypatch.setenv(variable(field), MALFORMED[field])
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert all(variable(field) in str(caught.value) for field in ("attempts", "day_budget", "retire_at_most"))


def test_secrets_are_masked() -> None:
    """They are masked however the settings are printed."""
    found = load_settings(
        profiles={"staging": Profile(url="https://studio.example/v1", key=SecretStr(CANARY))},
        ledger_url=f"postgresql://user:{CANARY}@host/db",
        sources={
            "shop": f"https://host/x.csv?{CANARY}",
            "linens": {"address": "https://host/y.csv", "bearer": "canary-of-linens"},
        },
    )
    assert CANARY not in f"{found!r} {found} {found.model_dump()} {found.model_dump_json()}"
    assert {CANARY, "canary-of-linens"} <= found.secrets()
    assert "canary-of-linens" not in f"{found!r} {found.model_dump_json()}"
    bearers = [
        found.bearer_of(address) for address in ("https://host/y.csv", "https://host/y.csv?x", "y.csv")
    ]
    assert [one and one.get_secret_value() for one in bearers] == ["canary-of-linens", None, None]


def test_option_wins_over_the_environment_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The order is the command line, the environment, then `.env`; None is no option."""
    (tmp_path / ".env").write_text("PATTERNMILL_MAX_IN_FLIGHT=3\nPATTERNMILL_CONFIRM_ABOVE=7\nOTHER=1\n")
    assert load_settings().max_in_flight == 3
    monkeypatch.setenv(variable("max_in_flight"), "4")
    assert load_settings(max_in_flight=None).max_in_flight == 4
    assert load_settings(max_in_flight=5).max_in_flight == 5
    assert load_settings().confirm_above == 7


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
    """It is masked with the address in a message, and alone, as written or decoded."""
    for text in (address, f"cannot use {address}.", *(f"<{password}>" for password in passwords_in(address))):
        masked = mask_passwords(text, address)
        assert CANARY not in masked and MASK in masked
    assert "host" in mask_passwords(address) or "PASSWORD" in address
