"""Asynchronous tests of the service run in virtual time."""

from __future__ import annotations

import pytest

from tests.conftest import run_test
from tests.unit.service import virtual


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_test(pyfuncitem, virtual.run)
