"""What settings and options of a run may be: types with their bounds, for the settings, the requests and the forms.

Messages about settings never show the value, which may be a secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo

from patternmill.addresses import checked_url
from patternmill.errors import ConfigurationError
from patternmill.money import read_money

#: The environment where none is named or set.
STAGING = "staging"
DUPLICATES = "duplicates"
#: That the ledger is not the one that the results beside it were written from.
LEDGER = "ledger"
#: That rows which changed only because their columns are read otherwise are bought so.
MAPPING_CHANGE = "mapping"
ENVIRONMENT_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"

EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_PATTERN)]
#: It names a folder too.
CatalogName = Annotated[str, Field(pattern=r"^\w[\w .-]{0,62}$", max_length=63)]


def checked_place(path: Path) -> Path:
    """Raises ValueError for an address."""
    # As a path has it.
    if re.match(r"\w{2,}:/", str(path)):
        raise ValueError("must be a path, not an address: copy it from there")
    return path


Folder = Annotated[Path, AfterValidator(checked_place)]
SourceName = Annotated[str, Field(min_length=1)]
#: Of one pattern.
Takes = Annotated[int, Field(ge=1, le=9)]
#: Of patterns, products or rows.
Count = Annotated[int, Field(ge=0)]
Attempts = Annotated[int, Field(ge=1, le=10)]
Window = Annotated[int, Field(ge=1, le=5000)]
#: Refused by the form and the server; elsewhere RunOptions has a longer message.
MaxFailures = Annotated[str, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)?$"})]
#: Of one product in a checkout: more than that is a slip of the keyboard.
MOST_OF_A_PRODUCT = 100_000
Quantity = Annotated[int, Field(ge=1, le=MOST_OF_A_PRODUCT)]
#: Of one checkout.
Lines = Annotated[int, Field(ge=1, le=1000)]
#: Of the orders of a catalog.
OrderName = Annotated[str, Field(pattern=r"^[\w][\w .-]{0,62}$")]
#: A time to wait: a number and its unit.
WAIT_TIME = r"^\d{1,5}[smhd]$"
WaitTime = Annotated[str, Field(pattern=WAIT_TIME)]
#: What a person confirms: a large purchase in an environment, by its name; a second one of what exists.
Confirmation = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}(,[a-z0-9][a-z0-9_-]{0,62})*$")]


def confirmation(names: str | Iterable[str] | None) -> Confirmation | None:
    """Read `production, duplicates` or a list of these names."""
    parts = re.split(r"[\s,]+", names) if isinstance(names, str) else (names or ())
    return ",".join(sorted({part for part in parts if part})) or None


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def wait_time(text: str) -> timedelta:
    """Read a WaitTime: `30m`."""
    return timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])


@dataclass(frozen=True)
class RetireLimit:
    """How many rows may be retired without a person's decision: neither count nor share may be exceeded."""

    count: int = 20
    #: Of the rows that the catalog has. One row is never too many.
    share: float = 0.1

    @classmethod
    def parse(cls, text: str) -> RetireLimit:
        """Read `20`, `10%` or `20,10%`; what is not named has its default. Raises ConfigurationError."""
        count, share = cls.count, cls.share
        for part in re.findall(r"[^\s,;]+", text):
            if re.fullmatch(r"\d{1,9}", part):
                count = int(part)
            elif re.fullmatch(r"(\d{1,2}(\.\d+)?|100)%", part):
                share = float(part[:-1]) / 100
            elif part != "and":
                raise ConfigurationError(
                    f"{part!r} does not say how many rows may be retired.",
                    remedy="Write a count, a percentage, or both: 20,10%.",
                )
        return cls(count, share)

    def allows(self, removed: int, known: int) -> bool:
        """Whether so many of so many rows may be retired. Not all of them: an empty source is a mistake first."""
        if removed == known:
            return removed == 0
        return removed <= min(self.count, max(1, math.floor(self.share * known + 1e-9)))


#: In minor units: the highest limit and price, so that no sum over a catalog passes 64 bits.
MOST_AMOUNT = 10**15
MOST_PRICE = 10**11


def _checked_key(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if not text:
        raise ValueError("is empty")
    if not text.isprintable() or not text.isascii() or " " in text:
        raise ValueError("contains a space, a line break or another character that a header cannot carry")
    return key


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
    """Whether its database answers is seen when it is opened."""
    text = url.get_secret_value() if url is not None else ""
    if not text:
        return None
    if not text.startswith(("postgresql://", "postgres://", "sqlite://")):
        raise ValueError(
            "must begin with postgresql:// (or sqlite:///); libpq's `host=... password=...` is not read"
        )
    if text.startswith("sqlite://"):
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


def _checked_retire_limit(text: str) -> str:
    try:
        RetireLimit.parse(text)
    except ConfigurationError:
        raise ValueError("must be a count, a percentage, or both: 20,10%") from None
    return text


def _checked_currency(code: str) -> str:
    from babel.numbers import is_currency

    if not is_currency(code.strip().upper()):
        raise ValueError("must be a currency's ISO 4217 code: EUR, USD, JPY")
    return code.strip().upper()


def _minor_units(value: object, info: ValidationInfo) -> object:
    """Of an amount that a person wrote, in the currency of the same settings."""
    if not isinstance(value, str) or "currency" not in info.data:
        return value if not isinstance(value, str) else 0
    return read_money(value, info.data["currency"])


Url = Annotated[str, AfterValidator(checked_url)]
Key = Annotated[SecretStr, AfterValidator(_checked_key)]
#: A Dask scheduler's address, or the name of a file in the home: the arguments of Prefect's DaskTaskRunner as JSON.
Dask = Annotated[str, Field(pattern=r"^(tls://[^/\s]+:\d+|\w[\w-]*\.json)$")]
LedgerUrl = Annotated[SecretStr | None, AfterValidator(_checked_ledger_url)]
Sources = Annotated[dict[str, SecretStr], AfterValidator(_checked_sources)]
Reasons = Annotated[tuple[str, ...], AfterValidator(_checked_reasons)]
Confirmed = Annotated[Confirmation | None, BeforeValidator(confirmation)]
RetireLimitText = Annotated[str, AfterValidator(_checked_retire_limit)]
#: An ISO 4217 code, in any case.
Currency = Annotated[str, AfterValidator(_checked_currency)]
#: In minor units; as text, an amount as people write it.
Price = Annotated[int, Field(ge=0, le=MOST_PRICE), BeforeValidator(_minor_units)]
Amount = Annotated[int, Field(ge=0, le=MOST_AMOUNT), BeforeValidator(_minor_units)]
#: An amount of money as a person writes it: what it is depends on the currency of the settings.
AmountText = Annotated[
    str, Field(pattern=r"\d"), BeforeValidator(lambda value: str(value) if type(value) is int else value)
]
Duration = Annotated[timedelta, Field(gt=timedelta(0))]
