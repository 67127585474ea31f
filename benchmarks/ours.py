"""Our own contender: `patternmill import` as a person runs it, in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: The instant scenario measures what a row costs, not how fast we ask a service that we do not know.
_UNPACED = """
from patternmill.service import studio_api
studio_api.CREATE_RATE = studio_api.POLL_RATE = 100_000.0
from cli.main import main
main()
"""


def command(file: Path, out: Path, *, paced: bool) -> list[str]:
    patternmill = [str(Path(sys.executable).with_name("patternmill"))]
    program = patternmill if paced else [sys.executable, "-P", "-c", _UNPACED]
    return [*program, "import", str(file), "--out", str(out), "--catalog", "bench"]


def environment(service_url: str, prefect_api_url: str, home: Path, *, window: int) -> dict[str, str]:
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
        "PATTERNMILL_CONFIRM": "staging",
    }
