"""Sheets at paths, at http(s) addresses and in object stores: read whole, within limits, and named without secrets."""

import asyncio
import base64
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

import httpx

from patternmill.errors import InputRefused, Refusal
from patternmill.files import MOST_BYTES, read_file, unpacked
from patternmill.request import Request
from patternmill.service.client import proxy_for
from patternmill.settings import NamedSource, Settings

_SECONDS, _MOST_REDIRECTS = 120, 5
_DRIVERS = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
_USER_INFO = re.compile(r"(?:[\w.~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_GOOGLE = re.compile(
    r"https://docs\.google\.com/spreadsheets/.*/(?:edit|view|pubhtml|htmlview)\b.*?(?:\bgid=(\d+).*)?"
)
#: Addresses by the names that stand for them in this process, so that no parameter of a run holds a password.
_named: dict[str, str] = {}


@dataclass(frozen=True)
class Source:
    """Where a sheet is. `name` is shown and recorded; `path` is the file, or what its mapping is named after."""

    name: str
    path: Path
    address: str = field(default="", repr=False)
    header: str = field(default="", repr=False)


def name_of(file: str) -> str:
    """Return what stands for a file in parameters and records: an address without user info and query."""
    shown = re.sub(r"[?#].*|(?<=//)[^/@]*@", "", file) if "://" in file else file
    if shown != file:
        _check_address(file, "The address")
        _named[shown] = file
    return shown


def find_source(file: str, sources: Mapping[str, NamedSource]) -> Source:
    """Return a source of the settings, an address or a path. Raises InputRefused."""
    found, address = sources.get(file), _named.get(file, file)
    if found:
        address, header = found.url.get_secret_value(), found.header.get_secret_value()
        _check_address(address, file)
        return Source(file, Path(file), address, header)
    if "://" not in file:
        return Source(Path(file).name, Path(file))
    _check_address(address, "The address")
    shown = name_of(address)
    return Source(shown, Path(re.sub(r"[^\w.-]", "-", shown.rstrip("/").rpartition("/")[2])), address)


def check_reach(request: Request, settings: Settings) -> None:
    """Raise Refusal for what a deployment may not read or write: all but named sources and files of its own folder."""
    paths = [request.mapping, request.out]
    if request.file and request.file not in settings.sources:
        paths.append(Path("/") if "://" in request.file else Path(request.file))
    if any(path and not path.resolve().is_relative_to(Path.cwd()) for path in paths):
        message = "A deployment reads sources that PATTERNMILL_SOURCES names, and files of its own folder."
        raise Refusal("out_of_reach", message, "Name the address there, or put the file into the folder.")


def _check_address(address: str, name: str) -> None:
    """Raise InputRefused for one that is not read, or whose password could be taken for another part of it."""
    scheme, _, rest = address.partition("://")
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    if scheme in _DRIVERS and "::" not in rest:
        return
    if scheme.lower() not in ("http", "https"):
        raise _unreadable(f"{name} is of a kind that is not read", "Write https://, s3://, gs:// or az://.")
    if "@" in rest[len(authority) :] or not _USER_INFO.fullmatch(authority.rpartition("@")[0]):
        message = f"{name} has an @ of a password, perhaps: its user and password have to be percent-encoded"
        raise _unreadable(message, "Write @ as %40, / as %2F, : as %3A, # as %23 and % as %25.")
    if sheet := _GOOGLE.fullmatch(address):
        end = f"/export?format=csv{f'&gid={sheet[1]}' if sheet[1] else ''}"
        end = end.replace("export?format", "pub?output") if "/d/e/" in address else end
        message = f"{name} is a Google Sheet as a browser shows it"
        raise _unreadable(message, f"Its rows are at the same address with {end} after its ID.")


def _unreadable(message: str, remedy: str = "Check the address, and who may read it.") -> InputRefused:
    return InputRefused("source_unreadable", f"{message}.", remedy)


