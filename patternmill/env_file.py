"""Limits on what the files of the working folder may set: little, since whoever prepared the folder wrote them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from patternmill.errors import ConfigurationError
from patternmill.files import refuse_foreign

PREFIX = "PATTERNMILL_"
ENV_FILE = ".env"


def variable(field: str) -> str:
    """Return the environment variable of a setting."""
    return f"{PREFIX}{field}".upper()


#: The service's address and key, which apply where neither is exported.
_SERVICE = ("studio_url", "api_key")
#: Settings that apply where they are not exported: the window, timeouts, the currency and prices.
_FREE = (
    "max_in_flight",
    "request_timeout",
    "job_timeout",
    "create_timeout",
    "currency",
    "pattern_price",
    "refinement_price",
    "product_price",
)
#: Settings that may only tighten what is exported, or the default.
TIGHTENING = (
    "attempts",
    "in_doubt_limit",
    "day_budget",
    "approve_above_items",
    "approve_above_cost",
    "confirm_above",
    "retire_at_most",
    "change_at_most",
)
_ALLOWED = frozenset(map(variable, (*_SERVICE, *_FREE, *TIGHTENING)))


def read_env_file() -> dict[str, str]:
    """Return the variables of `.env` in the working folder, as they are written there.

    Raises ConfigurationError for a setting that a folder must not decide, and for another user's file.
    """
    path = Path(ENV_FILE)
    if not path.is_file():
        return {}
    refuse_foreign(path)
    try:
        # With interpolation, a value could name another variable, such as a key, and take its text.
        values = set_variables(dotenv_values(path, interpolate=False))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{ENV_FILE}: cannot be read ({type(error).__name__}).", remedy="Correct or remove it."
        ) from None
    if refused := [name for name in values if name.startswith(PREFIX) and name not in _ALLOWED]:
        raise ConfigurationError(
            f"{path.resolve()} sets {', '.join(sorted(refused))}, which a folder's file must not decide.",
            code="not_in_env_file",
            remedy="Remove it there; if it is yours, export it. What the file may set: .env.example. "
            "Nothing was sent.",
        )
    return values


def set_variables(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables by their upper-case names; an empty one counts as not set."""
    return {name.upper(): text for name, text in values.items() if text}


def refuse_prefect_files(folder: Path = Path()) -> None:
    """Raise ConfigurationError for a folder that configures Prefect, before Prefect reads it.

    Each Prefect process reads these files in its working folder. They may configure its logging, which can run any
    code.
    """
    for path in (folder / "prefect.toml", folder / "pyproject.toml", folder / ENV_FILE):
        if path.exists() and _configures_prefect(path):
            raise ConfigurationError(
                f"{path.resolve()} configures Prefect: its logging too, which can run any code.",
                code="prefect_files",
                remedy="Run in another folder, or remove these settings and export yours. Nothing was sent.",
            )


def _configures_prefect(path: Path) -> bool:
    """Return whether a file that Prefect reads has settings for it, or cannot be read."""
    # Prefect also reads a FIFO.
    if path.name == "prefect.toml" or not path.is_file():
        return True
    try:
        if path.name == ENV_FILE:
            return any(name.upper().startswith("PREFECT_") for name in dotenv_values(path, interpolate=False))
        values: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        return "prefect" in values.get("tool", {})
    except (OSError, ValueError, TypeError, AttributeError):
        return True
