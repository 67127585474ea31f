"""Files at web addresses and in stores (S3, Google, Azure): sources are read whole, and results are copied there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from patternmill.addresses import STORES, is_chained, is_remote, scheme_of, shown_address
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.processes import run_within
from patternmill.reading import FileCode, Reading, refusal
from patternmill.service.web_reader import Access, read_page
from patternmill.text import plain

_WEB = frozenset({"http", "https"})
#: A Google Sheet as a browser shows it, by its ID or as it was published.
_GOOGLE_PAGE = re.compile(
    r"(?P<published>/spreadsheets/d/e/[\w-]+)/pubhtml|(?:/spreadsheets)(?:/u/\d+)?(?P<sheet>/d/(?!e/)[\w-]+)"
    r"(?:/(?:edit|view|preview|htmlview|copy)?)?"
)
_WORKSHEET = re.compile(r"\bgid=(\d+)")
#: The most seconds for copying all files of a run.
_MOST_SECONDS = 600.0


def require_known_kind(address: str) -> None:
    """Raise ConfigurationError for an address of a kind that is not read, and for the page of a Google Sheet."""
    if not is_remote(address):
        return
    shown = plain(shown_address(address), 300)
    if is_chained(address):
        raise ConfigurationError(f"{shown} is a chain of addresses.", remedy="Name one address.")
    scheme = scheme_of(address)
    if scheme not in _WEB | STORES:
        raise ConfigurationError(
            f"{shown} is of a kind that is not read here ({plain(scheme)}://).",
            remedy="Name a path, or an address that begins with https://, http://, s3://, gs://, az:// or abfs://.",
        )
    if export := google_export(address):
        raise ConfigurationError(
            f"{shown} is a Google Sheet as a browser shows it, not its rows.",
            remedy=f"Name its export, in quotes: '{export}'. Whoever has the link has to be allowed to view it.",
        )


def google_export(address: str) -> str | None:
    """Return the address of a Google Sheet's rows as CSV, where the address is that of its page; else None."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    match = _GOOGLE_PAGE.fullmatch(parts.path) if parts.hostname == "docs.google.com" else None
    if match is None:
        return None
    worksheet = _WORKSHEET.search(parts.fragment) or _WORKSHEET.search(parts.query)
    gid = f"&gid={worksheet[1]}" if worksheet else ""
    if match["published"]:
        return f"https://docs.google.com{match['published']}/pub?output=csv{gid}"
    return f"https://docs.google.com/spreadsheets{match['sheet']}/export?format=csv{gid}"


def remote_bytes(address: str, reading: Reading, access: Access | None = None) -> bytes:
    """Return the bytes at an address, read twice: a file that is still being written is refused.

    Raises InputRefused, and ConfigurationError as `require_known_kind` does.
    """
    require_known_kind(address)
    return reading.in_time(lambda: _read_twice(address, reading, access))


def _read_twice(address: str, reading: Reading, access: Access | None) -> bytes:
    read = partial(_from_web, access=access) if scheme_of(address) in _WEB else _from_store
    content, version = read(address, reading)
    if read(address, reading) != (content, version):
        message = f"{reading.name} changed while it was read."
        raise refusal(FileCode.FILE_CHANGED, message, "Try again when it is complete.")
    return content


def _from_web(address: str, reading: Reading, access: Access | None) -> tuple[bytes, str]:
    """Return a file on the web. Raises InputRefused for a web page, such as one to sign in on."""
    page = read_page(address, reading, access)
    if not page.is_html:
        return page.content, ""
    place = "" if page.host == urlsplit(address).hostname else f" (of {plain(page.host, 100)})"
    raise refusal(
        FileCode.FILE_UNREADABLE,
        f"{reading.name} answers with a web page{place}, such as one to sign in on, and not with a file.",
        "A browser that is not signed in has to download the file from there: let everybody read it who has the "
        "address, or name it in PATTERNMILL_SOURCES with a `bearer`.",
    )


def _from_store(address: str, reading: Reading) -> tuple[bytes, str]:
    """Return a store's file, and the size and ETag of this version of it."""
    # Slow to import, and needed for stores alone.
    import fsspec  # type: ignore[import-untyped]

    try:
        file_system, path = fsspec.core.url_to_fs(address)
        info: dict[str, Any] = file_system.info(path)
        if info.get("type") == "directory":
            raise IsADirectoryError
        if isinstance(info.get("size"), int):
            reading.check_size(info["size"])
        content: bytes = file_system.cat_file(path)
    except PatternmillError:
        raise
    except Exception as error:  # each store raises its own
        raise _store_refusal(address, reading.name, error) from None
    reading.check_size(len(content))
    return content, repr((info.get("size"), info.get("ETag"), info.get("etag")))


def _store_refusal(address: str, name: str, error: Exception) -> ConfigurationError | InputRefused:
    """Return why a file cannot be read, without the text of the error, which may quote a password."""
    if isinstance(error, ImportError):
        return _not_installed(address)
    if isinstance(error, FileNotFoundError):
        return refusal(FileCode.FILE_MISSING, f"Nothing was found at {name}.", "Check the address.")
    if isinstance(error, IsADirectoryError):
        return refusal(FileCode.NOT_A_FILE, f"{name} is a folder, not a file.", "Name the sheet.")
    remedy = "Check the address, who may read it, and that its place answers."
    return refusal(FileCode.FILE_UNREADABLE, f"{name} cannot be read: {type(error).__name__}.", remedy)


def require_store(address: str) -> None:
    """Raise ConfigurationError where the package that opens an address is not installed."""
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme_of(address))
    except ImportError:
        raise _not_installed(address) from None


def _not_installed(address: str) -> ConfigurationError:
    return ConfigurationError(
        f"What opens {scheme_of(address)}:// addresses is not installed.",
        remedy="Install it: `pip install s3fs` for S3, `gcsfs` for Google Cloud Storage, `adlfs` for Azure.",
    )


def copy_files(folder: Path, names: Sequence[str], address: str) -> None:
    """Copy files of a folder to an address, in their order. Nothing there is deleted.

    Raises PatternmillError with what went wrong, but not the store's own words, which may quote a credential.
    """
    try:
        run_within(_MOST_SECONDS, lambda: _copy(folder, names, address))
    except Exception as error:  # each store raises its own
        raise PatternmillError(
            f"The results could not be copied to {address}: {type(error).__name__}. Nothing is lost: they are in "
            f"{folder.resolve()}.",
            code="results_not_copied",
            remedy="Check the address, who may write there, and that the store answers; then copy that folder there.",
        ) from None


def _copy(folder: Path, names: Sequence[str], address: str) -> None:
    import fsspec

    store: Any
    store, path = fsspec.core.url_to_fs(address)
    for name in names:
        store.put_file(str(folder / name), f"{path}/{name}")
