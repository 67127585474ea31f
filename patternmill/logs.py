"""Log lines for people and for programs. Secrets are masked in the finished line, whatever brought them there."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from pythonjsonlogger.json import JsonFormatter

from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.passwords import MASK, mask_passwords, passwords_in
from patternmill.settings import load_settings
from patternmill.text import each_text, visible_lines

#: The environment variable that has lines written to the error output, as `text` or `json`.
LOG_FORMAT = "PATTERNMILL_LOG_FORMAT"
#: The packages whose log lines are written.
_OURS = ("patternmill", "tasks", "prefect_host", "cli")
_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|AUTH|LEDGER_URL|CONNECTION_URL", re.IGNORECASE)
#: The shortest secret that is masked, in characters: a shorter value may be an ordinary word.
_SHORTEST_SECRET = 6
_BEARER = re.compile(r"(?i)(bearer\s+)[^\s\"',;]+")


def known_secrets() -> list[str]:
    """Return every secret of the settings and the environment, the longest first."""
    secrets = {secret for secret in _secrets() if len(secret) >= _SHORTEST_SECRET}
    return sorted(secrets, key=len, reverse=True)


def _secrets() -> Iterator[str]:
    # The code that uses the settings reports what is wrong with them.
    with suppress(PatternmillError):
        yield from load_settings(unknown_too=True).secrets()
    for name, value in os.environ.items():
        yield from passwords_in(value)
        if _SECRET_NAMES.search(name):
            yield value


def masked(text: str, secrets: Iterable[str] | None = None) -> str:
    """Return a text without known secrets, bearer credentials and passwords in addresses."""
    for secret in known_secrets() if secrets is None else secrets:
        text = text.replace(secret, MASK)
    return mask_passwords(_BEARER.sub(rf"\1{MASK}", text))


class _TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._secrets = known_secrets()

    def format(self, record: logging.LogRecord) -> str:
        """Mask the finished line, its traceback included."""
        return visible_lines(masked(super().format(record), self._secrets))


class _JsonLines(JsonFormatter):
    """A JSON object for each line, with what a call passed as `extra`; everything but ASCII is escaped."""

    def __init__(self) -> None:
        names = {"levelname": "level", "name": "logger", "exc_info": "traceback"}
        super().__init__(["levelname", "name", "message"], rename_fields=names, timestamp="at")
        self._secrets = known_secrets()

    def format(self, record: logging.LogRecord) -> str:
        """Mask each text of the finished object, so that no escape hides a secret and no mask breaks the line."""
        line = json.loads(super().format(record))
        return json.dumps(each_text(line, lambda text: masked(text, self._secrets)))


_FORMATS: dict[str, Callable[[], logging.Formatter]] = {"text": _TextLines, "json": _JsonLines}


def write_logs() -> None:
    """Write log lines to the error output from now on, where the environment asks for them.

    Raises ConfigurationError for an unknown format.
    """
    name = os.environ.get(LOG_FORMAT)
    if not name:
        return
    if name not in _FORMATS:
        remedy = f"Set it to {' or '.join(_FORMATS)}, or leave it out."
        raise ConfigurationError(f"{LOG_FORMAT} is {name!r}.", remedy=remedy)
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATS[name]())
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
