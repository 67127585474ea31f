"""Lines in the log of a flow run: what a person reads first on its page, and what its state has no room for."""

from __future__ import annotations

from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger


def noted(text: str) -> str:
    """The text, written into the log of the flow run that this is called in, where it is called in one."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow_run_logger(context.flow_run, context.flow).info("%s", text)
    return text
