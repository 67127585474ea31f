"""The types of settings and options, with their bounds: for the settings, the requests and the forms.

Messages about settings never show the value, which may be a secret.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    model_validator,
)

from patternmill.addresses import checked_place, checked_url, is_remote, is_unencrypted, is_web_address
from patternmill.errors import ConfigurationError
from patternmill.money import read_money

#: The environment that is used where none is named or set.
STAGING = "staging"
#: Confirms that what another catalog has is bought again.
DUPLICATES = "duplicates"
#: Confirms a ledger other than the one that the results beside it were written from.
LEDGER = "ledger"
#: Confirms that more products are replaced than is allowed without a person.
CHANGES = "changes"
#: Confirms that a ledger in PostgreSQL was copied, and may be brought up to this version.
UPGRADE = "upgrade"
ENVIRONMENT_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"

EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_PATTERN)]
#: A catalog's name, which is also the name of a folder.
CatalogName = Annotated[str, Field(pattern=r"^\w[\w .-]{0,62}$", max_length=63)]


def checked_path(path: Path) -> Path:
    """Return a path as it is. Raises ValueError for an address."""
    # `s3:/...` was an address: Path drops a slash.
    if re.match(r"\w{2,}:/", str(path)):
        raise ValueError("must be a path, not an address: copy it from there")
    return path


_Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]
#: Where results go: a folder, or the address of a store.
Place = Annotated[_Text, AfterValidator(checked_place)]
#: A path, an address, or a name of PATTERNMILL_SOURCES.
SourceName = Annotated[_Text, Field(min_length=1)]
#: The number of takes of a pattern that a person chooses from.
Takes = Annotated[int, Field(ge=1, le=9)]
#: A number of items or rows.
Count = Annotated[int, Field(ge=0)]
Attempts = Annotated[int, Field(ge=1, le=10)]
Window = Annotated[int, Field(ge=1, le=5000)]
#: A limit of failures. The form and the server refuse other texts; elsewhere RunOptions does, with a longer message.
MaxFailures = Annotated[str, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)?$"})]
#: The most pieces of one product in a checkout: more than that is a slip of the keyboard.
MOST_OF_A_PRODUCT = 100_000
Quantity = Annotated[int, Field(ge=1, le=MOST_OF_A_PRODUCT)]
#: The number of lines in a checkout.
Lines = Annotated[int, Field(ge=1, le=1000)]
#: The name of an order.
OrderName = Annotated[str, Field(pattern=r"^[\w][\w .-]{0,62}$")]
#: A time to wait: a number and its unit.
WAIT_TIME = r"^\d{1,5}[smhd]$"
WaitTime = Annotated[str, Field(pattern=WAIT_TIME)]
#: What a person confirms, separated by commas: environments of large purchases, and the words above.
Confirmation = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}(,[a-z0-9][a-z0-9_-]{0,62})*$")]


def confirmation(names: str | Iterable[str] | None) -> Confirmation | None:
    """Read `production, duplicates` or a list of these names."""
    parts = re.split(r"[\s,]+", names) if isinstance(names, str) else (names or ())
    return ",".join(sorted({part for part in parts if part})) or None


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def wait_time(text: str) -> timedelta:
    """Read a WaitTime: `30m`."""
    return timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])


#: The number of replaced products that is never too large a share.
_FEW_CHANGES = 5


@dataclass(frozen=True)
class RowLimit:
    """The limits on rows of a catalog that change without a person's decision: neither may be exceeded."""

    count: int = 20
    #: The share of the catalog's rows, from 0 to 1.
    share: float = 0.1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `20`, `10%` or `20,10%`; the part that is left out keeps its default. Raises ConfigurationError."""
        count, share = cls.count, cls.share
        for part in re.findall(r"[^\s,;]+", text):
            if re.fullmatch(r"\d{1,9}", part):
                count = int(part)
            elif re.fullmatch(r"(\d{1,2}(\.\d+)?|100)%", part):
                share = float(part[:-1]) / 100
            elif part != "and":
                raise ConfigurationError(
                    f"{part!r} is not a number of rows.",
                    remedy="Write a count, a percentage, or both: 20,10%.",
                )
        return cls(count, share)

    def allows_retiring(self, rows: int, of: int) -> bool:
        """Return whether so many of a catalog's rows may be retired: never all, and one is never too large a share."""
        return rows < of and self._allows(rows, of, few=1) if rows else True

    def allows_replacing(self, products: int, of: int) -> bool:
        """Return whether this many of a catalog's products may be replaced. A handful is never too large a share."""
        return self._allows(products, of, few=_FEW_CHANGES)

    def _allows(self, changed: int, of: int, *, few: int) -> bool:
        """Return whether the count is within its limit and, unless they are few, the share too."""
        return changed <= min(self.count, max(few, math.floor(self.share * of + 1e-9)))


