"""Uploaded pictures: decoded by a process of their own, kept under the digest of what it made of them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from dataclasses import dataclass
from pathlib import Path

from studio.errors import FieldFault, Refusal
from studio.requests import REFERENCE_LIMIT

DECODING_SECONDS = 20.0


@dataclass(frozen=True)
class ReferencePicture:
    """A picture that was kept; sizes are pixels."""

    sha256: str
    width: int
    height: int


async def read_reference(data: str, directory: Path) -> ReferencePicture:
    """Decode the base64 of a picture and keep it in `directory`. Raises Refusal (413 or 422)."""
    answer = await _decode(_raw(data))
    line, _, png = answer.partition(b"\n")
    said = json.loads(line) if line else {"error": "takes too much time or memory to be read"}
    if "error" in said:
        raise _unusable(said["error"])
    sha256 = hashlib.sha256(png).hexdigest()
    await asyncio.to_thread(_keep, png, directory / f"{sha256}.png")
    return ReferencePicture(sha256, int(said["width"]), int(said["height"]))


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


async def _decode(raw: bytes) -> bytes:
    """What the decoding process wrote, or nothing when it had to be stopped or died."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "studio.reference_decoder",
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        # No key of the studio's own environment, and no thread pools.
        env={name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")},
    )
    try:
        answer, _ = await asyncio.wait_for(process.communicate(raw), DECODING_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return answer if process.returncode == 0 else b""


def _keep(png: bytes, path: Path) -> None:
    """The file appears under its name when it is complete, and is there after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(png)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
