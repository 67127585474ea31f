"""What the options of a run may be: types with their bounds, for the settings, the requests and the flows' forms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

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
#: Refused by the form and the server; elsewhere FailureLimit.parse says more about what is wrong.
MaxFailures = Annotated[
    str | None, Field(json_schema_extra={"pattern": r"^(\d{1,9}|(\d{1,2}(\.\d+)?|100)\s*%)$"})
]
#: What a retry can change.
RetriableStatus = Literal["failed", "cancelled", "not_started", "in_doubt", "waiting"]
#: What a person confirms: a large purchase in production, a second purchase of another catalog's products.
Confirmation = Literal["production", "duplicates", "production,duplicates"]


def confirmation(words: str | Iterable[str] | None) -> Confirmation | None:
    """Read `production, duplicates` or a list of these words. Raises ValueError."""
    parts = re.split(r"[\s,]+", words) if isinstance(words, str) else (words or ())
    found = {part for part in parts if part}
    if found - {PRODUCTION, DUPLICATES}:
        raise ValueError(f"must be of these words, with commas between them: {PRODUCTION}, {DUPLICATES}")
    if len(found) == 2:
        return "production,duplicates"
    if not found:
        return None
    return "production" if PRODUCTION in found else "duplicates"
