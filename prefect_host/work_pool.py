"""The work pool of our deployments: its name, and the template that leaves a run nothing to set but parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"


def job_template() -> dict[str, Any]:
    """The base job template of our pool: no variable that a run could set."""
    template: dict[str, Any] = json.loads(TEMPLATE.read_text("utf-8"))
    return template
