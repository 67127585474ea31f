"""Runs code without root's rights over files, where the tests run as root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NOBODY = 65534


@contextmanager
def without_root() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(_NOBODY, _NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
