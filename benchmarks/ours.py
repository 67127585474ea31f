"""Our own contender: `patternmill import` as a person runs it, in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: The instant scenario measures what a row costs, not how fast we ask a service that we do not know.
UNPACED = {"PATTERNMILL_CREATE_RATE": "100000", "PATTERNMILL_POLL_RATE": "100000"}


def command(file: Path, out: Path) -> list[str]:
    patternmill = Path(sys.executable).with_name("patternmill")
    options = ["--out", str(out), "--catalog", "bench"]
    return [str(patternmill), "import", str(file), *options]


def environment(
    service_url: str, prefect_api_url: str, home: Path, *, window: int, paced: bool
) -> dict[str, str]:
    """Nothing of the caller's own environment but the search path."""
    return {
        "PATH": os.environ["PATH"],
        "PATTERNMILL_STUDIO_URL": service_url,
        "PATTERNMILL_API_KEY": "bench",
        "PATTERNMILL_HOME": str(home),
        "PATTERNMILL_MAX_IN_FLIGHT": str(window),
        "PREFECT_API_URL": prefect_api_url,
        "PREFECT_HOME": str(home / "prefect"),
        "DO_NOT_TRACK": "1",
        **({} if paced else UNPACED),
    }
