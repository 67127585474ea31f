"""The check of the service: whether it still answers as it did, before the next run pays for a difference."""

from typing import Any

from prefect import State, flow

from patternmill.parameters import EnvironmentName
from tasks.service_check import service_state, show_report, watched_service


@flow(name="check-service", flow_run_name="check {environment}", persist_result=False)
async def check_service(environment: EnvironmentName = "staging") -> State[Any]:
    """Ask the service what the interface states, with free operations alone; fail when an answer has changed.

    Args:
        environment: staging, production, or another configured environment.
    """
    report, comparison = await watched_service(environment)
    await show_report(environment, report, comparison)
    return service_state(report, comparison)
