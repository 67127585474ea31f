"""All fields by name: patterns that cover the whole ground."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from studio.art import strewn, tiled, woven
from studio.art.cloth import Cloth

FIELDS: MappingProxyType[str, Callable[[Cloth], str]] = MappingProxyType(
    {**woven.FIELDS, **tiled.FIELDS, **strewn.FIELDS}
)
NAMES = frozenset(FIELDS)
