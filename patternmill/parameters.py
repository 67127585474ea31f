"""What the options of a run may be: types with their bounds, for the settings, the requests and the flows' forms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from patternmill.errors import ConfigurationError

PRODUCTION = "production"
DUPLICATES = "duplicates"
ENVIRONMENT_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"

EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_PATTERN)]
#: It names a folder too.
CatalogName = Annotated[str, Field(pattern=r"^\w[\w .-]{0,62}$", max_length=63)]
SourceName = Annotated[str, Field(min_length=1)]
#: Of patterns, products, rows, or minor units of money.
Count = Annotated[int, Field(ge=0)]
Attempts = Annotated[int, Field(ge=1, le=10)]
Window = Annotated[int, Field(ge=1, le=5000)]
Parts = Annotated[int, Field(ge=1, le=64)]
#: Refused by the form and the server; elsewhere FailureLimit.parse has a longer message.
MaxFailures = Annotated[
    str | None, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)$"})
]
#: What a retry can change.
RetriableStatus = Literal["failed", "cancelled", "not_started", "in_doubt", "waiting"]
#: What a person confirms: a large purchase in production, a second purchase of another catalog's products.
Confirmation = Literal["production", "duplicates", "production,duplicates"]


def confirmation(names: str | Iterable[str] | None) -> Confirmation | None:
    """Read `production, duplicates` or a list of these names. Raises ValueError."""
    parts = re.split(r"[\s,]+", names) if isinstance(names, str) else (names or ())
    found = {part for part in parts if part}
    if found - {PRODUCTION, DUPLICATES}:
        raise ValueError(f"must be one of these, or both with a comma between: {PRODUCTION}, {DUPLICATES}")
    if len(found) == 2:
        return "production,duplicates"
    if not found:
        return None
    return "production" if PRODUCTION in found else "duplicates"


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
