"""How thoroughly properties are tried out: as by default, or a few examples each (`make test-quick`)."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("quick", max_examples=15)
