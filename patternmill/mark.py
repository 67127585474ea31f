"""The mark beside results: which ledger made them, and how far it was, so that an older one is noticed."""

import json
from pathlib import Path
from typing import Any

from patternmill.errors import Refusal
from patternmill.files import write_whole
from patternmill.ledger.attempts import last_event
from patternmill.ledger.database import Database

_NAME = "ledger.json"


def write_marks(folders: list[Path], database: Database, environment: str) -> None:
    """Write the mark into folders of results, for this environment. Raises Refusal."""
    seq, token = last_event(database)
    for folder in folders:
        path = folder / _NAME
        marks = _read(path) | {environment: {"ledger": database.identity, "event": seq, "token": token}}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(marks, indent=2).encode() + b"\n")
        except OSError as error:
            message = f"The results cannot be written to {folder}: {error.strerror}."
            raise Refusal("results_unwritable", message, "Mend that, or name another --out.") from None


def check_marks(folders: list[Path], database: Database, environment: str) -> None:
    """Raise Refusal where results know of more than the ledger: it would buy again what they have."""
    for folder in folders:
        mark = _read(folder / _NAME).get(environment)
        if mark is None or not mark.get("event"):
            continue
        seq, token = int(mark["event"]), str(mark["token"])
        found = database.read("SELECT token FROM events WHERE seq = :seq", seq=seq)
        if found and found[0].token == token:
            continue
        known = min(last_event(database)[0], seq - 1) if mark["ledger"] == database.identity else 0
        place, unknown = folder / _NAME, seq - known
        message = f"{place} knows of {unknown:,} changes that this ledger does not: another or an older one."
        remedy = "Put the right one back; or --confirm ledger, which may buy again what they have."
        raise Refusal("other_ledger", message, remedy)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
