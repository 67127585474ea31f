"""A key goes where its owner sends it: with the address of its own source, and not in the clear."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from patternmill.errors import ConfigurationError
from patternmill.profiles import PROFILES_FILE
from patternmill.settings import Settings, load_settings, with_service

ONE, OTHER, EVIL = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", "http://127.0.0.1:666/v1"
#: A user who is not this one.
STRANGER = 65_533
pytestmark = pytest.mark.usefixtures("folder")
by_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")


def export(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)


def pair_of(settings: Settings) -> tuple[str, str] | None:
    profile = settings.service
    return (profile.url, profile.key.get_secret_value()) if profile else None


def profiles(**urls: str) -> str:
    return json.dumps({name: {"url": url, "key": f"sk_{name}"} for name, url in urls.items()})


def home_file(folder: Path, url: str = ONE, mode: int = 0o600) -> Path:
    path = folder / ".patternmill" / PROFILES_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'[production]\nurl = "{url}"\nkey = "sk_home"\n')
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "lines",
    [
        f"PATTERNMILL_STUDIO_URL={EVIL}",
        f"patternmill_studio_url={EVIL}",
        f"PATTERNMILL_STUDIO_URL={EVIL}\nPATTERNMILL_API_KEY=sk_file",
        "",
    ],
)
def test_address_of_the_folder_gets_no_key_from_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    """Its author would get it. Half a pair is none, and does not go to the embedded studio instead."""
    (folder / ".env").write_text(lines + "\n")
    export(monkeypatch, API_KEY="sk_exported")
    with pytest.raises(ConfigurationError, match="any folder could have the key sent anywhere") as refused:
        load_settings()
    assert "sk_exported" not in str(refused.value)


def test_exported_address_takes_no_key_of_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text(f"PATTERNMILL_STUDIO_URL={ONE}\nPATTERNMILL_API_KEY=sk_file\n")
    assert pair_of(load_settings()) == (ONE, "sk_file")
    export(monkeypatch, STUDIO_URL=OTHER)
    with pytest.raises(ConfigurationError, match="PATTERNMILL_API_KEY is not"):
        load_settings()
    export(monkeypatch, API_KEY="sk_exported")
    assert pair_of(load_settings()) == (OTHER, "sk_exported")


@pytest.mark.parametrize("text", ["$PATTERNMILL_API_KEY", "${SECRET}", "${PATTERNMILL_PROFILES}"])
def test_folder_does_not_name_a_secret_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A variable is not interpolated: what is written there is the key."""
    (folder / ".env").write_text(f"PATTERNMILL_STUDIO_URL={EVIL}/x\nPATTERNMILL_API_KEY='{text}'\n")
    monkeypatch.setenv("SECRET", "sk_exported")
    assert pair_of(load_settings()) == (f"{EVIL}/x", text)


def test_file_in_the_home_has_several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count beside the plain pair, which is of the environment that is set; a name has one profile."""
    home_file(folder)
    assert pair_of(load_settings("production")) == (ONE, "sk_home")
    export(monkeypatch, STUDIO_URL=OTHER, API_KEY="sk_pair")
    assert pair_of(load_settings()) == (OTHER, "sk_pair")
    assert pair_of(load_settings("production")) == (ONE, "sk_home")
    export(monkeypatch, ENVIRONMENT="production")
    with pytest.raises(ConfigurationError, match="'production' has two profiles"):
        load_settings()
    export(monkeypatch, ENVIRONMENT="staging", STUDIO_URL=ONE.replace("127.0.0.1", "LOCALHOST"))
    with pytest.raises(ConfigurationError, match="are the same service"):
        load_settings()


def test_file_in_the_home_is_for_its_owner_alone(folder: Path) -> None:
    home_file(folder, mode=0o640)
    with pytest.raises(ConfigurationError, match="can be read by others") as refused:
        load_settings("production")
    assert "chmod 600" in refused.value.remedy


@by_root
@pytest.mark.parametrize("path", [".patternmill", f".patternmill/{PROFILES_FILE}", ".env"])
def test_what_is_another_users_is_refused(folder: Path, path: str) -> None:
    """They decide what is in it."""
    home_file(folder)
    (folder / ".env").write_text("PATTERNMILL_DAY_BUDGET=1\n")
    load_settings("production")
    os.chown(folder / path, STRANGER, STRANGER)
    with pytest.raises(ConfigurationError, match=f"belongs to another user .UID {STRANGER}"):
        load_settings("production")


@pytest.mark.parametrize(
    "values",
    [
        {"url": "https://h/v1", "key": ""},
        {"url": "https://h/v1", "key": "canary x"},
        {"url": "https://h/v1", "key": "canaryß"},
        {"url": "https://h/v1"},
        {"key": "canary"},
        {"url": "https://h/v1", "key": "canary", "embedded": True},
        {"url": "https://me:canary@h/v1", "key": "k"},
        {"url": "https://h/v1?canary", "key": "k"},
        {"url": "h/v1", "key": "canary"},
        {"url": "file:///canary", "key": "k"},
        {"url": "http://studio.example/v1", "key": "canary"},
        {"url": "http://127.0.0.1.studio.example/v1", "key": "canary"},
        {"url": "http://0.0.0.0/v1", "key": "canary"},
    ],
)
def test_unusable_profile_is_refused_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    export(monkeypatch, PROFILES=json.dumps({"staging": values}))
    with pytest.raises(ConfigurationError, match="PATTERNMILL_PROFILES: ") as refused:
        load_settings()
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["https://h/v1/", "http://localhost/v1", "http://[::1]:80/v1", "http://127.9.9.9/v1"],
)
def test_key_is_sent_encrypted_or_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    export(monkeypatch, STUDIO_URL=url, API_KEY="sk_key")
    assert pair_of(load_settings()) == (url.rstrip("/"), "sk_key")


@pytest.mark.parametrize("several", [True, False])
def test_unknown_environment_is_refused(monkeypatch: pytest.MonkeyPatch, several: bool) -> None:
    """The refusal says what was meant, by the names of profiles or by the one that is set."""
    if several:
        export(monkeypatch, PROFILES=profiles(staging=ONE, production=OTHER))
    else:
        export(monkeypatch, STUDIO_URL=ONE, API_KEY="sk_key", ENVIRONMENT="production")
    with pytest.raises(ConfigurationError, match="did you mean 'production'") as refused:
        load_settings("productoin")
    assert refused.value.code == "unknown_environment"
    assert load_settings("production").service is not None


def test_embedded_studio_has_the_environment_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="known: staging"):
        load_settings("production")
    export(monkeypatch, ENVIRONMENT="production")
    assert load_settings().environment == load_settings("production").environment == "production"


# -- the embedded studio of `up`


def test_worker_has_the_embedded_studio_that_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on this machine, is for the environment that is set, and counts where there is no profile."""
    with pytest.raises(ConfigurationError, match="No environment 'staging'"):
        with_service(load_settings())
    export(monkeypatch, EMBEDDED_URL=ONE, EMBEDDED_KEY="studio_key")
    settings = with_service(load_settings())
    assert (pair_of(settings), settings.embedded) == ((ONE, "studio_key"), True)
    export(monkeypatch, STUDIO_URL=OTHER, API_KEY="sk_key")
    assert not with_service(load_settings()).embedded
    for name in ("STUDIO_URL", "API_KEY"):
        monkeypatch.delenv(f"PATTERNMILL_{name}")
    for url in ("https://studio.example/v1", "http://evil.localhost/v1"):
        export(monkeypatch, EMBEDDED_URL=url)
        with pytest.raises(ValueError, match="is not on this machine"):
            with_service(load_settings())
