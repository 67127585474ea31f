"""What can be seen in the pictures of a run: their digests, and which a person should look at first."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from patternmill.catalog.extras import Picture
from patternmill.catalog.reference_files import ReferencePlace, read_references
from patternmill.files import private_folder, replace_private
from patternmill.identifiers import ItemKey
from patternmill.looking.kept_pictures import picture_cache, picture_name
from patternmill.looking.takes import Take
from patternmill.results.row_results import RowResult

_LOOKS = "looks.json"
#: Of all colours together, 0 to 255: a picture with less is one colour.
_BLANK = 4.0
#: Of the 64 bits of a difference hash.
_ALIKE = 4
#: A group of pictures that share a quarter of their bits is compared only up to this size: more are all alike.
_MOST_COMPARED = 200


#: Names of colours in a prompt, with the sectors of 30 degrees of hue (red is 0, green 4, blue 8) that may be meant.
_COLOURS = {
    "red": (11, 0, 1),
    "pink": (10, 11, 0),
    "orange": (0, 1, 2),
    "brown": (0, 1, 2),
    "gold": (1, 2),
    "yellow": (1, 2),
    "green": (2, 3, 4, 5, 6),
    "teal": (5, 6, 7),
    "turquoise": (5, 6, 7),
    "blue": (6, 7, 8),
    "navy": (7, 8),
    "purple": (8, 9, 10),
    "violet": (8, 9, 10),
}
_COLOUR = re.compile(rf"\b({'|'.join(_COLOURS)})\b", re.IGNORECASE)
#: Of a picture's points, and of 255: where fewer have a hue, or it is paler or darker, a person does not see it.
_SEEN, _LEAST_COLOUR = 0.01, 38


#: One picture: its SHA-256 in hexadecimal, the 64 bits of its difference hash, and what a person sees of it: whether it
#: is blank, and the sectors of 30 degrees of hue that it has.
Look = tuple[str, int, bool, list[int]]


def look_at(picture: bytes) -> Look:
    """Raises OSError for what is no picture."""
    # It takes a while to load, and no verb's help needs it.
    from PIL import Image, ImageStat

    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB").resize((64, 64))
    grey = small.convert("L").resize((9, 8))
    points = grey.tobytes()
    rows = (points[start : start + 9] for start in range(0, 72, 9))
    bits = 0
    for row in rows:
        for left, right in pairwise(row):
            bits = bits * 2 + (left > right)
    is_blank = max(ImageStat.Stat(small).stddev) < _BLANK
    return hashlib.sha256(picture).hexdigest(), bits, is_blank, _hues(small.convert("HSV").tobytes())


def _hues(points: bytes) -> list[int]:
    """Of points of three bytes each: hue, saturation and value."""
    count = Counter(
        round(hue * 12 / 256) % 12
        for hue, saturation, value in zip(points[::3], points[1::3], points[2::3], strict=True)
        if min(saturation, value) >= _LEAST_COLOUR
    )
    return sorted(hue for hue, seen in count.items() if 3 * seen >= _SEEN * len(points))


class Looks:
    """The looks of a home's pictures, each taken once. `service`: the host that pictures may come from."""

    def __init__(self, home: Path, service: str | None = None) -> None:
        self._folder = picture_cache(home)
        self._host = urlsplit(service).hostname if service else None
        self._known = _read(self._folder / _LOOKS)

    def of(self, url: str | None) -> Look | None:
        """As it is known already; None: it was never at hand."""
        return self._known.get(picture_name(url)) if url is not None else None

    def path(self, name: str) -> Path | None:
        """The file of a picture by the name that pages have for it; None where it is not at hand."""
        path = self._folder / name
        return path if path.name == name and path.is_file() else None

    def take(self, urls: Iterable[str], step: Callable[[str], None] = lambda text: None) -> None:
        """Look at those that were never looked at, fetching what is not at hand. What cannot be had is left out."""
        missing = sorted({url for url in urls if self.of(url) is None})
        with ThreadPoolExecutor() as pool:
            for number, (url, look) in enumerate(zip(missing, pool.map(self._take, missing), strict=True)):
                if look is not None:
                    self._known[picture_name(url)] = look
                if number % 50 == 0:
                    step(f"Looking at pictures: {len(missing) - number:,} left.")
        if missing:
            with suppress(OSError):  # on a full disk they are taken anew the next time
                replace_private(private_folder(self._folder) / _LOOKS, json.dumps(self._known))

    def _take(self, url: str) -> Look | None:
        try:
            return look_at(self._bytes(url))
        except Exception:  # whatever a service's picture does to its parser: it is one that cannot be had
            return None

    def _bytes(self, url: str) -> bytes:
        path = self._folder / picture_name(url)
        if path.exists():
            return path.read_bytes()
        found = read_references([url], ReferencePlace(None, public_only=True, host=self._host))[url]
        if not isinstance(found, Picture):
            raise FileNotFoundError(found.message)
        replace_private(private_folder(self._folder) / path.name, found.raw)
        return found.raw


def _read(path: Path) -> dict[str, Look]:
    try:
        known: dict[str, Look] = TypeAdapter(dict[str, Look]).validate_json(path.read_bytes())
        return known
    except (OSError, ValueError):
        return {}


def digests(takes: Iterable[Take], looks: Looks) -> dict[ItemKey, str]:
    """By pattern item, the SHA-256 of its picture, where that is known."""
    return {take.item: look[0] for take in takes if (look := looks.of(take.picture_url)) is not None}


def doubts(rows: Iterable[RowResult], looks: Looks) -> dict[ItemKey, list[Mapping[str, object]]]:
    """By pattern item, why a person should look at it first: `{text, items}`, the items that it resembles."""
    patterns = {
        row.pattern.key: (row.pattern.picture_url, row.prompt) for row in rows if row.pattern is not None
    }
    seen = {key: look for key, (url, _) in patterns.items() if (look := looks.of(url)) is not None}
    found = defaultdict[ItemKey, list[Mapping[str, object]]](list)
    for key, (_, _, is_blank, hues) in seen.items():
        named = sorted({name.lower() for name in _COLOUR.findall(patterns[key][1])})
        if is_blank:
            found[key].append({"text": "Blank: one colour", "items": []})
        elif named and not any(hue in hues for name in named for hue in _COLOURS[name]):
            found[key].append({"text": f"No {' or '.join(named)} in it", "items": []})
    alike = defaultdict[ItemKey, list[ItemKey]](list)
    for one, other in _near({key: bits for key, (_, bits, is_blank, _) in seen.items() if not is_blank}):
        alike[one].append(other)
        alike[other].append(one)
    for key, others in alike.items():
        found[key].append({"text": f"Looks like {len(others)} other", "items": sorted(others)[:3]})
    return dict(found)


def _near(bits: Mapping[ItemKey, int]) -> Iterator[tuple[ItemKey, ItemKey]]:
    """Pairs whose hashes differ in few bits: such have at least one of five parts of the hash in common."""
    pairs: set[tuple[ItemKey, ItemKey]] = set()
    for part in range(_ALIKE + 1):
        groups = defaultdict[int, list[ItemKey]](list)
        for key, value in bits.items():
            groups[value >> (part * 13) & 0x1FFF].append(key)
        for group in groups.values():
            pairs.update(combinations(sorted(group[:_MOST_COMPARED]), 2))
    return ((one, other) for one, other in sorted(pairs) if (bits[one] ^ bits[other]).bit_count() <= _ALIKE)
