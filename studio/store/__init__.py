"""The studio's memory: everything that was created, and an append-only record of every create, in one SQLite file."""

from __future__ import annotations

from pathlib import Path

from studio.store.checkout_table import Checkout, CheckoutTable, Line, Order
from studio.store.database import DEFAULT_ACCOUNT, Account, Database
from studio.store.fault_table import FaultTable
from studio.store.feedback_table import Feedback, FeedbackTable, SettingTable
from studio.store.job_table import Job, JobId, JobTable, Kind
from studio.store.key_table import ApiKey, KeyTable
from studio.store.reference_table import Reference, ReferenceTable
from studio.store.request_table import (
    CreateRequest,
    RecordLine,
    RequestId,
    RequestTable,
    Verdict,
    read_record,
)
from studio.store.session_table import SessionTable

__all__ = [
    "DATABASE",
    "DEFAULT_ACCOUNT",
    "Account",
    "ApiKey",
    "Checkout",
    "CreateRequest",
    "Feedback",
    "Job",
    "JobId",
    "Kind",
    "Line",
    "Order",
    "RecordLine",
    "Reference",
    "RequestId",
    "Store",
    "Verdict",
    "read_record",
]

#: The file's name in a studio's home.
DATABASE = "studio.db"


class Store:
    """The tables of the studio's file."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)
        self.transaction = self._database.transaction
        self.requests = RequestTable(self._database)
        self.jobs = JobTable(self._database)
        self.checkouts = CheckoutTable(self._database)
        self.references = ReferenceTable(self._database)
        self.keys = KeyTable(self._database)
        self.sessions = SessionTable(self._database)
        self.feedback = FeedbackTable(self._database)
        self.faults = FaultTable(self._database)
        self.settings = SettingTable(self._database)

    def reset(self) -> None:
        """Empty all tables but the API keys and the console's sessions, all at once."""
        empty = Database(Path(":memory:"))
        for table in ("api_key", "session"):
            empty.add_rows(table, self._database.all(f"SELECT * FROM {table}"))  # noqa: S608
        self._database.replace_with(empty)
        empty.close()

    def close(self) -> None:
        self._database.close()
