"""The settings of a run: read from the environment once, by the command or the flow, and passed on as values."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from patternmill.addresses import checked_url, is_unencrypted, service_identity
from patternmill.errors import ConfigurationError
from patternmill.parameters import (
    ENVIRONMENT_PATTERN,
    Attempts,
    Confirmation,
    EnvironmentName,
    Window,
    confirmation,
)

T = TypeVar("T")
PREFIX = "PATTERNMILL_"
MASK = "**********"
#: In a query or in libpq's own form, where a value may stand in quotes.
_PASSWORD = re.compile(r"(?i)\b(?:ssl)?(?:password|passwd|pwd)\s*=\s*(?:'((?:[^'\\]|\\.)*)'?|([^\s&'\"#;]+))")
_USER_INFO = re.compile(r"://[^\s/@:'\"]*:([^\s/'\"]+)@")
#: In what is known to be an address, a password may have any character.
_LOOSE_USER_INFO = re.compile(r"://[^/@:]*:(.+)@")
#: Shorter ones are words that a mask would strike everywhere.
_SHORTEST_PASSWORD = 4
ENV_FILE = ".env"
_RETIRE_WORD = r"\d{1,9}|(\d{1,2}(\.\d+)?|100)%"
_LEDGER_SCHEMES = frozenset({"postgresql", "postgres", "sqlite"})

#: In minor units: what a limit, and a price, may be at most, so that no sum over a catalog passes 64 bits.
MOST_AMOUNT = 10**15
MOST_PRICE = 10**11


def _checked_url(url: str | None) -> str | None:
    return checked_url(url) if url else None


def passwords_in(address: str) -> frozenset[str]:
    """Every password in an address, as written and decoded: of a URL, of its query, of libpq's `password=...`."""
    found = {text for pair in _PASSWORD.findall(address) for text in pair}
    found.update(_USER_INFO.findall(address), _LOOSE_USER_INFO.findall(address))
    return frozenset(text for text in {*found, *map(unquote, found)} if len(text) >= _SHORTEST_PASSWORD)


def mask_passwords(text: str, address: str = "") -> str:
    """`text` without the passwords of an address, and without what has the shape of one."""
    for password in sorted(passwords_in(address), key=len, reverse=True):
        text = text.replace(password, MASK)
    for shape in (_PASSWORD, _USER_INFO):
        text = shape.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    password = next(filter(None, found.groups()), "")
    return found[0].replace(password, MASK) if password else found[0]


def _checked_key(key: SecretStr | None) -> SecretStr | None:
    if key is None or not key.get_secret_value():
        return None
    text = key.get_secret_value()
    if text != text.strip() or not text.isprintable() or not text.isascii() or " " in text:
        raise ValueError("contains a space, a line break or another character that a header cannot carry")
    return key


def _required_key(key: SecretStr) -> SecretStr:
    checked = _checked_key(key)
    if checked is None:
        raise ValueError("is empty")
    return checked


def _checked_reasons(reasons: tuple[str, ...]) -> tuple[str, ...]:
    for number, reason in enumerate(reasons, 1):
        if not reason.strip():
            raise ValueError(f"entry {number} is empty, and would match every reason")
        try:
            re.compile(reason, re.IGNORECASE)
        except (re.error, RecursionError, OverflowError) as error:
            position = getattr(error, "pos", None)
            at = "" if position is None else f" (see its character {position + 1})"
            raise ValueError(f"entry {number} is no regular expression{at}") from None
    return reasons


def _checked_ledger_url(url: SecretStr | None) -> SecretStr | None:
    """A database that is known, and an address that can be parsed; whether it answers is seen when it is opened."""
    if url is None or not url.get_secret_value():
        return None
    text = url.get_secret_value()
    scheme = text.partition(":")[0]
    if scheme not in _LEDGER_SCHEMES or not text.startswith(f"{scheme}://"):
        raise ValueError(
            "must begin with postgresql:// (or sqlite:///); libpq's `host=... password=...` is not read"
        )
    if scheme == "sqlite":
        if not text.startswith("sqlite:///") or text == "sqlite:///":
            raise ValueError("must name its file: sqlite:///path/to/ledger.sqlite3")
        return url
    if text != text.strip() or not text.isprintable():
        raise ValueError("contains a space, a line break or another character that no address has")
    try:
        urlsplit(text)
    except ValueError:
        raise ValueError("is an address that cannot be parsed") from None
    return url


