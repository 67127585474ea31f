"""One line of JSON on standard error for each transition, once it is durable, and for each end of a run."""

import json
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

#: Programs may add handlers of their own to it; each record's message is such a line.
transitions = logging.getLogger("patternmill.transitions")


def set_up(log_format: str) -> None:
    """Write lines as the settings say: `json`, or none."""
    if log_format == "json" and not transitions.handlers:
        transitions.addHandler(logging.StreamHandler())
        transitions.setLevel(logging.INFO)
        transitions.propagate = False


def tell(facts: Iterable[Mapping[str, Any]]) -> None:
    """Write a line for each fact, without what is empty. `event` says what happened, `at` when (UTC)."""
    if transitions.isEnabledFor(logging.INFO):
        for fact in facts:
            at = fact.get("at") or time.time()
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03}Z"
            known = {name: value for name, value in fact.items() if value not in ("", None, [], {})}
            transitions.info("%s", json.dumps({**known, "at": moment}, ensure_ascii=False))
