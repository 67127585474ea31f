"""The work pool of our deployments: its name, its job template, and the folder of its workers."""

from pathlib import Path

POOL = "patternmill"
TEMPLATE = Path(__file__).resolve().parent.parent / "deployments" / "process-pool.json"
#: The worker hands its own folder on to its runs, which Prefect begins in the folder of the code.
WORKER_FOLDER = "PATTERNMILL_WORKER_FOLDER"
#: In the home: the log of the worker that `patternmill up` starts.
WORKER_LOG = "worker.log"