def _checked_sources(sources: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for number, (name, address) in enumerate(sources.items(), 1):
        if not name.strip() or not address.get_secret_value().strip():
            raise ValueError(f"entry {number} has no name, or no address")
        if "://" in name:
            raise ValueError(f"entry {number} has an address for its name")
    return sources


def _checked_environments(values: dict[str, T]) -> dict[str, T]:
    for number, name in enumerate(values, 1):
        if not re.fullmatch(ENVIRONMENT_PATTERN, name):
            raise ValueError(f"entry {number} has a name that no environment can have")
    return values


def _checked_retire_limit(text: str) -> str:
    """As the catalog's RetireLimit reads it."""
    words = [word for word in re.split(r"[\s,;]+|\band\b", text) if word]
    if not words or not all(re.fullmatch(_RETIRE_WORD, word) for word in words):
        raise ValueError("must be a count, a percentage, or both: 20,10%")
    return text


def _in_groups(addresses: object) -> object:
    """One list of addresses is one service; a list of such lists, several."""
    if isinstance(addresses, list | tuple) and addresses and all(isinstance(url, str) for url in addresses):
        return (tuple(addresses),)
    return addresses


def _checked_code(code: SecretStr | None) -> SecretStr | None:
    text = code.get_secret_value() if code is not None else "        "
    if len(text) < 8 or (text.startswith("sha256:") and not re.fullmatch(r"sha256:[0-9a-f]{64}", text)):
        raise ValueError("must have 8 characters or more, or be sha256: and 64 hexadecimal digits")
    return code


def _checked_currency(code: str | None) -> str | None:
    """An ISO 4217 code, in capitals."""
    if code is None:
        return None
    from babel.numbers import is_currency

    if not is_currency(code.strip().upper()):
        raise ValueError("must be a currency's ISO 4217 code: EUR, USD, JPY")
    return code.strip().upper()


_Keys = dict[str, Annotated[SecretStr, AfterValidator(_required_key)]]
_Url = Annotated[str, AfterValidator(checked_url)]
_Duration = Annotated[timedelta, Field(gt=timedelta(0))]
_Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Settings(BaseSettings):
    """Everything that is set by environment. Immutable; secrets are masked wherever it is printed."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    #: Base address of the service, ending with its version segment. None: the embedded studio is started.
    studio_url: Annotated[str | None, AfterValidator(_checked_url)] = None
    #: The key of `environment` as it is set, when the addresses are listed by environment.
    api_key: Annotated[SecretStr | None, AfterValidator(_checked_key)] = None
    #: The environments' keys, as JSON: {"staging": "...", "production": "..."}.
    api_keys: Annotated[_Keys, AfterValidator(_checked_environments)] = Field(default_factory=dict)
    #: Hosts to which the key may go without encryption, as JSON: ["10.0.0.5"]; this machine's own need none.
    plain_http: tuple[str, ...] = ()
    #: Ledger and local state.
    home: Path = Path(".patternmill")
    #: Scopes request IDs and the ledger, together with the catalog's name.
    environment: EnvironmentName = "staging"
    #: None: SQLite under `home`. postgresql://... for several machines.
    ledger_url: Annotated[SecretStr | None, AfterValidator(_checked_ledger_url)] = None
    #: The most jobs in flight at once.
    max_in_flight: Window = 200
    #: Requests a second, creates and polls apart.
    create_rate: _Rate = 500.0
    poll_rate: _Rate = 300.0
    #: One exchange: connecting, sending, and reading the whole answer.
    request_timeout: _Duration = timedelta(seconds=30)
    #: How long a job is waited for before its row reads `waiting`.
    job_timeout: _Duration = timedelta(minutes=30)
    #: How long one create is sent again while its fate is unknown.
    create_timeout: _Duration = timedelta(minutes=10)
    #: Past this age an unanswered request is not sent again without a person's decision.
    in_doubt_limit: _Duration = timedelta(hours=12)
    #: How many times an item is tried when the service says that its job failed.
    attempts: Attempts = 2
    #: Patterns of text (regular expressions, case ignored) in a failed job's reason that make the failure final.
    final_reasons: Annotated[tuple[str, ...], AfterValidator(_checked_reasons)] = ()
    #: The longest prompt accepted, in characters.
    prompt_limit: int = Field(default=4000, ge=1)
    #: The currency of all amounts, by its ISO 4217 code. None: people read them in minor units.
    currency: Annotated[str | None, AfterValidator(_checked_currency)] = None
    #: What one pattern and one product cost, in minor units (cents); 0 where costs are not counted.
    pattern_price: int = Field(default=0, ge=0, le=MOST_PRICE)
    product_price: int = Field(default=0, ge=0, le=MOST_PRICE)
    #: The most that may be spent a day (UTC) over all catalogs of the environment, in minor units.
    day_budget: int | None = Field(default=None, ge=0, le=MOST_AMOUNT)
    #: A plan that would buy more items, or may cost more at worst (minor units), waits for a person. None: none does.
    approve_above_items: int | None = Field(default=None, ge=0)
    approve_above_cost: int | None = Field(default=None, ge=0, le=MOST_AMOUNT)
    #: What an approver has to type: the code, or `sha256:` and its digest, so that no worker has the code itself.
    approval_code: Annotated[SecretStr | None, AfterValidator(_checked_code)] = None
    #: How long a flow run waits for a person's decision on its plan.
    approval_timeout: Annotated[timedelta, Field(ge=timedelta(seconds=10))] = timedelta(hours=24)
    #: The addresses of the environments, as JSON: {"staging": "https://...", "production": "https://..."}.
    environment_urls: Annotated[dict[str, _Url], AfterValidator(_checked_environments)] = Field(
        default_factory=dict
    )
    #: Addresses that are one service, which has moved or has several names: a JSON list; or a list of such lists.
    same_service: Annotated[tuple[tuple[_Url, ...], ...], BeforeValidator(_in_groups)] = ()
    #: In production, more items than this are bought only when `production` is confirmed.
    confirm_above: int = Field(default=100, ge=0)
    #: `production`: purchases there need no further confirmation; `duplicates`: nor do another catalog's products.
    confirm: Annotated[Confirmation | None, BeforeValidator(confirmation)] = None
    #: Set by the command line when it starts the embedded studio.
    embedded: bool = False
    #: The most rows that a refresh retires without a person's approval: a count, a percentage, or both.
    retire_at_most: Annotated[str, AfterValidator(_checked_retire_limit)] = "20,10%"
    #: Addresses of sources by name, as JSON, for those with a secret in them: a schedule then says the name alone.
    sources: Annotated[dict[str, SecretStr], AfterValidator(_checked_sources)] = Field(default_factory=dict)
    #: Folders that runs of a deployment may read files from and write results to, next to the home. None: the one they
    #: run in. The command line is not bound to them.
    source_folders: tuple[Path, ...] | None = None
    #: Rows a nested flow run, so that the page in the Prefect UI stays usable.
    shard_rows: int = Field(default=500, ge=1, le=2500)

    #: Address and key were written down together, by the name of the environment.
    _pair_is_explicit: bool = PrivateAttr(default=False)

    @property
    def pair_is_explicit(self) -> bool:
        return self._pair_is_explicit

    def confirms(self, purchase: str) -> bool:
        return self.confirm is not None and purchase in self.confirm.split(",")

    def service_at(self, url: str) -> str:
        """What names the service at an address: the same for every address of that service."""
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
    """The settings as they are written down, before an environment's address and key are chosen.

    For who finds out which environment is meant only with their help. Raises ConfigurationError.
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
        found = {"studio_url": _checked_url(url), "api_key": _checked_key(key)}
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
            f"The address {url} is from the Prefect server, and the key is not: whoever may write there could have the "
            "key sent anywhere.",
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
    """Take the address from the environments' list where none is named, and refuse one that belongs to another."""
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
    url_source = _source_of("studio_url") or _source_of("environment_urls")
    key_source = _source_of("api_keys" if own is not None else "api_key")
    if settings.api_key is not None and url_source == _FILE and key_source == _ENVIRONMENT:
        raise ConfigurationError(
            f"The address {settings.studio_url} is from .env in this folder, and the key is from elsewhere: "
            "it would go wherever the folder says.",
            code="key_from_elsewhere",
            remedy="If you trust this address, set it where the key is set, or put the key into .env. "
            "Nothing was sent.",
        )
    settings._pair_is_explicit = own is not None and settings.environment in settings.environment_urls
    return settings


def _refuse_key_of_another_environment(settings: Settings) -> None:
    """The one key is that of the environment that is set; another that is named on the way needs its own."""
    configured = _value_of("environment") or Settings.model_fields["environment"].default
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
        remedy=f'Use https://, or set PATTERNMILL_PLAIN_HTTP=["{host}"] if the way there is your own. '
        "Nothing was sent.",
    )


_FILE, _ENVIRONMENT = "file", "environment"


def _source_of(field: str) -> str | None:
    """Where a setting comes from: the environment wins over .env; None where it is not set."""
    name = f"{PREFIX}{field}".upper()
    if any(key.upper() == name and value for key, value in os.environ.items()):
        return _ENVIRONMENT
    return _FILE if _file_values().get(name) else None


def _value_of(field: str) -> str | None:
    name = f"{PREFIX}{field}".upper()
    exported = next((value for key, value in os.environ.items() if key.upper() == name and value), None)
    return exported or _file_values().get(name)


def _file_values() -> Mapping[str, str | None]:
    return {key.upper(): value for key, value in dotenv_values(ENV_FILE).items()}


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
