"""Archives: the parts of a ZIP file in memory, read within the limits, so that no small file becomes a large one."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from xml.parsers import expat

from patternmill.catalog.problems import FileCode, refusal
from patternmill.catalog.read_limits import Reading, TimedBytes
from patternmill.errors import InputRefused

ZIP = b"PK\x03\x04"
_MOST_PARTS = 10_000
_PART_BEGINS = b"PK\x01\x02"
_CHUNK = 1 << 20
_DEEPEST = 20_000
_FEW = 20
_EMPTY = re.compile(rb"<[^<>]*/>")
#: Bytes of a part that names others or describes them.
_SMALL = 16 << 20
_SAVE_AGAIN = "Open it in the program that made it, and save it again as .xlsx; or save it as `CSV UTF-8`."

Attributes = dict[str, str]


def unzipped(raw: bytes, wanted: Callable[[str], bool], reading: Reading) -> dict[str, bytes]:
    """The parts that are wanted, by name in lower case and with `/`: programs differ there. Raises InputRefused."""
    if raw.count(_PART_BEGINS) > _MOST_PARTS:
        raise damaged(reading)
    try:
        with zipfile.ZipFile(TimedBytes(raw, reading)) as archive:
            if any(info.flag_bits & 1 for info in archive.infolist()):
                raise protected(reading)
            return dict(_parts(archive, wanted, reading))
    except InputRefused:
        raise
    except Exception as error:
        # Each damage has its own: of zipfile, zlib, struct, codecs.
        raise damaged(reading) from error


def _parts(
    archive: zipfile.ZipFile, wanted: Callable[[str], bool], reading: Reading
) -> Iterator[tuple[str, bytes]]:
    total = 0
    for info in archive.infolist():
        name = part_name(info.filename)
        if not wanted(name):
            continue
        with archive.open(info) as part:
            # Not as much as the archive says that there is.
            content = part.read(reading.limits.size - total + 1)
        total += len(content)
        reading.check_size(total)
        yield name, content


def part_name(written: str) -> str:
    return written.replace("\\", "/").lower()


def zipped(parts: Mapping[str, bytes]) -> io.BytesIO:
    """The parts as an archive that needs no unpacking."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    packed.seek(0)
    return packed


def parse_xml(part: bytes, parser: expat.XMLParserType, reading: Reading) -> None:
    """Feed the parser, whose handlers collect what they want. Raises InputRefused: also for any document type."""

    def refuse(*_: object) -> None:
        raise damaged(reading)

    parser.StartDoctypeDeclHandler = refuse
    depth = 0
    try:
        for begin in range(0, len(part), _CHUNK):
            reading.check_time()
            chunk = part[begin : begin + _CHUNK]
            depth += _opened(chunk)
            if depth > _DEEPEST:
                raise damaged(reading)
            parser.Parse(chunk)
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError):
        # A number or name that is none, too.
        raise damaged(reading) from None


def _opened(chunk: bytes) -> int:
    """How many elements it opens and does not close: the parser takes memory for each. About."""
    tags = chunk.count(b"<") - 2 * chunk.count(b"</")
    return tags - len(_EMPTY.findall(chunk)) if tags > _FEW else tags


def elements(part: bytes, names: Collection[str], reading: Reading) -> list[tuple[str, Attributes]]:
    """The elements of these names in a small part, in order, with their attributes; all without prefixes."""
    if len(part) > _SMALL:
        raise damaged(reading)
    found: list[tuple[str, Attributes]] = []

    def start(name: str, attributes: Attributes) -> None:
        if local(name) in names:
            found.append((local(name), {local(key): value for key, value in attributes.items()}))

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parse_xml(part, parser, reading)
    return found


def local(name: str) -> str:
    return name.rpartition(":")[2]


def damaged(reading: Reading) -> InputRefused:
    return refusal(
        FileCode.FILE_UNREADABLE, f"{reading.name} is damaged, or was not saved whole.", _SAVE_AGAIN
    )


def protected(reading: Reading) -> InputRefused:
    return refusal(
        FileCode.FILE_UNREADABLE,
        f"{reading.name} is protected with a password.",
        "Save a copy without a password, and try that.",
    )
