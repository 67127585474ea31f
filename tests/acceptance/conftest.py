"""What the acceptance tests share."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from tests.acceptance.harness import Zygote
from tests.acceptance.prefect_servers import joint_server, unforked, warm

__all__ = ["joint_server", "unforked", "warm", "zygote"]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A warm process that imports are forked from."""
    plain = started_zygote()
    yield plain
    plain.close()


@functools.cache
def started_zygote() -> Zygote:
    """One, in whichever folders this fixture is known."""
    return Zygote()
