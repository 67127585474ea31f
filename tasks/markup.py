"""Texts of files, people and the service in Prefect's UI and logs: shown literally, never as markup or a link.

Both of Prefect's UIs read artifacts, their descriptions and the description of a form as GitHub's markdown with HTML in
it; the older one reads cells of table artifacts so too. Addresses become links wherever they are: no escape prevents
that, code does. In log lines both UIs look for http:// and https://, the older one for colours of a terminal.
Names, messages of states and events are shown as plain text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from prefect.context import FlowRunContext
from prefect.logging.loggers import flow_run_logger

from patternmill.text import shortened, visible, visible_lines

LONGEST = 1000
#: What Prefect's UI takes for an address without any markup; a pipe would end a cell, and a backtick the code.
_ADDRESS = re.compile(r"([^\s|`\\]*(?:://|www\.|@)[^\s|`\\]*)", re.IGNORECASE)
#: An underscore within a word means nothing, and an ampersand only where an entity begins.
_MARKUP = re.compile(r"[\\`*\[\]<~|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
#: Markup at the beginning of a line: lists, headings, quotes, rules.
_BEGINNING = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[-+](?:[-+\s]|$)|[=>#]))")


def line(text: str, limit: int = LONGEST) -> str:
    """Return one line of plain text: for names, messages of states, events."""
    return visible(shortened(text, limit))


def markdown(text: str) -> str:
    """Return the text escaped for markdown, table cells included."""
    parts = _ADDRESS.split(line(text))
    shown = (
        f"`{part}`" if number % 2 else _MARKUP.sub(r"\\\g<0>", part) for number, part in enumerate(parts)
    )
    return _BEGINNING.sub(r"\1\\", "".join(shown))


def markdown_lines(lines: Iterable[str]) -> str:
    """Return lines of plain text, escaped and indented.

    By spaces that do not break: the older UI shows entities as they are written, and reads them in code.
    """
    indented = ((len(text) - len(text.lstrip()), text) for text in lines)
    return "  \n".join("\u00a0" * indent + markdown(text) for indent, text in indented)


def cell(text: str) -> str:
    """Return a cell of a table artifact: markdown to the older UI, plain to the newer, so without a backtick."""
    return markdown(text.replace("`", "'"))


def log_lines(text: str) -> str:
    """Return the lines of a log entry, without control characters or anything that becomes a link."""
    return visible_lines(text).replace("://", "[:]//")


_TRACEBACKS = logging.Formatter()


def logged(text: str) -> str:
    """Log the text in the current flow run, if any, and return it."""
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow_run_logger(context.flow_run, context.flow).info("%s", text)
    return text


def _as_text(record: logging.LogRecord) -> bool:
    """Escape a log entry, its traceback included, and let it through.

    Prefect writes a failed state that a task returns twice; left out is the one with the traceback of no exception.
    """
    if record.exc_info == (None, None, None):
        return False
    if getattr(record, "send_to_api", True):
        record.msg, record.args = log_lines(record.getMessage()), ()
    if record.exc_info and record.exc_text is None:
        record.exc_text = log_lines(_TRACEBACKS.formatException(record.exc_info))
    return True


# The lines that are shown on the pages of runs. On import of the flow, before its first log line.
for _name in ("prefect.flow_runs", "prefect.task_runs"):
    logging.getLogger(_name).addFilter(_as_text)
