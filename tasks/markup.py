"""Escapes texts of files, people and the service for Prefect's UI: shown literally, never as markup or a link.

Both of Prefect's UIs read artifacts, their descriptions and the description of a form as GitHub's markdown with HTML in
it; the older one reads cells of table artifacts so too. Addresses become links wherever they are: no escape prevents
that, code does. In log lines both UIs look for http:// and https://, the older one for colours of a terminal.
Names, messages of states and events are shown as plain text.
"""

from __future__ import annotations

import re

from patternmill.catalog.problems import visible

LONGEST = 1000
#: What Prefect's UI takes for an address without any markup; a pipe would end a cell, and a backtick the code.
_ADDRESS = re.compile(r"([^\s|`\\]*(?:://|www\.|@)[^\s|`\\]*)", re.IGNORECASE)
#: An underscore within a word means nothing, and an ampersand only where an entity begins.
_MARKUP = re.compile(r"[\\`*\[\]<~|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
#: Markup at the beginning of a line: lists, headings, quotes, rules.
_BEGINNING = re.compile(r"^(?:(\d{1,9})(?=[.)](?:\s|$))|(?=[-+](?:[-+\s]|$)|[=>#]))")


def line(text: str, limit: int = LONGEST) -> str:
    """One line of plain text: for names, messages of states, events."""
    text = " ".join(text.split())
    return visible(text if len(text) <= limit else text[: limit - 1] + "…")


def markdown(text: str, limit: int = LONGEST) -> str:
    """The text escaped for markdown, table cells included."""
    parts = _ADDRESS.split(line(text, limit))
    shown = (
        f"`{part}`" if number % 2 else _MARKUP.sub(r"\\\g<0>", part) for number, part in enumerate(parts)
    )
    return _BEGINNING.sub(r"\1\\", "".join(shown))


def cell(text: str) -> str:
    """The text in a table artifact: markdown to the older UI, plain to the newer, so an apostrophe for a backtick."""
    return markdown(text.replace("`", "'"))


def log_lines(text: str) -> str:
    """The lines of a log entry, without control characters or anything that becomes a link."""
    return "\n".join(visible(one) for one in text.split("\n")).replace("://", "[:]//")
