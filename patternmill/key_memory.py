"""The services that each key was sent to: a key is not sent to a new address until a person confirms it."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path

from pydantic import SecretStr

from patternmill.errors import ConfigurationError
from patternmill.files import private_folder, write_private
from patternmill.settings import Settings

KEY_MEMORY = "key-addresses.json"


def refuse_new_address(settings: Settings) -> None:
    """Raise ConfigurationError when this key was used before, and never with this service.

    A key's first service is remembered, with a digest of the key; an address and a key that are configured together,
    by environment, need no memory.
    """
    if settings.embedded or settings.pair_is_explicit:
        return
    if settings.studio_url is None or settings.api_key is None:
        return
    path = settings.home / KEY_MEMORY
    known = _read(path)
    key, service = _digest(settings.api_key), settings.service_at(settings.studio_url)
    services = known.get(key, [])
    if service in {settings.service_at(f"http://{other}") for other in services}:
        return
    if services:
        raise ConfigurationError(
            f"This key was used with {services[0]} before, and never with {settings.studio_url}.",
            code="key_at_new_address",
            remedy="If it belongs to it, configure both together: PATTERNMILL_ENVIRONMENT_URLS and "
            "PATTERNMILL_API_KEYS; if the service has only moved, name both addresses in PATTERNMILL_SAME_SERVICE. "
            "Nothing was sent.",
        )
    _write(path, known | {key: [service]})


def _digest(key: SecretStr) -> str:
    return hashlib.sha256(key.get_secret_value().encode()).hexdigest()[:32]


def _read(path: Path) -> dict[str, list[str]]:
    try:
        known = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} cannot be read ({type(error).__name__}).",
            remedy="It has the service of each key; remove it if you know that the address is right.",
        ) from None
    return {str(key): [str(service) for service in services] for key, services in known.items()}


def _write(path: Path, known: dict[str, list[str]]) -> None:
    """Whole, and for its owner alone. A home that cannot be written to remembers nothing."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        private_folder(path.parent)
        write_private(temporary, json.dumps(known, indent=1))
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
