"""Writes to a terminal, and files that are asked for; control characters in texts of others are escaped."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from patternmill.errors import ConfigurationError
from patternmill.files import write_whole
from patternmill.text import visible_lines

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: Of a pipe, and of a terminal that was closed.
_READER_LEFT = {errno.EPIPE, errno.EIO}
_TRIES = 3
_ERASE_LINE = "\r\x1b[K"


class Steps:
    """What a command is doing now, on stderr: one line that changes on a terminal, else a line for each step."""

    #: Between lines of the same step, where there is no terminal.
    SECONDS = 10.0

    def __init__(self) -> None:
        self._is_shown = False
        self._step, self._at = "", 0.0

    def show(self, text: str) -> None:
        """`text` begins with the step's name; how far it is comes after a colon."""
        if sys.stderr.isatty():
            columns = shutil.get_terminal_size().columns
            line = visible_lines(text)
            self._write(_ERASE_LINE + (line if len(line) < columns else line[: columns - 2] + "…"))
            self._is_shown = True
            return
        step, now = text.partition(":")[0], time.monotonic()
        if step != self._step or now - self._at >= self.SECONDS:
            self._step, self._at = step, now
            click.echo(visible_lines(text), err=True)

    def clear(self) -> None:
        """Call it before anything else is written."""
        if self._is_shown:
            self._is_shown = False
            self._write(_ERASE_LINE)

    def _write(self, text: str) -> None:
        # Not by click, which may remove the control characters.
        sys.stderr.write(text)
        sys.stderr.flush()


#: Of this process.
steps = Steps()


class _Output(io.FileIO):
    """Discards what has no reader any more: a command does what it was asked for after `| head`, too."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _READER_LEFT:
                raise
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Let no standard stream that is closed, now or later, change what the command does.

    In place of one that the caller has closed, the next file to be opened would get its number, and what is written
    there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # It gets the lowest number that is free, which is this one.
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, "w" if number else "r", encoding="utf-8", closefd=False))
    sys.stdout, sys.stderr = _without_broken_pipes(sys.stdout), _without_broken_pipes(sys.stderr)


def _without_broken_pipes(stream: TextIO) -> TextIO:
    buffer = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(
        buffer, stream.encoding, stream.errors, line_buffering=bool(stream.line_buffering)
    )


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Write lines, with control and invisible characters as escapes; a terminal wraps them by itself."""
    steps.clear()
    click.echo(visible_lines(str(text)), err=err, nl=nl)


def echo_lines(lines: Iterable[object]) -> None:
    for line in lines:
        echo(line)


def write_table(chunks: Iterable[bytes], out: Path | None) -> None:
    """Write a table to the standard output, or to a file. Raises ConfigurationError when it cannot be written."""
    if out is None:
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    try:
        write_whole(out, chunks)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"{out} cannot be written: {reason}.") from None


def echo_json(value: object) -> None:
    """Write a value to the standard output as JSON for programs, invisible characters as escapes."""
    steps.clear()
    click.echo(visible_lines(json.dumps(value, ensure_ascii=False, indent=2, default=str)))


def confirmed(question: str, refusal: str) -> bool:
    """The answer to a question; without a terminal it prints the refusal, and is no."""
    if not sys.stdin.isatty():
        echo(f"{refusal}: there is no terminal to ask on. Add --yes.", err=True)
        return False
    return said_yes(question)


def said_yes(question: str, *, default: bool = False) -> bool:
    """The answer to a question; after three that are neither yes nor no, it is no."""
    steps.clear()
    hint, enter = ("[Y/n]", "y") if default else ("[y/N]", "n")
    for _ in range(_TRIES):
        answer = click.prompt(f"{question} {hint}", default=enter, show_default=False).strip().lower()
        if answer in {"y", "yes", "n", "no"}:
            return answer in {"y", "yes"}
        echo("Answer y or n.")
    return False


def login_hint(address: str, verb: str = "status --open") -> str:
    """The address that logs a browser in; a log does not get it, but where to find it."""
    if sys.stdout.isatty():
        return f"{address}  (for you alone: once in each browser, after each start)"
    return f"`patternmill {verb}` on a terminal shows the address"


def report_error(message: str, remedy: str) -> None:
    """On the error output, as the end of the command."""
    steps.clear()
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    echo(message, err=True)
    if remedy:
        echo(f"  {remedy}", err=True)
