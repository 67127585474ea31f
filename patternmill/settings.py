"""The settings of a run: read from the environment once, by the command or the flow, and passed on as values."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from patternmill.addresses import is_unencrypted, service_identity
from patternmill.errors import ConfigurationError
from patternmill.parameters import (
    Amount,
    ApprovalCode,
    Attempts,
    Confirmed,
    Count,
    Currency,
    Duration,
    EnvironmentName,
    Keys,
    LedgerUrl,
    OptionalKey,
    OptionalUrl,
    Price,
    Rate,
    Reasons,
    RetireLimitText,
    SameService,
    Sources,
    Urls,
    Window,
    checked_key,
    checked_optional_url,
)
from patternmill.passwords import passwords_in

PREFIX = "PATTERNMILL_"
ENV_FILE = ".env"
#: Where a setting comes from.
_FILE, _ENVIRONMENT = "file", "environment"


class Settings(BaseSettings):
    """Everything that is set by environment. Immutable; secrets are masked wherever it is printed."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    #: Base address of the service, ending with its version segment. None: the embedded studio is started.
    studio_url: OptionalUrl = None
    #: The key of `environment` as it is set, when the addresses are listed by environment.
    api_key: OptionalKey = None
    #: The environments' keys, as JSON: {"staging": "...", "production": "..."}.
    api_keys: Keys = {}
    #: Hosts to which the key may go without encryption, as JSON: ["10.0.0.5"]; this machine's own need none.
    plain_http: tuple[str, ...] = ()
    #: Ledger and local state.
    home: Path = Path(".patternmill")
    #: Scopes request IDs and the ledger, together with the catalog's name.
    environment: EnvironmentName = "staging"
    #: None: SQLite under `home`. postgresql://... for several machines.
    ledger_url: LedgerUrl = None
    #: The most jobs in flight at once.
    max_in_flight: Window = 200
    #: Requests a second, creates and polls apart.
    create_rate: Rate = 500.0
    poll_rate: Rate = 300.0
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
    #: The longest prompt accepted, in characters.
    prompt_limit: int = Field(default=4000, ge=1)
    #: The model of rows that name none. None: the service's own choice.
    model: str | None = Field(default=None, min_length=1, max_length=200)
    #: What a service is known to call the operations and fields that the interface leaves open: JSON, by environment.
    operations_file: Path | None = None
    #: The currency of all amounts, by its ISO 4217 code. None: people read them in minor units.
    currency: Currency | None = None
    #: What one of each costs, in minor units (cents); 0 where costs are not counted.
    pattern_price: Price = 0
    refinement_price: Price = 0
    reference_price: Price = 0
    product_price: Price = 0
    #: The most that may be spent a day (UTC) over all catalogs of the environment, in minor units.
    day_budget: Amount | None = None
    #: A plan that would buy more items, or may cost more at worst (minor units), waits for a person. None: none does.
    approve_above_items: Count | None = None
    approve_above_cost: Amount | None = None
    #: What an approver has to type: the code, or `sha256:` and its digest, so that no worker has the code itself.
    approval_code: ApprovalCode | None = None
    #: How long a flow run waits for a person's decision on its plan.
    approval_timeout: Annotated[timedelta, Field(ge=timedelta(seconds=10))] = timedelta(hours=24)
    #: The addresses of the environments, as JSON: {"staging": "https://...", "production": "https://..."}.
    environment_urls: Urls = {}
    #: Addresses that are one service, which has moved or has several names: a JSON list; or a list of such lists.
    same_service: SameService = ()
    #: In production, more items than this are bought only when `production` is confirmed.
    confirm_above: Count = 100
    #: `production`: purchases there need no further confirmation; `duplicates`: nor do another catalog's products.
    confirm: Confirmed = None
    #: Set by the command line when it starts the embedded studio.
    embedded: bool = False
    #: The most rows that a refresh retires without a person's approval: a count, a percentage, or both.
    retire_at_most: RetireLimitText = "20,10%"
    #: Addresses of sources by name, as JSON, for those with a secret in them: a schedule then has the name alone.
    sources: Sources = {}
    #: Folders that runs of a deployment may read files from and write results to, next to the home. None: the one they
    #: run in. The command line is not bound to them.
    source_folders: tuple[Path, ...] | None = None
    #: Rows a nested flow run, so that the page in the Prefect UI stays usable.
    shard_rows: int = Field(default=500, ge=1, le=2500)
    #: Up to so many rows a run has a task run for each item in the Prefect UI; above, for each shard and failed item.
    item_task_runs_up_to: int = Field(default=20_000, ge=0)

    #: Address and key are configured together, by the name of the environment.
    _pair_is_explicit: bool = PrivateAttr(default=False)

    @property
    def pair_is_explicit(self) -> bool:
        return self._pair_is_explicit

    @property
    def has_prices(self) -> bool:
        return any((self.pattern_price, self.refinement_price, self.reference_price, self.product_price))

    @property
    def is_addressed(self) -> bool:
        """Whether the service's address and key are known."""
        return self.studio_url is not None and self.api_key is not None

    def confirms(self, purchase: str) -> bool:
        return self.confirm is not None and purchase in self.confirm.split(",")

    def secrets(self) -> frozenset[str]:
        """Everything that is to be in no text: keys, codes, addresses with a password, and the passwords."""
        kept = (
            self.api_key,
            self.ledger_url,
            self.approval_code,
            *self.api_keys.values(),
            *self.sources.values(),
        )
        texts = [secret.get_secret_value() for secret in kept if secret is not None]
        return frozenset(texts).union(*map(passwords_in, texts))

    def service_at(self, url: str) -> str:
        """The identity of the service at an address: the same for every address of that service."""
        identity = service_identity(url)
        for group in self.same_service:
            known = [service_identity(other) for other in group]
            if identity in known:
                return known[0]
        return identity


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment and `.env`; `overrides` that are not None win.

    Raises ConfigurationError that names every wrong variable, without its value.
    """
    return _keyed(_addressed(_read(overrides)))


def read_settings() -> Settings:
    """The settings as they are configured, before an environment's address and key are chosen.

    For callers that find out with their help which environment is meant. Raises ConfigurationError.
    """
    return _read({})


def in_environment(settings: Settings, environment: str | None, **overrides: object) -> Settings:
    """What `read_settings` found, with an environment's address and key; None: the one that is set.

    `overrides` that are not None win, and have been validated. Raises ConfigurationError.
    """
    values = {"environment": environment, **overrides}
    known = {name: value for name, value in values.items() if value is not None}
    return _keyed(_addressed(settings.model_copy(update=known)))


def _read(overrides: Mapping[str, object]) -> Settings:
    named = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**named)  # type: ignore[arg-type]
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        raise _unusable([f"{PREFIX}{field[1].upper() if field else '*'}: must be JSON"]) from None
    except ValidationError as error:
        raise _unusable(list(dict.fromkeys(map(_fault, error.errors())))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable([f".env: cannot be read ({type(error).__name__})"]) from None


def with_service(settings: Settings, url: str | None, key: SecretStr | None) -> Settings:
    """The settings with an address and a key found elsewhere, checked as their own. Raises ConfigurationError."""
    try:
        found = {"studio_url": checked_optional_url(url), "api_key": checked_key(key)}
    except ValueError as error:
        raise ConfigurationError(
            f"The address or the key that Prefect has for {settings.environment!r} cannot be used: it {error}.",
            remedy="Correct the Variable, or the Secret block.",
        ) from None
    known = {name: value for name, value in found.items() if value is not None}
    if not known:
        return settings
    if url is not None and key is None and settings.api_key is not None:
        raise ConfigurationError(
            f"The address {url} is from the Prefect server, and the key is not: anyone who may write there could have "
            "the key sent anywhere.",
            code="key_from_elsewhere",
            remedy="Set the address where the key is (PATTERNMILL_STUDIO_URL), or keep both with Prefect.",
        )
    paired = _addressed(settings.model_copy(update=known))
    paired._pair_is_explicit = len(known) == len(found)
    _refuse_plain_http(paired)
    return paired


def _fault(fault: Mapping[str, Any]) -> str:
    return f"{PREFIX}{str(fault['loc'][0]).upper()}: {fault['msg'].removeprefix('Value error, ')}"


def _unusable(faults: list[str]) -> ConfigurationError:
    return ConfigurationError(
        "The settings cannot be used: " + "; ".join(faults) + ".",
        remedy="Correct them in the environment or in .env.",
    )


def _addressed(settings: Settings) -> Settings:
    """The settings with an address: the environment's, where none is named. One of another environment is refused."""
    belongs = _environments_by_service(settings)
    if settings.studio_url is None:
        if settings.environment_urls and settings.environment not in settings.environment_urls:
            raise ConfigurationError(
                f"PATTERNMILL_ENVIRONMENT_URLS has no address for {settings.environment!r}; "
                f"it has {', '.join(settings.environment_urls)}.",
                remedy="Name one of these environments, or add its address.",
            )
        return settings.model_copy(update={"studio_url": settings.environment_urls.get(settings.environment)})
    its = belongs.get(settings.service_at(settings.studio_url), settings.environment)
    if its != settings.environment:
        raise other_environment(settings.studio_url, its, settings.environment)
    return settings