async def read_source(source: Source) -> bytes:
    """Return the bytes of a sheet, unpacked. Raises InputRefused, without the words of errors: they quote secrets."""
    if not source.address:
        return read_file(source.path)
    try:
        async with asyncio.timeout(_SECONDS):
            is_web = source.address.lower().startswith("http")
            raw = await (_from_web(source) if is_web else asyncio.to_thread(_from_store, source.address))
    except ImportError:
        driver = _DRIVERS[source.address.partition("://")[0]]
        raise _unreadable(
            f"{source.name} needs the package {driver}", f"Install it: pip install {driver}"
        ) from None
    except TimeoutError:
        raise _unreadable(f"{source.name} does not come within {_SECONDS} seconds") from None
    except InputRefused:
        raise
    except Exception as error:  # each store raises its own
        raise _unreadable(f"{source.name} cannot be read: {_reason(error)}") from None
    content = unpacked(raw, source.name)
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype )?html", content, re.IGNORECASE):
        message = f"{source.name} answers with a web page, such as one to sign in on, and not with a sheet"
        raise _unreadable(message, "Take the address of the download, and let it be read by whoever has it.")
    return content


def _reason(error: Exception) -> str:
    if "CERTIFICATE_VERIFY" in str(error):
        return "its certificate cannot be verified"
    if isinstance(error, socket.gaierror) or "[Errno -" in str(error):
        return "the name of its host is not found"
    return type(error).__name__


def _from_store(address: str) -> bytes:
    import fsspec  # type: ignore[import-untyped]

    with fsspec.open(address, "rb") as file:
        return bytes(file.read(MOST_BYTES + 1))


async def _from_web(source: Source) -> bytes:
    url = httpx.URL(source.address)
    named, headers = (url.host, url.port), _credentials(url, source)
    for _ in range(_MOST_REDIRECTS + 1):
        url = url.copy_with(userinfo=b"", fragment=None)
        target, proxy = url if url.host == named[0] else await _public(url, source.name), proxy_for(url)
        request = httpx.Request(
            "GET", url if proxy else target,
            headers={"Host": url.netloc.decode(), "Accept-Encoding": "gzip", **headers},
            extensions={"sni_hostname": url.raw_host.decode(), "timeout": httpx.Timeout(30).as_dict()},
        )  # fmt: skip
        # Not httpx.Client, which logs addresses, keeps cookies and follows redirects by rules of its own.
        async with httpx.AsyncHTTPTransport(proxy=proxy) as transport:
            response = await transport.handle_async_request(request)
            if not response.has_redirect_location:
                return await _body(response, source.name)
            await response.aclose()
        before, url = url.scheme, url.join(response.headers["location"])
        if url.scheme != "https" and (before == "https" or url.scheme != "http"):
            raise _unreadable(f"{source.name} leads to an address that is not https, which is not followed")
        headers = headers if (url.host, url.port) == named else {}
    raise _unreadable(f"{source.name} leads on more than {_MOST_REDIRECTS} times")


def _credentials(url: httpx.URL, source: Source) -> dict[str, str]:
    if url.userinfo:
        return {"Authorization": f"Basic {base64.b64encode(unquote_to_bytes(url.userinfo)).decode()}"}
    name, _, value = source.header.partition(":")
    return {name.strip(): value.strip()} if source.header else {}


async def _public(url: httpx.URL, name: str) -> httpx.URL:
    """Return an address that another one leads to by its IP address, which is one of the public internet."""
    port = url.port or (443 if url.scheme == "https" else 80)
    found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    addresses = sorted((ipaddress.ip_address(one[4][0]) for one in found), key=lambda one: one.version)
    if not all(one.is_global for one in addresses):
        raise _unreadable(f"{name} leads to an address of a private network, which is not followed")
    return url.copy_with(host=str(addresses[0]))


async def _body(response: httpx.Response, name: str) -> bytes:
    """Return the body as it was sent. Raises InputRefused."""
    if response.status_code != 200:
        said = {401: ": it is not open to all", 403: ": it is not open to all", 404: ": nothing is there"}
        raise _unreadable(f"{name} answers {response.status_code}{said.get(response.status_code, '')}")
    if response.headers.get("content-encoding", "identity").lower() not in ("gzip", "x-gzip", "identity"):
        raise _unreadable(f"{name} is packed in a way that is not read")
    content = bytearray()
    async for part in response.aiter_raw():
        content += part
        if len(content) > MOST_BYTES:
            break  # `unpacked` refuses it
    return bytes(content)
