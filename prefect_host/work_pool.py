"""The work pool of our deployments: its name, and its job template, with which a run sets only parameters."""

from pathlib import Path

POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"