def _keyed(settings: Settings) -> Settings:
    """The settings with the key that belongs to their environment and address. Raises ConfigurationError."""
    if settings.embedded or settings.studio_url is None:
        return settings
    _refuse_plain_http(settings)
    own = settings.api_keys.get(settings.environment)
    if own is None:
        _refuse_key_of_another_environment(settings)
    settings = settings.model_copy(update={"api_key": own or settings.api_key})
    url_source = _configured("studio_url")[0] or _configured("environment_urls")[0]
    key_source = _configured("api_keys" if own is not None else "api_key")[0]
    if settings.api_key is not None and url_source == _FILE and key_source == _ENVIRONMENT:
        raise ConfigurationError(
            f"The address {settings.studio_url} is from .env in this folder, and the key is from elsewhere: "
            "any folder could have it sent anywhere.",
            code="key_from_elsewhere",
            remedy="If you trust this address, set it where the key is set, or put the key into .env. "
            "Nothing was sent.",
        )
    settings._pair_is_explicit = own is not None and settings.environment in settings.environment_urls
    return settings


def _refuse_key_of_another_environment(settings: Settings) -> None:
    """The one key is that of the environment that is set; another one needs its own."""
    configured = _configured("environment")[1] or Settings.model_fields["environment"].default
    several = len(settings.environment_urls) > 1 or bool(settings.api_keys)
    if settings.api_key is None or settings.environment == configured or not several:
        return
    raise ConfigurationError(
        f"PATTERNMILL_API_KEY is the key of {configured!r}, and {settings.environment!r} is named.",
        code="key_of_another_environment",
        remedy=f'Set PATTERNMILL_API_KEYS={{"{settings.environment}": "..."}}, '
        f"or PATTERNMILL_ENVIRONMENT={settings.environment} where its key is. Nothing was sent.",
    )


