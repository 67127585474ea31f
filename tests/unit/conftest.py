"""How thoroughly properties are tried out: 40 examples each, a few (`make test-quick`), or many (`make soak`).

Without a deadline, and however slowly examples are drawn: no test fails because the machine was busy.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from patternmill.env_file import PREFIX
from tests.quick_writer import quick_writer as quick_writer

for name, examples in (("usual", 40), ("quick", 15), ("many", 500)):
    slowly = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile(name, max_examples=examples, **slowly)
settings.load_profile("usual")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with no variable of ours set."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
