"""Which column of a file is which column of a catalog, where the two have different names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from patternmill.catalog.rows import header_key

#: The name in a run's options under which the mapping is on record.
MAPPING = "mapping"


@dataclass(frozen=True)
class ColumnMapping:
    """By the key of a file's header: the column that it is, as inputs/README.md names it (`prompt`, `option:size`)."""

    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, str]) -> Self:
        """`columns`: by header, in whatever case and with whatever spaces."""
        return cls({header_key(header): name for header, name in columns.items()})

    def applied(self, header: Sequence[str]) -> tuple[str, ...]:
        """The header as a catalog's own."""
        return tuple(self.columns.get(header_key(cell), cell) for cell in header)


NO_MAPPING = ColumnMapping()
