"""A ledger's writer that waits for no further changes, for tests of runs of a few rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from patternmill.ledger.ledger import LedgerWriter


@pytest.fixture(autouse=True, scope="module")
def quick_writer() -> Iterator[None]:
    """Have writers wait a millisecond, in a folder whose `conftest.py` imports this. How long a writer waits is tested
    in `tests/integration/ledger/test_writer.py`.
    """
    with pytest.MonkeyPatch.context() as context:
        context.setitem(LedgerWriter.__init__.__kwdefaults__, "linger", timedelta(milliseconds=1))
        yield
