"""Profiles of environments: the address of a service and its key, from one source and never from two.

A source is this process's environment, `.env` in the working folder, or one file in the home. Nothing else decides
where a key goes.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError

from patternmill.addresses import is_loopback, is_unencrypted, service_identity
from patternmill.errors import ConfigurationError
from patternmill.files import own_text
from patternmill.parameters import EnvironmentName, Key, Url

URL, KEY, PROFILES = "PATTERNMILL_STUDIO_URL", "PATTERNMILL_API_KEY", "PATTERNMILL_PROFILES"
#: The file in the home with a table for each environment: `url`, `key` and, if the service has moved, `formerly`.
PROFILES_FILE = "profiles.toml"
#: The variables that `patternmill up` exports to its worker while it serves the embedded studio.
EMBEDDED = {"url": "PATTERNMILL_EMBEDDED_URL", "key": "PATTERNMILL_EMBEDDED_KEY"}


def _encrypted(url: str) -> str:
    if is_unencrypted(url):
        raise ValueError("would get the key without encryption: use https://")
    return url


def _on_this_machine(url: str) -> str:
    if not is_loopback(url):
        raise ValueError("is not on this machine")
    return url


class Profile(BaseModel):
    """The address of an environment's service, and the key for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    #: The address of the service, which ends with the version segment.
    url: Annotated[Url, AfterValidator(_encrypted)]
    key: Key
    #: Other addresses of the same service, where it has moved or has several names.
    formerly: tuple[Url, ...] = ()

    @property
    def services(self) -> frozenset[str]:
        """Return the identities of its addresses."""
        return frozenset(map(service_identity, (self.url, *self.formerly)))


class EmbeddedProfile(Profile):
    """The profile of this home's embedded studio; no profile that a person writes can be one."""

    url: Annotated[Url, AfterValidator(_on_this_machine)]


#: The profile of the embedded studio before it is started; its records can be read already.
NOT_STARTED = EmbeddedProfile(url="http://localhost/v1", key=SecretStr("none"))
_PROFILES = TypeAdapter(dict[EnvironmentName, Profile])


def read_profiles(
    environment: str, home: Path, exported: Mapping[str, str], file: Mapping[str, str]
) -> dict[str, Profile]:
    """Return the profiles by environment. `environment`: the one that the plain address and key belong to.

    `exported` and `file`: the variables of this process and of `.env`. Raises ConfigurationError.
    """
    pair, several = _pair(exported, file), _several(home, exported)
    if pair is None:
        return several
    if environment in several:
        raise ConfigurationError(
            f"The environment {environment!r} has two profiles: {URL} with {KEY}, and one by its name.",
            code="two_profiles",
            remedy="Remove one of them. Nothing was sent.",
        )
    return _each_its_own({environment: pair, **several}, f"{URL} and the profiles by name")


def unknown_environment(name: str, configured: Iterable[str]) -> ConfigurationError:
    """Return the refusal of an environment that nobody configured."""
    names = sorted(configured)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}."
    return ConfigurationError(
        f"No environment {name!r} is configured; {hint}",
        code="unknown_environment",
        remedy=f"Name one that is, or add its address and key to {PROFILES_FILE} in the home. Nothing was sent.",
    )


def exported_studio(exported: Mapping[str, str]) -> EmbeddedProfile | None:
    """Return the embedded studio that `up` serves, if this process runs in its worker. Raises ValueError."""
    values = {field: exported[name] for field, name in EMBEDDED.items() if name in exported}
    return EmbeddedProfile.model_validate(values) if values else None


def _pair(exported: Mapping[str, str], file: Mapping[str, str]) -> Profile | None:
    source, other = (exported, file) if URL in exported or KEY in exported else (file, exported)
    values = {field: source[name] for field, name in (("url", URL), ("key", KEY)) if name in source}
    if len(values) == 1:
        have, lack = (URL, KEY) if "url" in values else (KEY, URL)
        elsewhere = " in the same place; the other one is not used" if lack in other else ""
        raise ConfigurationError(
            f"{have} is set, and {lack} is not{elsewhere}: any folder could have the key sent anywhere.",
            code="key_from_elsewhere" if elsewhere else "half_a_profile",
            remedy="Set both in the environment, or both in .env. Nothing was sent.",
        )
    try:
        return Profile.model_validate(values) if values else None
    except ValidationError as error:
        raise _unusable("PATTERNMILL", error) from None


def _several(home: Path, exported: Mapping[str, str]) -> dict[str, Profile]:
    """Return the profiles by name, as they are exported or, if none are, from the file in the home."""
    text, where = exported.get(PROFILES), PROFILES
    try:
        if text is not None:
            values: Any = json.loads(text)
        else:
            where = str(home / PROFILES_FILE)
            values = tomllib.loads(own_text(home / PROFILES_FILE) or "")
        return _each_its_own(_PROFILES.validate_python(values), where)
    except ValidationError as error:
        raise _unusable(where, error) from None
    except (ValueError, RecursionError):
        kind = "JSON" if text is not None else "TOML"
        raise ConfigurationError(
            f"{where} cannot be read: it must be {kind}.", remedy="Correct it."
        ) from None


def _each_its_own(profiles: dict[str, Profile], where: str) -> dict[str, Profile]:
    """Return the profiles. Raises ConfigurationError for two names of one service, which would buy everything twice."""
    names: dict[str, str] = {}
    for name, profile in profiles.items():
        for service in profile.services:
            if names.setdefault(service, name) != name:
                raise ConfigurationError(
                    f"{where}: the environments {names[service]!r} and {name!r} are the same service, {profile.url}.",
                    remedy="Remove one of them.",
                )
    return profiles


def _unusable(where: str, error: ValidationError) -> ConfigurationError:
    """Return the refusal of a profile; for the plain pair it names the variables."""
    names = {"url": URL, "key": KEY} if where == "PATTERNMILL" else {}
    faults = []
    for fault in error.errors():
        place = [str(part) for part in fault["loc"] if part != "[key]"]
        field = names.get(place[-1], f"{where}: {place[-1]}") if place[-1:] else where
        faults.append(f"{field}: {fault['msg'].removeprefix('Value error, ')}")
    return ConfigurationError(
        f"The profile cannot be used: {'; '.join(dict.fromkeys(faults))}.", remedy="Correct it there."
    )
