"""The pictures of a home: each is fetched once, and known by the digest of its bytes, to which decisions are bound."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from patternmill.catalog.extras import Picture
from patternmill.catalog.reference_files import ReferencePlace, read_references
from patternmill.files import private_folder, replace_private
from patternmill.identifiers import ItemKey
from patternmill.looking.kept_pictures import picture_cache, picture_name
from patternmill.looking.takes import Take


class Pictures:
    """The pictures that a home has. `service`: the host that they may come from, beside the public internet."""

    def __init__(self, home: Path, service: str | None = None) -> None:
        self._folder = picture_cache(home)
        self._host = urlsplit(service).hostname if service else None
        self._digests: dict[str, str] = {}

    def path(self, name: str) -> Path | None:
        """Return the file of a picture by the name that pages have for it; None where it is not at hand."""
        path = self._folder / name
        return path if path.name == name and path.is_file() else None

    def digests(self, takes: Iterable[Take]) -> dict[ItemKey, str]:
        """Return the SHA-256 of each take's picture in hexadecimal, by pattern item, where it is at hand."""
        found = ((take.item, self._digest(take.picture_url)) for take in takes)
        return {item: digest for item, digest in found if digest is not None}

    def _digest(self, url: str | None) -> str | None:
        name = picture_name(url) if url is not None else ""
        if name not in self._digests and (path := self.path(name)) is not None:
            self._digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._digests.get(name)

    def fetch(self, urls: Iterable[str], step: Callable[[str], None] = lambda text: None) -> None:
        """Fetch those that are not at hand; what cannot be had is left out."""
        missing = sorted({url for url in urls if self.path(picture_name(url)) is None})
        with ThreadPoolExecutor() as pool:
            for number, _ in enumerate(pool.map(self._fetch, missing)):
                if number % 50 == 0:
                    step(f"Fetching pictures: {len(missing) - number:,} left.")

    def _fetch(self, url: str) -> None:
        found = read_references([url], ReferencePlace(None, public_only=True, host=self._host))[url]
        if isinstance(found, Picture):
            with suppress(OSError):  # on a full disk it is fetched anew the next time
                replace_private(private_folder(self._folder) / picture_name(url), found.raw)
