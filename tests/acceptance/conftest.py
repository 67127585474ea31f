"""What the acceptance tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.harness import Zygote
from tests.acceptance.prefect_servers import joint_server

__all__ = ["joint_server", "zygote"]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A warm process that imports are forked from."""
    warm = Zygote()
    yield warm
    warm.close()
