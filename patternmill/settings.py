"""The settings: read from the environment once, by the command or the flow, and passed on as values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

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
    RowLimit,
    RowLimitText,
    Sources,
    Store,
    Window,
)
from patternmill.passwords import passwords_in
from patternmill.profiles import (
    EmbeddedProfile,
    Profile,
    exported_studio,
    read_profiles,
    unknown_environment,
)
from patternmill.states import Stage


class Settings(BaseModel):
    """Everything that is set by environment; immutable. Secrets are masked wherever it is printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    #: Address and key of each environment: PATTERNMILL_PROFILES or a file in the home, by name; and the plain
    #: PATTERNMILL_STUDIO_URL with PATTERNMILL_API_KEY, of `environment`. None at all: the embedded studio is started.
    profiles: Mapping[EnvironmentName, Profile] = {}
    #: The folder of the ledger and other local state.
    home: Path = Path(".patternmill")
    #: Scopes request IDs and the ledger, together with the catalog's name.
    environment: EnvironmentName = "staging"
    #: The ledger's address: postgresql://... for several machines. None: SQLite under `home`.
    ledger_url: LedgerUrl = None
    #: The Dask scheduler (tls://...), or a cluster's file in the home. None: one machine drives a run's rows.
    dask: Dask | None = None
    #: The most jobs in flight at once.
    max_in_flight: Window = 200
    #: The most time for one exchange: connecting, sending, and reading the whole answer.
    request_timeout: Duration = timedelta(seconds=30)
    #: The time for which a job is waited for before its row reads `waiting`.
    job_timeout: Duration = timedelta(minutes=30)
    #: The time for which one create is resent while it is unknown whether the service has executed it.
    create_timeout: Duration = timedelta(minutes=10)
    #: Past this age an unanswered request is not sent again without a person's decision.
    in_doubt_limit: Duration = timedelta(hours=12)
    #: The most attempts at an item whose jobs fail.
    attempts: Attempts = 2
    #: Patterns of text (regular expressions, case ignored) in a failed job's reason that make the failure final.
    final_reasons: Reasons = ()
    #: The file (JSON, by environment) with the names of operations and fields that the interface leaves open.
    operations_file: Path | None = None
    #: The currency of all amounts, by its ISO 4217 code. None: the unit of the prices.
    currency: Currency | None = None
    #: The price of one of each, in minor units (cents); 0 where costs are not counted.
    pattern_price: Price = 0
    refinement_price: Price = 0
    product_price: Price = 0
    #: The most that may be spent a day (UTC) over all catalogs of the environment, in minor units.
    day_budget: Amount | None = None
    #: The items, and the cost at worst (minor units), above which a plan waits for a person. None: no plan waits.
    approve_above_items: Count | None = None
    approve_above_cost: Amount | None = None
    #: More items than this are bought of a service (not the embedded one) only when its environment is confirmed.
    confirm_above: Count = 100
    #: Environments whose purchases need no further confirmation; `duplicates`: nor does what exists already.
    confirm: Confirmed = None
    #: The most rows that a refresh retires without a person's approval: a count, a percentage, or both.
    retire_at_most: RowLimitText = "20,10%"
    #: The most products that a run replaces without a person's approval: a count, a percentage, or both.
    change_at_most: RowLimitText = "20,10%"
    #: The store's address below which runs of deployments may have their results copied. None: they may not.
    out_below: Store | None = None
    #: Sources by name, as JSON, for those with a secret: a schedule then has the name alone. A source is an address, or
    #: {"address": ..., "bearer": ...}, whose bearer is sent to the origin of that address and nowhere else.
    sources: Sources = {}

    @property
    def service(self) -> Profile | None:
        """Return the environment's profile; None if it has none: the command line then starts the embedded studio."""
        return self.profiles.get(self.environment)

    @property
    def embedded(self) -> bool:
        """Return whether the service is the embedded studio, whose key and pictures are this machine's own."""
        return isinstance(self.service, EmbeddedProfile)

    @property
    def studio_url(self) -> str | None:
        """Return the service's address."""
        return self.service.url if self.service else None

    @property
    def prices(self) -> Mapping[Stage, int]:
        """Return the price of an item of each stage, in minor units; no service is known to charge for a reference."""
        return {
            Stage.REFERENCE: 0,
            Stage.PATTERN: self.pattern_price,
            Stage.REFINEMENT: self.refinement_price,
            Stage.PRODUCT: self.product_price,
        }

    def at(self, profile: Profile) -> Settings:
        """Return the settings with this profile for their environment."""
        return self.model_copy(update={"profiles": {**self.profiles, self.environment: profile}})

    def confirms(self, purchase: str) -> bool:
        """Return whether a person confirmed this."""
        return self.confirm is not None and purchase in self.confirm.split(",")

    def confirming(self, purchase: str) -> Settings:
        """Return the settings with this confirmed too."""
        return self.model_copy(update={"confirm": ",".join(filter(None, (self.confirm, purchase)))})

    def secrets(self) -> frozenset[str]:
        """Return what no text may contain: keys, bearers, addresses that may have a password, and the passwords."""
        keys = (profile.key for profile in self.profiles.values())
        sources = (secret for source in self.sources.values() for secret in (source.address, source.bearer))
        secrets = (*keys, self.ledger_url, *sources)
        texts = [secret.get_secret_value() for secret in secrets if secret is not None]
        return frozenset(texts).union(*map(passwords_in, texts))

    def source_at(self, address: str) -> str | None:
        """Return the name that the settings give an address, which shows none of the address's secrets."""
        addresses = {source.address.get_secret_value(): name for name, source in self.sources.items()}
        return addresses.get(address)

    def bearer_of(self, address: str) -> SecretStr | None:
        """Return the bearer that opens the source at an address."""
        name = self.source_at(address)
        return self.sources[name].bearer if name is not None else None

    def service_at(self, url: str) -> str:
        """Return the identity of the service at an address: the same for all addresses of the environment's own."""
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
    """Return settings for an environment; None: the one that is set.

    `overrides` that are not None win, and have been validated. Raises ConfigurationError for an environment that
    nobody configured, except with `unknown_too`, for what only reads the ledger.
    """
    configured = set(settings.profiles) or {settings.environment}
    values = {"environment": environment, **overrides}
    named = settings.model_copy(update={name: value for name, value in values.items() if value is not None})
    if named.environment not in configured and not unknown_too:
        raise unknown_environment(named.environment, configured)
    return named


