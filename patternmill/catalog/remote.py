"""Sources and places that are not files here: read whole and twice, written whole, never named with their secrets."""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from patternmill.catalog.problems import FileCode, plain, refusal
from patternmill.catalog.source import CatalogFile, parse_catalog, stable_bytes
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError

T = TypeVar("T")

#: Bytes, compressed or not: more than any catalog, and less than what takes the machine down.
MOST_BYTES = 1 << 30
#: One address within another, as fsspec understands them.
_CHAIN = re.compile(r"::(?=[\w+.-]*:)")
_GZIP = b"\x1f\x8b"
_READ_ONLY = frozenset({"http", "https", "data", "github"})
#: What the command line was given, by what may be shown of it.
_WHOLE: dict[str, str] = {}


def is_remote(address: str) -> bool:
    """Whether it is an address (https://, s3://, ...) rather than a path."""
    return "://" in address and not address.startswith("file://")


def shown_address(address: str) -> str:
    """The address without what may be secret in it: user, password, query, fragment."""
    if not is_remote(address):
        return address
    parts = urlsplit(_CHAIN.split(address)[0])
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def keep_secret(address: str) -> str:
    """Remember an address in this process, and return what may be shown, passed on and recorded of it."""
    shown = shown_address(address)
    if shown != address:
        _WHOLE[shown] = address
    return shown


def whole_address(address: str) -> str:
    """The address with its secrets, where this process was given them."""
    return _WHOLE.get(address, address)


def source_name(address: str) -> str:
    """The file's name, without `.gz`."""
    path = unquote(urlsplit(address).path) if is_remote(address) else address
    return posixpath.basename(path.rstrip("/")).removesuffix(".gz") or "source"


def read_source(address: str, *, encoding: str | None = None, empty: bool = False) -> CatalogFile:
    """Read a catalog from a path or an address, compressed by gzip or not. Raises InputRefused.

    `empty`: a header without rows is a catalog too.
    """
    raw = source_bytes(address)
    return parse_catalog(raw, name=source_name(address), encoding=encoding, empty=empty)


def source_bytes(address: str) -> bytes:
    """The whole content, decompressed; refused when it changes while it is read."""
    if is_remote(address):
        raw = _fetched(whole_address(address))
    else:
        raw = stable_bytes(Path(address.removeprefix("file://")), Path.read_bytes)
    return _decompressed(raw, address) if raw.startswith(_GZIP) else raw


def require_writable(place: str) -> None:
    """Raises ConfigurationError when nothing can be written to an address of this kind."""
    if urlsplit(place).scheme in _READ_ONLY:
        raise ConfigurationError(
            f"Nothing can be written to {shown_address(place)}.",
            remedy="Name a folder, or a place like s3://bucket/folder.",
        )
    _file_system(whole_address(place))


def write_files(files: Mapping[str, Path], place: str) -> None:
    """Copy files to a place, by name and in this order. Raises PatternmillError, without the address's secrets."""
    file_system, folder = _file_system(whole_address(place))
    for name, path in files.items():
        _write(file_system, f"{folder.rstrip('/')}/{name}", path.read_bytes(), shown_address(place))


def write_bytes(address: str, content: bytes) -> None:
    """Write one file to an address. Raises PatternmillError."""
    require_writable(address)
    file_system, path = _file_system(whole_address(address))
    _write(file_system, path, content, shown_address(address))


def _write(file_system: Any, path: str, content: bytes, shown: str) -> None:
    try:
        file_system.makedirs(posixpath.dirname(path), exist_ok=True)
        file_system.pipe_file(path, content)
    except Exception as error:
        # Its text may quote the address, and with it a password.
        raise PatternmillError(
            f"{posixpath.basename(path)} could not be written to {shown}: {_reason(error)}.",
            code="results_unwritable",
            remedy="See that the place is there and may be written to.",
        ) from None


def _fetched(address: str) -> bytes:
    """Read twice, between two looks at what identifies it."""
    file_system, path = _file_system(address)
    shown = plain(shown_address(address), 300)

    def told(read: Callable[[str], T]) -> T:
        try:
            return read(path)
        except Exception as error:
            raise _unreadable(shown, error) from None

    before = told(lambda where: _identity(file_system, where))
    raw: bytes = told(file_system.cat_file)
    _refuse_large(len(raw), shown)
    again: bytes = told(file_system.cat_file)
    after = told(lambda where: _identity(file_system, where))
    if raw != again or before != after:
        raise refusal(
            FileCode.FILE_CHANGED, f"{shown} changed while it was read.", "Try again when it is complete."
        )
    return raw


def _identity(file_system: Any, path: str) -> str:
    """What the place says of the content: equal before and after, when nothing was written meanwhile."""
    info = file_system.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError
    if isinstance(info.get("size"), int):
        _refuse_large(info["size"], "It")
    # Not its time: a place that writes its content for each reader always gives the present one.
    return repr((info.get("size"), info.get("ETag"), info.get("etag")))


def _refuse_large(size: int, shown: str) -> None:
    if size > MOST_BYTES:
        raise refusal(
            FileCode.FILE_UNREADABLE,
            f"{shown} has {size} bytes, which is no catalog.",
            "Is it the right one?",
        )


def _decompressed(raw: bytes, address: str) -> bytes:
    shown = plain(shown_address(address), 300)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise refusal(
            FileCode.FILE_UNREADABLE,
            f"{shown} is a gzip archive that is cut short or damaged.",
            "Make it anew.",
        ) from None
    _refuse_large(len(content), shown)
    return content


def _file_system(address: str) -> tuple[Any, str]:
    """What reads this kind of address, and the path in it. Raises ConfigurationError."""
    # Brings all kinds of places with it: loaded for an address alone.
    import fsspec  # type: ignore[import-untyped]

    scheme = address.partition("://")[0]
    if _CHAIN.search(address):
        raise ConfigurationError(
            f"{shown_address(address)} is a chain of addresses.", remedy="Name one address."
        )
    try:
        file_system, path = fsspec.core.url_to_fs(address)
    except ImportError:
        raise ConfigurationError(
            f"What reads {scheme}:// addresses is not installed.",
            remedy="Install it: `pip install fsspec[s3]` for S3, `fsspec[gcs]` for Google Cloud Storage.",
        ) from None
    except Exception as error:
        raise ConfigurationError(
            f"{plain(shown_address(address), 300)} is no address that can be read: {_reason(error)}.",
            remedy="Name a path, an http(s) address, or one like s3://bucket/spring.csv.",
        ) from None
    return file_system, path


def _unreadable(shown: str, error: Exception) -> InputRefused:
    if isinstance(error, InputRefused):
        return error
    # What an http address answers stands behind an error that calls everything missing.
    error = error.__cause__ if isinstance(error.__cause__, Exception) else error
    if isinstance(error, FileNotFoundError) or getattr(error, "status", None) == 404:
        return refusal(FileCode.FILE_MISSING, f"There is nothing at {shown}.", "Check the address.")
    if isinstance(error, IsADirectoryError):
        return refusal(FileCode.NOT_A_FILE, f"{shown} is a folder, not a file.", "Name a CSV file.")
    return refusal(
        FileCode.FILE_UNREADABLE,
        f"{shown} cannot be read: {_reason(error)}.",
        "Check the address, who may read it, and that its place answers.",
    )


def _reason(error: Exception) -> str:
    """Why, without the text of the error: it may quote an address with its password."""
    status = getattr(error, "status", None)
    return f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__
