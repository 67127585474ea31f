"""Where the service is and with which key, from Prefect's blocks, for a worker whose environment does not say.

A parameter would be stored in clear and shown: so the deployment names the environment, and its address and key
are looked up by that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prefect.blocks.system import Secret
from prefect.variables import Variable
from pydantic import SecretStr

from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings, with_service


def url_variable(environment: str) -> str:
    """The Prefect Variable with the service's address: names there have no dashes."""
    return f"patternmill_studio_url_{environment.replace('-', '_')}"


def key_block(environment: str) -> str:
    """The Secret block with the key: names there have no underscores."""
    return f"patternmill-api-key-{environment.replace('_', '-')}"


async def addressed(spec: RunSpec) -> RunSpec:
    """The order with the address and key that Prefect has for its environment, where the settings have none."""
    return replace(spec, settings=await addressed_settings(spec.settings))


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