def _refuse_plain_http(settings: Settings) -> None:
    url = settings.studio_url
    if url is None or not is_unencrypted(url) or urlsplit(url).hostname in settings.plain_http:
        return
    host = urlsplit(url).hostname
    raise ConfigurationError(
        f"The key would go to {host} without encryption ({url}).",
        code="plain_http",
        remedy=f'Use https://, or set PATTERNMILL_PLAIN_HTTP=["{host}"] if the network to it is your own. '
        "Nothing was sent.",
    )


def _configured(field: str) -> tuple[str | None, str | None]:
    """Where a setting comes from, and its text: the environment wins over .env; None where it is not set."""
    name = f"{PREFIX}{field}".upper()
    for source, values in ((_ENVIRONMENT, os.environ), (_FILE, dotenv_values(ENV_FILE))):
        for key, value in values.items():
            if key.upper() == name and value:
                return source, value
    return None, None


def _environments_by_service(settings: Settings) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, url in settings.environment_urls.items():
        other = found.setdefault(settings.service_at(url), name)
        if other != name:
            raise _unusable([f"{PREFIX}ENVIRONMENT_URLS: {other!r} and {name!r} are the same service, {url}"])
    return found


def other_environment(url: str, its: str, named: str) -> ConfigurationError:
    """The refusal of an address that belongs to another environment than the one named."""
    return ConfigurationError(
        f"{url} belongs to the environment {its!r}, and {named!r} is named.",
        remedy="Name the environment of the address (--environment, PATTERNMILL_ENVIRONMENT), or the other address.",
    )
