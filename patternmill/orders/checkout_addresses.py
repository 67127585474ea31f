"""The addresses of open checkouts, kept like keys: whoever has one can pay, and see what is ordered."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from patternmill.files import private_folder, write_private
from patternmill.identifiers import RequestId

FOLDER = "checkouts"


class CheckoutAddresses:
    """Files under the home of the machine that opened the checkouts, for their owner alone; nowhere else."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def keep(self, request_id: RequestId, checkout_id: str, address: str) -> None:
        folder = private_folder(self._folder)
        fresh = folder / f".{request_id}.{secrets.token_hex(6)}.tmp"
        try:
            write_private(fresh, json.dumps({"checkoutId": checkout_id, "checkoutUrl": address}))
            fresh.replace(self._path(request_id))
        finally:
            fresh.unlink(missing_ok=True)

    def find(self, request_id: RequestId, checkout_id: str) -> str | None:
        """None where another machine opened it, or somebody removed the file."""
        try:
            kept = json.loads(self._path(request_id).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("checkoutId") != checkout_id:
            return None
        return str(kept["checkoutUrl"])

    def forget(self, request_id: RequestId) -> None:
        """Of a checkout that is paid."""
        self._path(request_id).unlink(missing_ok=True)

    def _path(self, request_id: RequestId) -> Path:
        return self._folder / f"{request_id}.json"
