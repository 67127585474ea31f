"""The takes of a catalog's patterns: what was made of the same prompt with the same parameters, each by its number."""

from __future__ import annotations

import json
from dataclasses import dataclass

from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import made_patterns
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.settings import Settings


@dataclass(frozen=True, slots=True)
class Take:
    """One pattern that was made."""

    item: ItemKey
    #: From 1.
    number: int
    #: What all takes of a pattern have in common.
    content: str
    pattern_id: str
    picture_url: str | None


def pictures_of_takes(settings: Settings, environment: str, catalog: str) -> list[str]:
    """The addresses of the pictures of patterns of which a catalog has several takes."""
    with open_ledger(settings) as ledger:
        takes = takes_made(ledger, environment, catalog).values()
    several = {take.content for take in takes if take.number > 1}
    return [take.picture_url for take in takes if take.picture_url is not None and take.content in several]


def takes_made(ledger: Ledger, environment: str, catalog: str) -> dict[ItemKey, Take]:
    """Every pattern that a catalog ever had made, by its item."""
    found = {}
    for item, content, pattern_id, picture_url in made_patterns(ledger, environment, catalog):
        parts = json.loads(content)
        number = int(parts.pop("take", 1))
        same = json.dumps(parts, sort_keys=True)
        found[item] = Take(item, number, same, pattern_id, picture_url)
    return found
