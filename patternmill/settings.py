"""The settings of a run: read from the environment once, in the composition root, and handed down as values."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from patternmill.errors import ConfigurationError

PREFIX = "PATTERNMILL_"
MASK = "**********"
#: In a query or in libpq's own form, where a value may stand in quotes.
_PASSWORD = re.compile(r"(?i)\b(?:ssl)?(?:password|passwd|pwd)\s*=\s*(?:'((?:[^'\\]|\\.)*)'?|([^\s&'\"#;]+))")
_USER_INFO = re.compile(r"://[^\s/@:'\"]*:([^\s/'\"]+)@")
#: In what is known to be an address, a password may have any character.
_LOOSE_USER_INFO = re.compile(r"://[^/@:]*:(.+)@")
#: Shorter ones are words that a mask would strike everywhere.
_SHORTEST_PASSWORD = 4


def _checked_url(url: str | None) -> str | None:
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http:// or https:// address")
    if parts.username or parts.password:
        raise ValueError("must not contain a user name or password; the key goes into PATTERNMILL_API_KEY")
    if parts.query or parts.fragment:
        raise ValueError("must end with its path, without ? or #")
    return url.rstrip("/")


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


def _checked_ledger_url(url: SecretStr | None) -> SecretStr | None:
    if url is not None and not re.match(r"postgres(ql)?://|sqlite:///", url.get_secret_value()):
        raise ValueError(
            "must begin with postgresql:// (or sqlite:///); libpq's `host=... password=...` is not read"
        )
    return url


def _checked_key(key: SecretStr | None) -> SecretStr | None:
    if key is None or not key.get_secret_value():
        return None
    text = key.get_secret_value()
    if text != text.strip() or not text.isprintable() or not text.isascii() or " " in text:
        raise ValueError("contains a space, a line break or another character that a header cannot carry")
    return key


class Settings(BaseSettings):
    """Everything that is set by environment. Immutable; secrets are masked wherever it is printed."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True
    )

    #: Base address of the service, ending with its version segment. None: the embedded studio is started.
    studio_url: Annotated[str | None, AfterValidator(_checked_url)] = None
    api_key: Annotated[SecretStr | None, AfterValidator(_checked_key)] = None
    #: Ledger and local state.
    home: Path = Path(".patternmill")
    #: Scopes request IDs and the ledger, together with the catalog's name.
    environment: str = Field(default="staging", pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    #: None: SQLite under `home`. postgresql://... for several machines.
    ledger_url: Annotated[SecretStr | None, AfterValidator(_checked_ledger_url)] = None
    #: The most jobs in flight at once.
    max_in_flight: int = Field(default=200, ge=1, le=5000)
    #: Requests a second, creates and polls apart.
    create_rate: float = Field(default=500.0, gt=0)
    poll_rate: float = Field(default=300.0, gt=0)
    #: One exchange: connecting, sending, and reading the whole answer.
    request_timeout: timedelta = timedelta(seconds=30)
    #: How long a job is waited for before its row reads `waiting`.
    job_timeout: timedelta = timedelta(minutes=30)
    #: How long one create is sent again while its fate is unknown.
    create_timeout: timedelta = timedelta(minutes=10)
    #: Past this age an unanswered request is not sent again without a person's word.
    in_doubt_limit: timedelta = timedelta(hours=12)
    #: How many times an item is tried when the service says that its job failed.
    attempts: int = Field(default=2, ge=1, le=10)
    #: Patterns of text (regular expressions, case ignored) in a failed job's reason that make the failure final.
    final_reasons: tuple[str, ...] = ()
    #: The longest prompt accepted, in characters.
    prompt_limit: int = Field(default=4000, ge=1)
    #: What one pattern and one product cost, in minor units (cents); 0 where costs are not counted.
    pattern_price: int = Field(default=0, ge=0)
    product_price: int = Field(default=0, ge=0)
    #: The most that may be spent a day (UTC) over all catalogs of the environment, in minor units.
    day_budget: int | None = Field(default=None, ge=0)
    #: A plan that would buy more items, or may cost more at worst (minor units), waits for a person. None: none does.
    approve_above_items: int | None = Field(default=None, ge=0)
    approve_above_cost: int | None = Field(default=None, ge=0)
    #: How long a flow run waits for a person's word on its plan.
    approval_timeout: Annotated[timedelta, Field(ge=timedelta(seconds=10))] = timedelta(hours=24)
    #: The addresses of the environments, as JSON: {"staging": "https://...", "production": "https://..."}.
    environment_urls: dict[str, Annotated[str, AfterValidator(_checked_url)]] = Field(default_factory=dict)
    #: In production, more items than this are bought only when `production` is confirmed.
    confirm_above: int = Field(default=100, ge=0)
    #: `production`: purchases there need no further confirmation.
    confirm: str | None = None
    #: Set by the command line when it starts the embedded studio.
    embedded: bool = False
    #: The most rows that a refresh retires without a person's word: a count, a percentage, or both.
    retire_at_most: str = "20,10%"
    #: Addresses of sources by name, as JSON, for those with a secret in them: a schedule then says the name alone.
    sources: dict[str, SecretStr] = Field(default_factory=dict)
    #: Folders that runs of a deployment may read files from and write results to, beside the home. None: the one they
    #: run in. The command line is not bound to them.
    source_folders: tuple[Path, ...] | None = None
    #: Rows a nested flow run, so that the page in the Prefect UI stays usable.
    shard_rows: int = Field(default=500, ge=1, le=2500)


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment and `.env`; `overrides` that are not None win.

    Raises ConfigurationError that names every wrong variable, without its value.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = Settings(**given)  # type: ignore[arg-type]
    except SettingsError as error:
        field = re.search(r'field "(\w+)"', str(error))
        raise _unusable([f"{PREFIX}{field[1].upper() if field else '*'}: must be JSON"]) from None
    except ValidationError as error:
        faults = [f"{PREFIX}{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors()]
        raise _unusable(faults) from None
    return _addressed(settings)


def _unusable(faults: list[str]) -> ConfigurationError:
    return ConfigurationError(
        "The settings cannot be used: " + "; ".join(faults) + ".",
        remedy="Correct them in the environment or in .env.",
    )


def _addressed(settings: Settings) -> Settings:
    """Take the address from the environments' list where none is named, and refuse one that belongs to another."""
    belongs = {url: name for name, url in settings.environment_urls.items()}
    if settings.studio_url is None:
        if settings.environment_urls and settings.environment not in settings.environment_urls:
            raise ConfigurationError(
                f"PATTERNMILL_ENVIRONMENT_URLS has no address for {settings.environment!r}; "
                f"it has {', '.join(settings.environment_urls)}.",
                remedy="Name one of these environments, or add its address.",
            )
        return settings.model_copy(update={"studio_url": settings.environment_urls.get(settings.environment)})
    its = belongs.get(settings.studio_url, settings.environment)
    if its != settings.environment:
        raise other_environment(settings.studio_url, its, settings.environment)
    return settings


def other_environment(url: str, its: str, named: str) -> ConfigurationError:
    """The refusal of an address that belongs to another environment than the one named."""
    return ConfigurationError(
        f"{url} belongs to the environment {its!r}, and {named!r} is named.",
        remedy="Name the environment of the address (--environment, PATTERNMILL_ENVIRONMENT), or the other address.",
    )
