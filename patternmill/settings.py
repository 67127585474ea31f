"""The settings of a run: read from the environment once, by the command or the flow, and passed on as values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from patternmill.addresses import service_identity
from patternmill.env_file import (
    TIGHTENING,
    read_env_file,
    refuse_prefect_files,
    set_variables,
    variable,
)
from patternmill.errors import ConfigurationError
from patternmill.files import refuse_shared
from patternmill.parameters import (
    Amount,
    Attempts,
    Confirmed,
    Count,
    Currency,
    Dask,
    Duration,
    EnvironmentName,
    LedgerUrl,
    Price,
    Reasons,
    RetireLimit,
    RetireLimitText,
    Sources,
    Window,
)
from patternmill.passwords import passwords_in
from patternmill.profiles import (
    EmbeddedProfile,
    Profile,
    announced_studio,
    read_profiles,
    unknown_environment,
)


class Settings(BaseModel):
    """Everything that is set by environment. Immutable; secrets are masked wherever it is printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    #: Address and key of each environment: PATTERNMILL_PROFILES or a file in the home, by name; and the plain
    #: PATTERNMILL_STUDIO_URL with PATTERNMILL_API_KEY, of `environment`. None at all: the embedded studio is started.
    profiles: Mapping[EnvironmentName, Profile] = {}
    #: Ledger and local state.
    home: Path = Path(".patternmill")
    #: Scopes request IDs and the ledger, together with the catalog's name.
    environment: EnvironmentName = "staging"
    #: None: SQLite under `home`. postgresql://... for several machines.
    ledger_url: LedgerUrl = None
    #: None: one machine drives a run's rows. tls://... of a Dask scheduler, or a cluster's file in the home.
    dask: Dask | None = None
    #: The most jobs in flight at once.
    max_in_flight: Window = 200
    #: One exchange: connecting, sending, and reading the whole answer.
    request_timeout: Duration = timedelta(seconds=30)
    #: How long a job is waited for before its row reads `waiting`.
    job_timeout: Duration = timedelta(minutes=30)
    #: How long one create is resent while it is unknown whether the service has executed it.
    create_timeout: Duration = timedelta(minutes=10)
    #: Past this age an unanswered request is not sent again without a person's decision.
    in_doubt_limit: Duration = timedelta(hours=12)
    #: How many times an item is attempted when its job fails.
    attempts: Attempts = 2
    #: Patterns of text (regular expressions, case ignored) in a failed job's reason that make the failure final.
    final_reasons: Reasons = ()
    #: What a service is known to call the operations and fields that the interface leaves open: JSON, by environment.
    operations_file: Path | None = None
    #: The currency of all amounts, by its ISO 4217 code. None: the unit of the prices.
    currency: Currency | None = None
    #: What one of each costs, in minor units (cents); 0 where costs are not counted.
    pattern_price: Price = 0
    refinement_price: Price = 0
    product_price: Price = 0
    #: The most that may be spent a day (UTC) over all catalogs of the environment, in minor units.
    day_budget: Amount | None = None
    #: A plan that would buy more items, or may cost more at worst (minor units), waits for a person. None: none does.
    approve_above_items: Count | None = None
    approve_above_cost: Amount | None = None
    #: More items than this are bought of a service (not the embedded one) only when its environment is confirmed.
    confirm_above: Count = 100
    #: Environments whose purchases need no further confirmation; `duplicates`: nor does what exists already.
    confirm: Confirmed = None
    #: The most rows that a refresh retires without a person's approval: a count, a percentage, or both.
    retire_at_most: RetireLimitText = "20,10%"
    #: Addresses of sources by name, as JSON, for those with a secret in them: a schedule then has the name alone.
    sources: Sources = {}

    @property
    def service(self) -> Profile | None:
        """The environment's profile. None: none is set, and the command line starts the embedded studio."""
        return self.profiles.get(self.environment)

    @property
    def embedded(self) -> bool:
        """Whether the service is the embedded studio, whose key and pictures are this machine's own."""
        return isinstance(self.service, EmbeddedProfile)

    @property
    def studio_url(self) -> str | None:
        return self.service.url if self.service else None

    @property
    def has_prices(self) -> bool:
        return any((self.pattern_price, self.refinement_price, self.product_price))

    def at(self, profile: Profile) -> Settings:
        """The settings with this profile for their environment."""
        return self.model_copy(update={"profiles": {**self.profiles, self.environment: profile}})

    def confirms(self, purchase: str) -> bool:
        return self.confirm is not None and purchase in self.confirm.split(",")

    def confirming(self, purchase: str) -> Settings:
        """The settings with this confirmed too."""
        return self.model_copy(update={"confirm": ",".join(filter(None, (self.confirm, purchase)))})

    def secrets(self) -> frozenset[str]:
        """Everything that is to be in no text: keys, addresses with a password, and the passwords."""
        keys = (profile.key for profile in self.profiles.values())
        kept = (*keys, self.ledger_url, *self.sources.values())
        texts = [secret.get_secret_value() for secret in kept if secret is not None]
        return frozenset(texts).union(*map(passwords_in, texts))

    def service_at(self, url: str) -> str:
        """The identity of the service at an address: the same for every address of this environment's."""
        identity, own = service_identity(url), self.service
        return service_identity(own.url) if own is not None and identity in own.services else identity


