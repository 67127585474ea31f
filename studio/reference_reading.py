"""Uploaded pictures: decoded by a process of their own, kept under the digest of what it made of them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import NamedTemporaryFile

from studio.errors import FieldFault, Refusal
from studio.requests import REFERENCE_LIMIT

DECODING_SECONDS = 20.0
#: References decoded at the same time, each in a process of its own.
WORKERS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="references")


@dataclass(frozen=True)
class ReferencePicture:
    """A picture that was kept; sizes are pixels."""

    sha256: str
    width: int
    height: int


async def upload(data: str, directory: Path) -> ReferencePicture:
    """Read a reference while other requests are answered; few at once, so that uploads never fill the machine."""
    return await asyncio.get_running_loop().run_in_executor(WORKERS, read_reference, data, directory)


def read_reference(data: str, directory: Path) -> ReferencePicture:
    """Decode the base64 of a picture and keep it in `directory`. Raises Refusal (413 or 422)."""
    line, _, png = _decode(_raw(data)).partition(b"\n")
    answered = json.loads(line) if line else {"error": "takes too much time or memory to be read"}
    if "error" in answered:
        raise _unusable(answered["error"])
    sha256 = hashlib.sha256(png).hexdigest()
    _keep(png, directory / f"{sha256}.png")
    return ReferencePicture(sha256, int(answered["width"]), int(answered["height"]))


def _raw(data: str) -> bytes:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _unusable("is not in base64") from None
    if len(raw) > REFERENCE_LIMIT:
        raise Refusal(413, "too_large", f"The picture is larger than {REFERENCE_LIMIT} bytes.")
    return raw


def _unusable(reason: str) -> Refusal:
    faults = (FieldFault("data", reason),)
    return Refusal(422, "invalid_picture", f"The picture cannot be used: it {reason}.", faults)


def _decode(raw: bytes) -> bytes:
    """Return what the decoding process wrote, or nothing when it had to be stopped or died."""
    command = [sys.executable, "-P", "-m", "studio.reference_decoder"]
    # So that no key of the studio's environment is passed on.
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    try:
        done = subprocess.run(
            command, input=raw, stdout=PIPE, stderr=DEVNULL, env=env, timeout=DECODING_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return b""
    return done.stdout if done.returncode == 0 else b""


def _keep(png: bytes, path: Path) -> None:
    """Write the file so that it appears under its name only when complete, and is there after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        file.write(png)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
