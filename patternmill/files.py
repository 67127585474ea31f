"""Files that nobody ever sees half of."""

import gzip
import hashlib
import importlib.metadata
import io
import os
import zlib
from functools import cache
from pathlib import Path

from patternmill.errors import InputRefused

#: The most of a sheet that is read, unpacked.
MOST_BYTES = 256 << 20


def read_file(path: Path) -> bytes:
    """Return the content of a sheet, unpacked. Raises InputRefused."""
    try:
        if not path.is_file():
            raise InputRefused("file_missing", f"There is no file {path}.", "Check its name and folder.")
        with path.open("rb") as file:
            return unpacked(file.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise InputRefused("file_unreadable", message, "Check who may read it.") from None


def unpacked(content: bytes, name: str) -> bytes:
    """Return content without gzip, by which it may be packed twice: as a file, and on its way. Raises InputRefused."""
    try:
        for _ in range(2):
            if content.startswith(b"\x1f\x8b"):
                content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise InputRefused(
            "file_unreadable", f"{name} is damaged: its gzip cannot be unpacked.", "Pack or save it again."
        ) from None
    if len(content) > MOST_BYTES:
        raise InputRefused("file_too_large", f"{name} is larger than {MOST_BYTES >> 20} MiB.", "Divide it.")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or leave the one that is there: through a temporary one beside it, on the disk before it counts."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def point_at(link: Path, target: str) -> None:
    """Let a symbolic link name a file or folder beside it, whatever it named before."""
    part = link.with_name(f".{link.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    part.replace(link)


@cache
def code_version() -> str:
    """Return the version of this project with a digest of its code, which tells two checkouts of one version apart."""
    root, digest = Path(__file__).resolve().parent.parent, hashlib.sha256()
    for package in ("cli", "flows", "tasks", "patternmill"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return f"{importlib.metadata.version('patternmill')}+{digest.hexdigest()[:8]}"
