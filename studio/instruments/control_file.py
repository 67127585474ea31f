"""Where a studio's control interface is and its key: one file in the home, for its owner alone."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "control.json"


@dataclass(frozen=True)
class ControlFile:
    """`url` is the address of the studio, without a path."""

    url: str
    key: str


def write_control_file(home: Path, url: str) -> ControlFile:
    """Keep the address; the key is made once for each home."""
    path = home / NAME
    key = read_control_file(home).key if path.exists() else f"control_{secrets.token_urlsafe(32)}"
    written = ControlFile(url, key)
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps(asdict(written)), "utf-8")
    part.replace(path)
    return written


def read_control_file(home: Path) -> ControlFile:
    """Raises OSError."""
    return ControlFile(**json.loads((home / NAME).read_text("utf-8")))
