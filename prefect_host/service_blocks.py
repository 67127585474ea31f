"""The profile of an environment from Prefect, for a worker without one of its own.

A parameter would be stored and shown in clear: so a run names its environment, and address and key are looked up by
that name, together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from prefect.blocks.system import Secret

from patternmill.errors import ConfigurationError
from patternmill.profiles import Profile, announced_studio, profile_of, unknown_environment
from patternmill.settings import Settings


async def addressed_settings(settings: Settings) -> Settings:
    """The settings with their environment's profile: their own, or Prefect's, or the embedded studio of `up`.

    Raises ConfigurationError where nobody configured it.
    """
    if settings.service is not None:
        return settings
    profile = await _of_block(settings.environment)
    if profile is None and not settings.profiles:
        profile = await asyncio.to_thread(announced_studio, settings.home, settings.environment)
    if profile is None:
        raise unknown_environment(settings.environment, settings.profiles)
    return settings.at(profile)


async def _of_block(environment: str) -> Profile | None:
    """Of the Secret block with `{"url": ..., "key": ...}`: its name has no underscores."""
    name = f"patternmill-{environment.replace('_', '-')}"
    try:
        block: Any = await Secret.aload(name)
    except ValueError:
        return None
    if not isinstance(values := block.get(), Mapping):
        raise ConfigurationError(
            f"The Secret block {name} is no profile.",
            remedy='Its value is JSON: {"url": "...", "key": "..."}.',
        )
    return profile_of(values, f"the Secret block {name}")
