"""Sources, local and remote: read whole and within limits, named without secrets."""

from __future__ import annotations

import base64
import http.client
import io
import posixpath
import re
import stat
import urllib.request
from collections.abc import Callable
from pathlib import Path
from ssl import SSLError
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.text import plain

#: One address inside another, as fsspec has them.
_CHAIN = re.compile(r"::(?=[\w+.-]+:/)")
_WEB = frozenset({"http", "https"})
_LONGEST_PATH = 1000
#: Of the checkout.
_EXAMPLES = Path(__file__).parents[2] / "inputs"
#: What is read through fsspec. `memory` is this process alone.
_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})


def is_remote(address: str) -> bool:
    """Whether it is an address (https://, s3://, ...) rather than a path."""
    return "://" in address and not address.startswith("file://")


def file_path(address: str) -> Path:
    return Path(address.removeprefix("file://"))


def shown_address(address: str) -> str:
    """The address without what may be secret in it: user, password, query, fragment."""
    if not is_remote(address):
        return address
    try:
        parts = urlsplit(_CHAIN.split(address)[0])
    except ValueError:
        return f"{_scheme(address)}://…"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def source_name(address: str) -> str:
    """The file's name."""
    path = unquote(urlsplit(address).path) if is_remote(address) else address
    return posixpath.basename(path.rstrip("/")) or "source"


def source_bytes(address: str, reading: Reading | None = None) -> bytes:
    """The whole content; refused when it changes while it is read."""
    reading = reading or Reading(plain(shown_address(address), 300))
    return _fetched(address, reading) if is_remote(address) else stable_bytes(file_path(address), reading)


def stable_bytes(
    path: Path, reading: Reading | None = None, read: Callable[[Path], bytes] = Path.read_bytes
) -> bytes:
    """A local file's bytes, read twice: what is still being written or replaced is refused."""
    shown_path = plain(str(path), _LONGEST_PATH)
    try:
        before = _identity(path)
        (reading or Reading(shown_path)).check_size(before[0])
        raw = read(path)
        unchanged = before == _identity(path) and raw == read(path) and before == _identity(path)
    except FileNotFoundError:
        example = _EXAMPLES / path.name
        remedy = f"The example is {example}." if example.is_file() else "Check the name and the folder."
        folder = plain(str(path.absolute().parent), _LONGEST_PATH)
        message = f"There is no file {plain(path.name, _LONGEST_PATH)} in {folder}."
        raise refusal(FileCode.FILE_MISSING, message, remedy) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise refusal(
            FileCode.FILE_UNREADABLE, f"{shown_path} cannot be read: {reason}.", "Check who may read it."
        ) from None
    if not unchanged or len(raw) != before[0]:
        message = f"{shown_path} changed while it was read."
        raise refusal(FileCode.FILE_CHANGED, message, "Try again when it is saved completely.")
    return raw


def _identity(path: Path) -> tuple[int, int, int, int]:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
        message = f"{plain(str(path), _LONGEST_PATH)} is {what}, not a file."
        raise refusal(FileCode.NOT_A_FILE, message, "Name the sheet.")
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev


def require_known_kind(address: str) -> None:
    """Raises ConfigurationError when it is an address of a kind that is not read."""
    if not is_remote(address):
        return
    scheme = _scheme(address)
    if _CHAIN.search(address):
        raise ConfigurationError(
            f"{shown_address(address)} is a chain of addresses.", remedy="Name one address."
        )
    if scheme not in _WEB | _STORES:
        raise ConfigurationError(
            f"{plain(shown_address(address), 300)} is of a kind that is not read here ({plain(scheme)}://).",
            remedy="Name a path, or an address that begins with https://, http://, s3://, gs://, az:// or abfs://.",
        )


def _fetched(address: str, reading: Reading) -> bytes:
    """Read twice: what is still being written, or differs from one reader to the next, is refused."""
    require_known_kind(address)
    read = read_page if _scheme(address) in _WEB else _stored
    try:
        before, after = read(address, reading), read(address, reading)
    except PatternmillError:
        raise
    except Exception as error:
        raise _unreadable(reading.name, error) from None
    if before != after:
        message = f"{reading.name} changed while it was read."
        raise refusal(FileCode.FILE_CHANGED, message, "Try again when it is complete.")
    return before[0]


def _stored(address: str, reading: Reading) -> tuple[bytes, str]:
    """The content, and the size and ETag of this version of it."""
    file_system, path = _file_system(address)
    info = file_system.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError
    if isinstance(info.get("size"), int):
        reading.check_size(info["size"])
    content: bytes = file_system.cat_file(path)
    reading.check_size(len(content))
    # Not its time: a server that makes the content for each reader always sends the present one.
    return content, repr((info.get("size"), info.get("ETag"), info.get("etag")))


def _scheme(address: str) -> str:
    return address.partition("://")[0].lower()


def _file_system(address: str) -> tuple[Any, str]:
    """What reads this kind of address, and the path in it. Raises ConfigurationError."""
    # Slow to import: loaded for an address alone.
    import fsspec  # type: ignore[import-untyped]

    scheme = _scheme(address)
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
    if isinstance(error, FileNotFoundError) or status_of(error) == 404:
        return refusal(FileCode.FILE_MISSING, f"Nothing was found at {shown}.", "Check the address.")
    if isinstance(error, IsADirectoryError):
        return refusal(FileCode.NOT_A_FILE, f"{shown} is a folder, not a file.", "Name the sheet.")
    if 300 <= (status_of(error) or 0) < 400:
        message = f"{shown} redirects to another address, which is not followed."
        return refusal(FileCode.FILE_UNREADABLE, message, "Name the address where the file is.")
    return refusal(
        FileCode.FILE_UNREADABLE,
        f"{shown} cannot be read: {_reason(error)}.",
        "Check the address, who may read it, and that its place answers.",
    )


def _reason(error: Exception) -> str:
    """Why, without the text of the error: it may quote an address with its password."""
    status = status_of(error)
    if status:
        return f"it answers {status}"
    cause = error.reason if isinstance(error, URLError) else None
    if isinstance(cause, OSError) and not isinstance(cause, SSLError) and cause.strerror:
        return str(cause.strerror)
    return type(cause if isinstance(cause, OSError) else error).__name__


#: The longest pause of the server, in seconds.
_TIMEOUT = 30
_CHUNK = 1 << 16


def read_page(address: str, reading: Reading) -> tuple[bytes, str]:
    """The content, and the ETag of this version of it. Raises InputRefused, OSError, HTTPException."""
    try:
        with _opener().open(_request(address), timeout=_TIMEOUT) as answer:
            return _body(answer, reading), str(answer.headers.get("ETag"))
    except HTTPError as error:
        error.close()
        raise


def _opener() -> urllib.request.OpenerDirector:
    """Reads http and https and nothing else, without the proxies of the environment. Redirects are not followed:

    they would lead a deployment's run to hosts that its address does not name.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _request(address: str) -> urllib.request.Request:
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?")
    request = urllib.request.Request(  # noqa: S310  # the opener knows http and https alone
        urlunsplit((parts.scheme.lower(), host, path, query, "")), headers={"User-Agent": "patternmill"}
    )
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    return request


def _body(answer: http.client.HTTPResponse, reading: Reading) -> bytes:
    content = io.BytesIO()
    while chunk := answer.read1(_CHUNK):
        content.write(chunk)
        reading.check_size(content.tell())
        reading.check_time()
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return content.getvalue()


def status_of(error: Exception) -> int | None:
    return error.code if isinstance(error, HTTPError) else None
