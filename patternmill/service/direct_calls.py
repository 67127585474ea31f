"""Calls that a person makes of any operation, and nothing is built on: only what cannot buy anything is allowed."""

from __future__ import annotations

import re

from patternmill.errors import ConfigurationError

#: `{base_url}/<group>/<operation>`; no other spelling, so that none means another operation than it says.
_OPERATION = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,60})/([A-Za-z][A-Za-z0-9-]{0,60})", re.ASCII)
_READING = frozenset({"get", "list"})


def only_reads(operation: str) -> bool:
    """Whether an operation only shows something, by its name.

    Raises ConfigurationError when the name is none, or is that of one that may buy something.
    """
    parts = _OPERATION.fullmatch(operation)
    if parts is None:
        raise ConfigurationError(
            f"{operation!r} is no operation.", remedy="Write its group and name, as in `models/list`."
        )
    group, name = (part.lower() for part in parts.groups())
    if name in _READING:
        return True
    if "create" in name or group == "refine":
        raise ConfigurationError(
            f"{operation} may buy something, and would not be on record in the ledger.",
            code="may_buy",
            remedy="Runs make patterns and products (`patternmill import`); a report is `patternmill feedback`. "
            "Nothing was sent.",
        )
    return False
