"""What the integration tests share."""

from __future__ import annotations

from tests.acceptance.prefect_servers import unforked, warm

__all__ = ["unforked", "warm"]
