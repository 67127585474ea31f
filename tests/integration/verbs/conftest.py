"""The same ledgers as those of the ledger's own tests, for the verbs that read them."""

from __future__ import annotations

from tests.integration.ledger.conftest import clock, ledger, open_ledger, postgres_server, postgres_url, url

__all__ = ["clock", "ledger", "open_ledger", "postgres_server", "postgres_url", "url"]