def load_settings(
    environment: str | None = None, *, unknown_too: bool = False, **overrides: object
) -> Settings:
    """Read the settings of an environment, by default the one that is set; `overrides` that are not None win.

    Raises ConfigurationError that names every wrong variable, without its value.
    """
    return in_environment(read_settings(**overrides), environment, unknown_too=unknown_too)


def in_environment(
    settings: Settings, environment: str | None, *, unknown_too: bool = False, **overrides: object
) -> Settings:
    """What `read_settings` found, for an environment; None: the one that is set.

    `overrides` that are not None win, and have been validated. Raises ConfigurationError for an environment that
    nobody configured; not with `unknown_too`, for what only reads the ledger.
    """
    known = set(settings.profiles) or {settings.environment}
    values = {"environment": environment, **overrides}
    named = settings.model_copy(update={name: value for name, value in values.items() if value is not None})
    if named.environment not in known and not unknown_too:
        raise unknown_environment(named.environment, known)
    return named


def with_service(settings: Settings) -> Settings:
    """The settings of a worker's run with a service: their environment's, or the embedded studio of `up`.

    Raises ConfigurationError where there is neither.
    """
    if settings.service is not None:
        return settings
    studio = None if settings.profiles else announced_studio(settings.home, settings.environment)
    if studio is None:
        raise unknown_environment(settings.environment, settings.profiles)
    return settings.at(studio)


def read_settings(**overrides: object) -> Settings:
    """The settings as they are configured, before an environment is chosen.

    For callers that find out with their help which environment is meant. Raises ConfigurationError.
    """
    exported, file = set_variables(os.environ), read_env_file()
    refuse_prefect_files()
    given = {name: value for name, value in overrides.items() if value is not None}
    settings = _validated({**_values(in_force(exported, file)), **given})
    refuse_shared(settings.home)
    # There our own Prefect server works.
    refuse_prefect_files(settings.home / "prefect")
    profiles = given.get("profiles")
    if profiles is None:
        profiles = read_profiles(settings.environment, settings.home, exported, file)
    return settings.model_copy(update={"profiles": profiles})


def in_force(exported: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count: what is exported, the rest of `.env`, and its limits where they are tighter.

    Raises ConfigurationError for a limit of the file that is looser than the default, with none exported.
    """
    limits = {name: file[name] for name in map(variable, TIGHTENING) if name in file}
    counting = {**file, **exported}
    tried = _validated(_values({**counting, **limits}))
    default = set(limits) - set(exported)
    held = _validated(_values({name: text for name, text in counting.items() if name not in default}))
    looser = {
        variable(field) for field in TIGHTENING if _is_looser(getattr(tried, field), getattr(held, field))
    }
    if refused := sorted(looser & default):
        raise ConfigurationError(
            f".env sets {', '.join(refused)} looser than the default, and a folder's file only tightens.",
            code="not_in_env_file",
            remedy="Remove it there; if it is yours, export it. Nothing was sent.",
        )
    return {**counting, **{name: text for name, text in limits.items() if name not in looser}}


def _is_looser(value: Any, than: Any) -> bool:
    """Return whether a limit allows more than another one; None is no limit."""
    if isinstance(value, str):
        limit, other = RetireLimit.parse(value), RetireLimit.parse(than)
        return limit.count > other.count or limit.share > other.share
    return than is not None and (value is None or value > than)


def _values(variables: Mapping[str, str]) -> dict[str, object]:
    """Return the values of settings by field, but the profiles, which are taken whole from one source."""
    fields = {name: variables.get(variable(name)) for name in Settings.model_fields if name != "profiles"}
    return {name: _parsed(name, text) for name, text in fields.items() if text}


def _parsed(name: str, value: object) -> object:
    if name not in {"final_reasons", "sources"} or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise _unusable([f"{variable(name)}: must be JSON"]) from None


def _validated(values: Mapping[str, object]) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise _unusable(list(dict.fromkeys(map(_fault, error.errors())))) from None


def _fault(fault: Mapping[str, Any]) -> str:
    return f"{variable(str(fault['loc'][0]))}: {fault['msg'].removeprefix('Value error, ')}"


def _unusable(faults: list[str]) -> ConfigurationError:
    return ConfigurationError(
        "The settings cannot be used: " + "; ".join(faults) + ".",
        remedy="Correct them in the environment or in .env.",
    )


def other_environment(url: str, its: str, named: str) -> ConfigurationError:
    """The refusal of an address that belongs to another environment than the one named."""
    return ConfigurationError(
        f"{url} belongs to the environment {its!r}, and {named!r} is named.",
        remedy="Name the environment of the address (--environment, PATTERNMILL_ENVIRONMENT), or the other address.",
    )
