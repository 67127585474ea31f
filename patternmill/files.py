"""Files that nobody ever sees half of."""

import os
from pathlib import Path


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
