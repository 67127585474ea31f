"""How thoroughly properties are tried out: 40 examples each, a few (`make test-quick`), or many (`make soak`).

Without a deadline: no test fails because the machine was busy.
"""

from __future__ import annotations

from hypothesis import settings

from tests.quick_writer import quick_writer as quick_writer

for name, examples in (("usual", 40), ("quick", 15), ("many", 500)):
    settings.register_profile(name, deadline=None, max_examples=examples)
settings.load_profile("usual")
