"""A key goes where its owner sends it: by environment, by address, and not in the clear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patternmill.errors import ConfigurationError
from patternmill.key_memory import KEY_MEMORY
from patternmill.service.studio_api import StudioApi
from patternmill.settings import Settings, load_settings, with_service

ONE, OTHER = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
URLS = json.dumps({"staging": ONE, "production": OTHER})
KEYS = json.dumps({"staging": "sk_staging", "production": "sk_production"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and nothing set."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def export(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)


def key_of(settings: Settings) -> str | None:
    return settings.api_key.get_secret_value() if settings.api_key else None


@pytest.mark.parametrize("line", [f"PATTERNMILL_STUDIO_URL={ONE}", f"PATTERNMILL_ENVIRONMENT_URLS='{URLS}'"])
def test_address_of_the_folder_gets_no_key_from_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Its author would get it."""
    (folder / ".env").write_text(line + "\n")
    export(monkeypatch, API_KEY="sk_exported")
    with pytest.raises(ConfigurationError, match="any folder could have it sent anywhere") as refused:
        load_settings()
    assert "sk_exported" not in str(refused.value)


def test_address_and_key_of_one_source_are_accepted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both in the file, both exported, or an exported address before the file's."""
    (folder / ".env").write_text(f"PATTERNMILL_STUDIO_URL={ONE}\nPATTERNMILL_API_KEY=sk_file\n")
    assert key_of(load_settings()) == "sk_file"
    export(monkeypatch, STUDIO_URL=OTHER)
    assert load_settings().studio_url == OTHER
    export(monkeypatch, API_KEY="sk_exported")
    assert key_of(load_settings()) == "sk_exported"


def test_each_environment_has_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the environment is named."""
    export(monkeypatch, ENVIRONMENT_URLS=URLS, API_KEYS=KEYS)
    assert key_of(load_settings()) == "sk_staging"
    assert key_of(load_settings(environment="production")) == "sk_production"


def test_plain_key_is_of_the_configured_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Staging's key never reaches production's host."""
    export(monkeypatch, ENVIRONMENT_URLS=URLS, API_KEY="sk_staging")
    assert key_of(load_settings()) == "sk_staging"
    with pytest.raises(ConfigurationError, match="the key of 'staging', and 'production' is named"):
        load_settings(environment="production")
    export(monkeypatch, ENVIRONMENT="production")
    assert load_settings().studio_url == OTHER


@pytest.mark.parametrize("keys", ['{"staging": ""}', '{"staging": "a b"}', '{"Sta ging": "k"}', "[]"])
def test_unusable_keys_are_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch, keys: str) -> None:
    """By the name of the variable."""
    export(monkeypatch, STUDIO_URL=ONE, API_KEYS=keys)
    with pytest.raises(ConfigurationError, match="PATTERNMILL_API_KEYS") as refused:
        load_settings()
    assert "a b" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("https://studio.example/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:80/v1", True),
        ("http://studio.example/v1", False),
        ("http://10.0.0.5/v1", False),
        ("http://127.0.0.1.studio.example/v1", False),
    ],
)
def test_key_is_sent_to_other_machines_encrypted(
    monkeypatch: pytest.MonkeyPatch, url: str, fine: bool
) -> None:
    """Or a setting declares the network as private."""
    export(monkeypatch, STUDIO_URL=url, API_KEY="sk_key")
    if not fine:
        with pytest.raises(ConfigurationError, match="without encryption"):
            load_settings()
        host = url.removeprefix("http://").partition("/")[0]
        export(monkeypatch, PLAIN_HTTP=json.dumps([host]))
    assert load_settings().studio_url == url


def test_key_is_not_sent_to_a_new_address_without_confirmation(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first service is remembered; two addresses of one service, and pairs from one source, are accepted."""
    export(monkeypatch, STUDIO_URL=ONE, API_KEY="sk_key")
    for _ in range(2):
        StudioApi.from_settings(load_settings())
    export(monkeypatch, STUDIO_URL=ONE.replace("127.0.0.1", "localhost"))
    StudioApi.from_settings(load_settings())
    export(monkeypatch, STUDIO_URL=OTHER)
    with pytest.raises(ConfigurationError, match=r"never with http://127\.0\.0\.1:2") as refused:
        StudioApi.from_settings(load_settings())
    assert "sk_key" not in str(refused.value)
    memory = folder / ".patternmill" / KEY_MEMORY
    assert memory.stat().st_mode & 0o077 == 0
    assert "sk_key" not in memory.read_text()
    export(monkeypatch, SAME_SERVICE=json.dumps([ONE, OTHER]))
    StudioApi.from_settings(load_settings())
    monkeypatch.delenv("PATTERNMILL_SAME_SERVICE")
    monkeypatch.delenv("PATTERNMILL_STUDIO_URL")
    export(monkeypatch, ENVIRONMENT_URLS=json.dumps({"staging": OTHER}), API_KEYS='{"staging": "sk_key"}')
    StudioApi.from_settings(load_settings())


def test_address_of_a_prefect_variable_gets_no_key_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody who may write a Variable would get it."""
    export(monkeypatch, API_KEY="sk_worker")
    with pytest.raises(ConfigurationError, match="from the Prefect server"):
        with_service(load_settings(), ONE, None)
