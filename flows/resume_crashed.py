"""Resume crashed runs: for workers that do not look for them themselves, as `patternmill up` does."""

from typing import Any

from prefect import State, flow

from patternmill.settings import read_settings
from patternmill.states import Outcome
from tasks.crashed_runs import resume_crashed_runs
from tasks.prefect_states import state_of


@flow(name="resume-crashed", flow_run_name="look for crashed runs", retries=0, persist_result=False)
async def resume_crashed() -> State[Any]:
    """Begin again, once, the runs of deployments whose processes are gone: what they had begun goes on."""
    sentences = await resume_crashed_runs(read_settings())
    return state_of(Outcome.COMPLETED, " ".join(sentences) or "No run has crashed.")
