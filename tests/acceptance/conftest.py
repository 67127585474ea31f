"""Fixtures that the acceptance tests share."""

from __future__ import annotations

from tests.acceptance.prefect_servers import joint_server, unforked, warm, zygote

__all__ = ["joint_server", "unforked", "warm", "zygote"]
