"""`--json`: the report of a verb as one JSON object on the standard output, and nothing else there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TextIO

from pydantic_core import to_jsonable_python

from cli.terminal import asks, echo_lines, exit_code_of
from patternmill.errors import PatternmillError
from patternmill.text import visible_lines

#: The version of all objects. A new field keeps it; a field that changes its meaning, or goes away, raises it.
_VERSION = 1
#: A part of a report: its fields for programs (empty: none), and its text for people (empty: none).
Part = tuple[Mapping[str, object], str]


@dataclass
class _Output:
    """The object of this process, until it is written to the stream."""

    stream: TextIO | None = None
    fields: dict[str, object] = field(default_factory=dict)


_output = _Output()


def write_json(verb: Callable[[], int]) -> int:
    """Run a verb so that it writes the fields of `show` as an object, and all its texts go to the error output."""
    _output.stream, _output.fields = sys.stdout, {}
    asked = asks.set(False)
    try:
        with redirect_stdout(sys.stderr):
            code = verb()
    except BaseException as error:
        if isinstance(error, PatternmillError):
            _output.fields["error"] = fields_of(error, "code", "message", "remedy")
        write_before_exit(exit_code_of(error))
        raise
    finally:
        asks.reset(asked)
    write_before_exit(code)
    return code


def show(report: Callable[[], Mapping[str, object]], lines: Iterable[object] = ()) -> bool:
    """Print lines for people, or with `--json` add the fields of a report to the object; return whether it did that."""
    if _output.stream is None:
        echo_lines(lines)
        return False
    _output.fields.update(report())
    return True


def show_parts(sections: Mapping[str, Iterable[Part]]) -> None:
    """Print the texts of a report, a paragraph a section; or add each section as a list of its fields to the object."""
    parts = {name: list(section) for name, section in sections.items()}
    fields = {name: [fields for fields, _ in section if fields] for name, section in parts.items()}
    show(lambda: fields, filter(None, [text_of(parts)]))


def text_of(sections: Mapping[str, Iterable[Part]]) -> str:
    """Return a report as text."""
    paragraphs = ("\n".join(text for _, text in section if text) for section in sections.values())
    return "\n\n".join(filter(None, paragraphs))


def write_before_exit(exit_code: int) -> None:
    """Write the object, if there is one; call this, too, before the process ends without returning."""
    if _output.stream is not None:
        report = to_jsonable_python({"schema_version": _VERSION, "exit_code": exit_code, **_output.fields})
        text = visible_lines(json.dumps(report, ensure_ascii=False, indent=2))
        print(text, file=_output.stream, flush=True)
    _output.stream = None


def utc(at: float | None) -> datetime | None:
    """Return the time of these Unix seconds, or None for None."""
    return datetime.fromtimestamp(at, UTC) if at is not None else None


def fields_of(value: object, *names: str) -> dict[str, object]:
    """Return some attributes of a value by their names."""
    return {name: getattr(value, name) for name in names}
