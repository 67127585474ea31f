"""A studio in this process."""

import pytest

from tests.studio.in_process import InProcess


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """Yield one studio for a whole module, whose jobs end at once."""
    with InProcess.open(tmp_path_factory.mktemp("studio")) as made:
        yield made
