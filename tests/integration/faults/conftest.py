"""The warm process of the acceptance tests, for faults around real processes."""

from __future__ import annotations

from tests.acceptance.prefect_servers import zygote

__all__ = ["zygote"]
