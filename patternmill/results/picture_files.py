"""Pictures kept next to a gallery, for services that do not show theirs for long."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from patternmill.ledger.records import RowResult, RunRecord

FOLDER = "pictures"
#: The option in a run's record that makes its gallery look for them.
KEPT_PICTURES = "pictures_beside"


def picture_name(url: str) -> str:
    """The file name of a picture: from its address's path alone, as the port of a local service changes."""
    return f"{hashlib.sha256(urlsplit(url).path.encode()).hexdigest()[:24]}.png"


def pictures_of(record: RunRecord, rows: Iterable[RowResult]) -> dict[str, str]:
    """From the address of each picture to its place next to the gallery; empty where the service shows them."""
    if not record.options.get(KEPT_PICTURES):
        return {}
    items = (item.last for row in rows for item in (row.pattern, row.product) if item is not None)
    urls = (attempt.picture_url for attempt in items if attempt is not None)
    return {url: f"{FOLDER}/{picture_name(url)}" for url in urls if url is not None}


def picture_urls(results_jsonl: Path) -> Iterator[str]:
    """The addresses of a run's pictures, products first as they are what a gallery shows large."""
    for stage in ("product", "pattern"):
        seen: set[str] = set()
        with results_jsonl.open(encoding="utf-8") as lines:
            for line in lines:
                url = (json.loads(line).get(stage) or {}).get("picture_url")
                if url is not None and url not in seen:
                    seen.add(url)
                    yield url
