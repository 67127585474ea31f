"""The services that answered to each key: a key that has one is not sent to another until a person confirms it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.files import private_folder, refuse_foreign, replace_private
from patternmill.profiles import Profile
from patternmill.settings import Settings

KEY_MEMORY = "key-addresses.json"


def answered_before(settings: Settings, profile: Profile) -> bool:
    """Whether the profile's service answered to its key; False for a key that none answered to yet.

    Raises ConfigurationError for a key that another service answered to, unless that has a profile with it too.
    """
    services = _read(settings.home / KEY_MEMORY).get(_digest(profile.key), [])
    with_key = [other.services for other in settings.profiles.values() if other.key == profile.key]
    if (
        services
        and profile.services.isdisjoint(services)
        and frozenset().union(*with_key).isdisjoint(services)
    ):
        raise ConfigurationError(
            f"This key was used with {services[0]} before, and never with {profile.url}.",
            code="key_at_new_address",
            remedy=f"Correct the address. If the service has moved, give its profile in the home or in "
            f'PATTERNMILL_PROFILES its old one: "formerly": ["https://{services[0]}"]. Nothing was sent.',
        )
    return not profile.services.isdisjoint(services)


def remember(settings: Settings, profile: Profile) -> Callable[[], None]:
    """What is to be done at the first answer that the service gives to the key."""

    def bind() -> None:
        path, key = settings.home / KEY_MEMORY, _digest(profile.key)
        known = _read(path)
        services = sorted({*known.get(key, []), settings.service_at(profile.url)})
        with suppress(OSError):  # a home that cannot be written to remembers nothing
            private_folder(path.parent)
            replace_private(path, json.dumps(known | {key: services}, indent=1))

    return bind


def _digest(key: SecretStr) -> str:
    return hashlib.sha256(key.get_secret_value().encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, list[str]]:
    try:
        refuse_foreign(path)
        known = json.loads(path.read_text("utf-8"))
        return {str(key): [str(service) for service in services] for key, services in known.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read ({type(error).__name__}).",
            remedy="It has the service of each key; remove it if you know that the address is right.",
        ) from None
