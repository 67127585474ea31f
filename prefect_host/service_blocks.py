"""The service's address and key from Prefect's blocks, for a worker without them in its environment.

A parameter would be stored and shown in clear: so a run names its environment, and address and key are looked up by
that name.
"""

from __future__ import annotations

from typing import Any

from prefect.blocks.system import Secret
from prefect.variables import Variable
from pydantic import SecretStr

from patternmill.settings import Settings, with_service


def url_variable(environment: str) -> str:
    """The Prefect Variable with the service's address: its name has no dashes."""
    return f"patternmill_studio_url_{environment.replace('-', '_')}"


def key_block(environment: str) -> str:
    """The Secret block with the key: its name has no underscores."""
    return f"patternmill-api-key-{environment.replace('_', '-')}"


async def addressed_settings(settings: Settings) -> Settings:
    """The settings with what Prefect has, where they have none of their own."""
    url, key = None, None
    if settings.studio_url is None:
        url = str(await Variable.aget(url_variable(settings.environment), default="") or "")
    if settings.api_key is None:
        key = await _key(settings.environment)
    return with_service(settings, url, key)


async def _key(environment: str) -> SecretStr | None:
    try:
        block: Any = await Secret.aload(key_block(environment))
    except ValueError:
        return None
    return SecretStr(str(block.get()))
