"""Lines in the log of a flow run, which people read on its page."""

from __future__ import annotations

import logging

from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger

from tasks.markup import log_lines

#: Prefect's loggers whose lines are shown on the pages of runs.
_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
_TRACEBACKS = logging.Formatter()


def logged(text: str) -> str:
    """Log the text in the current flow run, if any; returns it."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow_run_logger(context.flow_run, context.flow).info("%s", text)
    return text


def _as_text(record: logging.LogRecord) -> bool:
    """A filter that escapes the entry, its traceback included, and always lets it through."""
    if getattr(record, "send_to_api", True):
        record.msg, record.args = log_lines(record.getMessage()), ()
    if record.exc_info and record.exc_text is None:
        record.exc_text = log_lines(_TRACEBACKS.formatException(record.exc_info))
    return True


# On import of the flow, before its first log line.
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_as_text)