#: The highest limit and the highest price, in minor units: no sum over a catalog passes 64 bits.
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
        except (re.error, RecursionError, OverflowError):
            raise ValueError(f"entry {number} is no regular expression") from None
    return reasons


def _checked_ledger_url(url: SecretStr | None) -> SecretStr | None:
    """Return the address of a ledger; whether its database answers is seen when it is opened. Raises ValueError."""
    text = url.get_secret_value() if url is not None else ""
    if not text:
        return None
    if not re.fullmatch(r"postgres(ql)?://\S*|sqlite:///.+", text) or not text.isprintable():
        raise ValueError(
            "must be postgresql://user:password@host/database, or sqlite:///path/to/ledger.sqlite3"
        )
    try:
        urlsplit(text)
    except ValueError:
        raise ValueError("is an address that cannot be parsed") from None
    return url


Key = Annotated[SecretStr, AfterValidator(_checked_key)]


class Source(BaseModel):
    """An address that a catalog is read from, and the credential that opens it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    address: SecretStr
    #: The credential, which is sent to the origin of the address and nowhere else.
    bearer: Key | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_address(cls, value: object) -> object:
        return {"address": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        address = self.address.get_secret_value()
        if not address.strip():
            raise ValueError("an entry has no address")
        if self.bearer is not None and (not is_web_address(address) or is_unencrypted(address)):
            raise ValueError("an entry has a bearer, and its address does not begin with https://")
        if self.bearer is not None and "@" in urlsplit(address).netloc:
            raise ValueError("an entry has a bearer, and a user in its address too")
        return self


def _from_json(value: object) -> object:
    """Read a value that is written as JSON. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("must be JSON") from None


def _checked_sources(sources: dict[str, Source]) -> dict[str, Source]:
    bearers: dict[SecretStr, SecretStr | None] = {}
    for name, source in sources.items():
        if not name.strip() or "://" in name:
            raise ValueError("an entry has no name, or an address in its place")
        if bearers.setdefault(source.address, source.bearer) != source.bearer:
            raise ValueError("two entries have one address, and different bearers")
    return sources


def _checked_row_limit(text: str) -> str:
    try:
        RowLimit.parse(text)
    except ConfigurationError:
        raise ValueError("must be a count, a percentage, or both: 20,10%") from None
    return text


def _checked_store(address: str) -> str:
    if not is_remote(address):
        raise ValueError("must begin with s3://, gs://, az:// or abfs://")
    return checked_place(address)


def _checked_currency(code: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{3}", code.strip()):
        raise ValueError("must be a currency's ISO 4217 code: EUR, USD, JPY")
    return code.strip().upper()


def _minor_units(value: object, info: ValidationInfo) -> object:
    """Return the minor units of an amount that a person wrote, in the currency of the same settings."""
    if not isinstance(value, str) or "currency" not in info.data:
        return value if not isinstance(value, str) else 0
    return read_money(value, info.data["currency"])


Url = Annotated[str, AfterValidator(checked_url)]
#: A Dask scheduler's address, or the name of a file in the home: the arguments of Prefect's DaskTaskRunner as JSON.
Dask = Annotated[str, Field(pattern=r"^(tls://[^/\s]+:\d+|\w[\w-]*\.json)$")]
LedgerUrl = Annotated[SecretStr | None, AfterValidator(_checked_ledger_url)]
#: The sources by name, or the same as JSON.
Sources = Annotated[dict[str, Source], BeforeValidator(_from_json), AfterValidator(_checked_sources)]
#: The address of a store, and a path there.
Store = Annotated[str, AfterValidator(_checked_store)]
Reasons = Annotated[tuple[str, ...], BeforeValidator(_from_json), AfterValidator(_checked_reasons)]
Confirmed = Annotated[Confirmation | None, BeforeValidator(confirmation)]
RowLimitText = Annotated[str, AfterValidator(_checked_row_limit)]
#: An ISO 4217 code, in any case.
Currency = Annotated[str, AfterValidator(_checked_currency)]
#: A price in minor units; a text is read as an amount that a person wrote.
Price = Annotated[int, Field(ge=0, le=MOST_PRICE), BeforeValidator(_minor_units)]
Amount = Annotated[int, Field(ge=0, le=MOST_AMOUNT), BeforeValidator(_minor_units)]
#: An amount of money as a person writes it, which is read in the currency of the settings.
AmountText = Annotated[
    str, Field(pattern=r"\d"), BeforeValidator(lambda value: str(value) if type(value) is int else value)
]
Duration = Annotated[timedelta, Field(gt=timedelta(0))]
