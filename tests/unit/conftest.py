"""How thoroughly properties are tried out: as by default, or a few examples each (`make test-quick`).

Without a deadline: no test fails because the machine was busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import settings

from patternmill.ledger.ledger import LedgerWriter

settings.register_profile("whole", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=15)
settings.load_profile("whole")


@pytest.fixture(autouse=True, scope="module")
def quick_writer() -> Iterator[None]:
    """Runs of a few rows wait for one commit after another: how long a writer waits for more changes is tested in
    `tests/integration/ledger/test_writer.py`.
    """
    with pytest.MonkeyPatch.context() as context:
        context.setitem(LedgerWriter.__init__.__kwdefaults__, "linger", timedelta(milliseconds=1))
        yield
