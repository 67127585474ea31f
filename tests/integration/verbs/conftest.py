"""The same ledgers as those of the ledger's own tests, for the verbs that read them, and a Prefect server."""

from __future__ import annotations

from tests.acceptance.prefect_servers import joint_server
from tests.integration.ledger.conftest import clock, ledger, open_ledger, postgres_server, postgres_url, url

__all__ = ["clock", "joint_server", "ledger", "open_ledger", "postgres_server", "postgres_url", "url"]
