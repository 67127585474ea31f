"""How thoroughly properties are tried out: as by default, or a few examples each (`make test-quick`).

Without a deadline: no test fails because the machine was busy.
"""

from __future__ import annotations

from hypothesis import settings

from tests.quick_writer import quick_writer as quick_writer

settings.register_profile("whole", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=15)
settings.load_profile("whole")