def with_service(settings: Settings) -> Settings:
    """Return the settings with a service: their environment's, or the embedded studio of `up`.

    Raises ConfigurationError where there is neither.
    """
    if settings.service is not None:
        return settings
    studio = None if settings.profiles else exported_studio(os.environ)
    if studio is None:
        raise unknown_environment(settings.environment, settings.profiles)
    return settings.at(studio)


def read_settings(**overrides: object) -> Settings:
    """Read the settings as they are configured, before an environment is chosen. Raises ConfigurationError."""
    exported, file = set_variables(os.environ), read_env_file()
    refuse_prefect_files()
    given = {name: value for name, value in overrides.items() if value is not None}
    settings = _validated({**_values(in_force(exported, file)), **given})
    refuse_shared(settings.home)
    # This is the working folder of our own Prefect server.
    refuse_prefect_files(settings.home / "prefect")
    profiles = given.get("profiles")
    if profiles is None:
        profiles = read_profiles(settings.environment, settings.home, exported, file)
    return settings.model_copy(update={"profiles": profiles})


def in_force(exported: Mapping[str, str], file: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that count: what is exported, the rest of `.env`, and its limits where they are tighter.

    Raises ConfigurationError where none is exported and a limit of the file is looser than the default.
    """
    counting = {**file, **exported}
    limits = {name: file[name] for name in map(variable, TIGHTENING) if name in file}
    if not limits:
        return counting
    without_file = {name: text for name, text in counting.items() if name in exported or name not in limits}
    tried, others = _validated(_values({**counting, **limits})), _validated(_values(without_file))
    looser = {
        variable(field) for field in TIGHTENING if _is_looser(getattr(tried, field), getattr(others, field))
    }
    if refused := sorted(looser - exported.keys()):
        raise ConfigurationError(
            f".env sets {', '.join(refused)} looser than the default, and a folder's file only tightens.",
            code="not_in_env_file",
            remedy="Remove it there; if it is yours, export it. Nothing was sent.",
        )
    return {**counting, **{name: text for name, text in limits.items() if name not in looser}}


def _is_looser(value: Any, than: Any) -> bool:
    """Return whether a limit allows more than another one; None is no limit."""
    if isinstance(value, str):
        limit, other = RowLimit.parse(value), RowLimit.parse(than)
        return limit.count > other.count or limit.share > other.share
    return than is not None and (value is None or value > than)


def _values(variables: Mapping[str, str]) -> dict[str, object]:
    """Return the values of settings by field, without the profiles, which are taken whole from one source."""
    fields = {name: variables.get(variable(name)) for name in Settings.model_fields if name != "profiles"}
    return {name: text for name, text in fields.items() if text}


def _validated(values: Mapping[str, object]) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        faults = (
            f"{variable(str(fault['loc'][0]))}: {fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors()
        )
        raise ConfigurationError(
            f"The settings cannot be used: {'; '.join(dict.fromkeys(faults))}.",
            remedy="Correct them in the environment or in .env.",
        ) from None


def other_environment(url: str, owner: str, named: str) -> ConfigurationError:
    """Return the refusal of an address that belongs to another environment than the one named."""
    return ConfigurationError(
        f"{url} belongs to the environment {owner!r}, and {named!r} is named.",
        remedy="Name the environment of the address (--environment, PATTERNMILL_ENVIRONMENT), or the other address.",
    )
