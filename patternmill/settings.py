"""Settings from the environment, and the few that a folder's `.env` may hold."""

import json
import os
import re
import tomllib
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from patternmill.errors import Refusal
from patternmill.text import parse_amount

PREFIX = "PATTERNMILL_"
#: The environment of the embedded studio, which costs nothing and is at another address each time.
STUDIO = "studio"
#: A shorter secret would be found in any text; no service gives such keys.
LEAST_SECRET = 8
#: An address and its key come from one source, so that a key is never sent to an address of another.
_PAIR = frozenset({"studio_url", "api_key"})
_FROM_FOLDER = _PAIR | {"currency", "price_pattern", "price_product"}


def _is_row_limit(text: str) -> str:
    if not re.fullmatch(r"\s*\d+\s*%?\s*(,\s*\d+\s*%?\s*)?", text):
        raise ValueError("it is no limit of rows; write 20, 10% or 20,10%")
    return text


Amount = Annotated[int, BeforeValidator(parse_amount), Field(ge=0)]
RowLimitText = Annotated[str, AfterValidator(_is_row_limit)]


def _is_header(secret: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[\w-]+: *[!-~][ -~]*", secret.get_secret_value(), re.ASCII):
        raise ValueError("it is no header; write NAME: VALUE")
    return secret


class NamedSource(BaseModel):
    """The address of a sheet, and the header that opens it, such as `Authorization: Bearer …`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr
    header: Annotated[SecretStr, AfterValidator(_is_header)] = SecretStr("")


def _read_sources(value: Any) -> Any:
    """Return sources by their names, of a JSON object or a TOML file. No message repeats what it holds."""
    if isinstance(value, str):
        try:
            is_json = value.lstrip().startswith("{")
            value = (
                json.loads(value) if is_json else tomllib.loads(Path(value).expanduser().read_text("utf-8"))
            )
        except (OSError, ValueError):
            raise ValueError("it is neither a JSON object nor the path of a TOML file") from None
    return {name: {"url": one} if isinstance(one, str) else one for name, one in dict(value).items()}


class Settings(BaseSettings):
    """What the surroundings say. Durations are ISO 8601: `PT30S`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, validate_default=False)

    #: The service's base address, which ends with its version segment, and its key.
    studio_url: str = ""
    api_key: SecretStr = SecretStr("")
    environment: Annotated[str, Field(pattern=r"^([a-z][a-z0-9-]{0,30})?$")] = ""
    home: Path = Path(".patternmill")
    #: A PostgreSQL address for several machines; else a file in the home.
    ledger_url: SecretStr | None = None
    #: What the service promises beyond the published interface, as TOML: models, references, refinements, pictures.
    service_file: Path | None = None
    #: Where sheets are, by the names that stand for them.
    sources: Annotated[dict[str, NamedSource], NoDecode, BeforeValidator(_read_sources)] = {}
    currency: str = ""
    price_pattern: Amount = 0
    price_product: Amount = 0
    #: The most that all runs of the environment spend in a day (UTC); none: no limit.
    day_budget: Amount | None = None
    #: More items than this in one run are asked about.
    confirm_above: Annotated[int, Field(ge=0)] = 100
    change_at_most: RowLimitText = "20,10%"
    retire_at_most: RowLimitText = "20,10%"
    max_in_flight: Annotated[int, Field(ge=1, le=2000)] = 200
    #: Attempts at an item whose jobs fail.
    attempts: Annotated[int, Field(ge=1, le=5)] = 2
    request_timeout: timedelta = timedelta(seconds=30)
    create_timeout: timedelta = timedelta(minutes=10)
    job_timeout: timedelta = timedelta(minutes=30)
    #: The age at which the service may have forgotten a request ID.
    in_doubt_limit: timedelta = timedelta(hours=12)
    #: `json`: a line on standard error for each transition.
    log_format: Literal["text", "json"] = "text"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment first, then what a folder's `.env` is trusted with."""
        folder = _of_folder(Path(".env"))
        trusted = _FROM_FOLDER - (_PAIR if _PAIR & set(env_settings()) else set())
        for name in folder.keys() - trusted:
            del folder[name]
        return init_settings, env_settings, InitSettingsSource(settings_cls, folder)

    @cached_property
    def service(self) -> str:
        """Return the name of the environment whose service is asked."""
        return self.environment or ("production" if self.studio_url else STUDIO)

    @cached_property
    def folder(self) -> Path:
        """Return the home as a folder that only its user can read."""
        path = self.home.expanduser()
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    @cached_property
    def ledger_address(self) -> str:
        """Return the address of the ledger's database, or the path of its file."""
        return self.ledger_url.get_secret_value() if self.ledger_url else str(self.folder / "ledger.sqlite3")

    def without_secrets(self, text: str) -> str:
        """Return a text without the secrets of these settings, which a person may have copied into it."""
        sources = [secret for one in self.sources.values() for secret in (one.url, one.header)]
        secrets = [one.get_secret_value() for one in (self.api_key, self.ledger_url, *sources) if one]
        for secret in filter(lambda one: len(one) >= LEAST_SECRET, secrets):
            text = text.replace(secret, "***")
        return text

    def price(self, stage: str) -> int:
        """Return what an item of a stage costs, in ten-thousandths."""
        return {"pattern": self.price_pattern, "product": self.price_product}.get(stage, 0)


def _of_folder(path: Path) -> dict[str, str]:
    """Return what a folder's `.env` sets. Raises ValueError for what it may not hold, or if it is somebody else's."""
    if not path.is_file():
        return {}
    values = {name: text for name, text in dotenv_values(path).items() if text and name.startswith(PREFIX)}
    found = {name.removeprefix(PREFIX).lower(): text for name, text in values.items()}
    if found and path.stat().st_uid != os.getuid():
        raise Refusal("wrong_setting", f"{path} belongs to another user.", "Export what it sets.")
    if others := sorted(set(found) - _FROM_FOLDER):
        message = f"{path} sets {PREFIX}{others[0].upper()}, which a folder may not decide."
        raise Refusal("wrong_setting", message, "Export it instead.")
    return found


def read_settings() -> Settings:
    """Return the settings. Raises Refusal for one that cannot be used."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"{PREFIX}{'.'.join(map(str, first['loc'])).upper()}"
        raise Refusal("wrong_setting", f"{name} cannot be used: {first['msg']}.", "Correct it.") from None
