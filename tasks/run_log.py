"""Lines in the log of a flow run: what a person reads first on its page, and what its state has no room for."""

from __future__ import annotations

import logging

from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger

from tasks.markup import log_lines

#: Of Prefect's loggers, those whose lines are shown on the pages of runs: ours, and what it writes of names and states.
_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
_TRACEBACKS = logging.Formatter()


def logged(text: str) -> str:
    """Log the text in the flow run that this is called in, where it is called in one; returns it."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow_run_logger(context.flow_run, context.flow).info("%s", text)
    return text


def _as_text(record: logging.LogRecord) -> bool:
    """Rewrite the entry, traceback included, so that what it quotes is shown as itself; it is always logged."""
    if getattr(record, "send_to_api", True):
        record.msg, record.args = log_lines(record.getMessage()), ()
    if record.exc_info and record.exc_text is None:
        record.exc_text = log_lines(_TRACEBACKS.formatException(record.exc_info))
    return True


# As the flow is imported, which is before its first line.
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_as_text)
