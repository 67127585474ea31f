"""Reports of unexpected errors: the traceback in a file under the home, with secrets masked."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from patternmill.errors import PatternmillError
from patternmill.files import private_folder, write_private
from patternmill.passwords import MASK, mask_passwords, passwords_in
from patternmill.settings import Settings, load_settings

SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|AUTH|LEDGER_URL|CONNECTION_URL", re.IGNORECASE)
#: Shorter values are words that a mask would strike everywhere.
SHORTEST_SECRET = 6
BEARER = re.compile(r"(?i)(bearer\s+)[^\s\"',;]+")


def masked(text: str) -> str:
    """`text` without the known secrets, bearer credentials and passwords in addresses."""
    known = {secret for secret in _known_secrets() if len(secret) >= SHORTEST_SECRET}
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return mask_passwords(BEARER.sub(rf"\1{MASK}", text))


def masked_traceback(error: BaseException) -> str:
    return masked("".join(traceback.format_exception(error)))


def write_report(error: BaseException) -> Path | None:
    """Write the traceback to a new file under `<home>/logs`; None when that fails."""
    settings = _settings()
    logs = (settings.home if settings else Path(".patternmill")) / "logs"
    try:
        path = private_folder(logs) / f"error-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
        write_private(path, masked_traceback(error))
    except OSError:
        return None
    return path


def _known_secrets() -> Iterator[str]:
    settings = _settings()
    yield from settings.secrets() if settings else ()
    for name, value in os.environ.items():
        yield from passwords_in(value)
        if SECRET_NAMES.search(name):
            yield value


def _settings() -> Settings | None:
    try:
        return load_settings()
    except PatternmillError:
        return None
