"""Writes to the terminal, and to files that a person names; escapes control characters in foreign text."""

from __future__ import annotations

import errno
import html
import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from patternmill.addresses import shown_address
from patternmill.errors import (
    ApprovalNeeded,
    ConfigurationError,
    InputRefused,
    Overlap,
    Paused,
    ServiceStopped,
)
from patternmill.files import replace_private, write_whole
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import visible_lines

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: The errors of a pipe without a reader, and of a closed terminal.
_READER_LEFT = {errno.EPIPE, errno.EIO}
_ERASE_LINE = "\r\x1b[K"


class Steps:
    """Shows on stderr what a command is doing: one line that changes on a terminal, else a line for each step."""

    _last = ""
    _is_shown = False

    def show(self, text: str) -> None:
        """Show a step."""
        line = visible_lines(text)
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            columns = shutil.get_terminal_size().columns
            _write(_ERASE_LINE + (line if len(line) < columns else line[: columns - 2] + "…"))
            self._is_shown = True
        elif line != self._last:
            click.echo(line, err=True)
        self._last = line

    def clear(self) -> None:
        """Remove the line, before anything else is written."""
        if self._is_shown:
            self._is_shown = False
            _write(_ERASE_LINE)


def _write(text: str) -> None:
    # This is not left to click, which may remove the control characters.
    sys.stderr.write(text)
    sys.stderr.flush()


#: The steps of this process.
steps = Steps()
#: Whether questions may be asked: never when the output is JSON for a program.
asks: ContextVar[bool] = ContextVar("asks", default=True)

#: The errors that are raised before anything is spent; if a service stops a run later, that is the run's outcome.
_NOTHING_SPENT = (InputRefused, ConfigurationError, ApprovalNeeded, ServiceStopped)


class _Output(io.FileIO):
    """Discards what nobody reads any more, so that a command finishes its work after `| head`, too."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in _READER_LEFT:
                raise
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Keep a standard stream that is closed, now or later, from changing what the command does.

    Otherwise the next file to be opened would get the number of a stream that the caller closed, and would receive what
    is written there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The lowest free number, which is this one, goes to the next file.
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


def can_ask() -> bool:
    """Return whether a person can read a question here, and answer it."""
    return asks.get() and os.isatty(0) and os.isatty(1)


def confirmed(question: str, refusal: str) -> bool:
    """Return whether a person says yes; without a terminal, print the refusal and return False."""
    if not can_ask():
        echo(f"{refusal}: there is no terminal to ask on. Add --yes.", err=True)
        return False
    return said_yes(question)


def said_yes(question: str, *, default: bool = False) -> bool:
    """Return whether a person says yes; `default` is what Enter means."""
    steps.clear()
    return click.confirm(question, default=default)


def command_line() -> str:
    """Return what a person typed to begin this command, without secrets."""
    context = click.get_current_context(silent=True)
    if context is None or context.obj is None:
        return "the same command again"
    return typed(shlex.join(["patternmill", *map(_without_secrets, context.obj)]))


def _without_secrets(argument: str) -> str:
    flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{flag}{equals}{shown_address(value)}"


def typed(command: str) -> str:
    """Return a command as a person can type it here, even if the program's environment is not active."""
    if shutil.which("patternmill") is not None:
        return command
    return f"source {shlex.quote(os.path.relpath(sys.prefix))}/bin/activate && {command}"


def login_hint(address: str, verb: str = "status --open") -> str:
    """Return the link that signs a browser in; in a log, which must not contain it, say where to find it."""
    if sys.stdout.isatty():
        return f"{address}  (private sign-in link, once per browser)"
    return f"`patternmill {verb}` on a terminal shows the sign-in link"


def open_signed_in(address: str, page: Path) -> None:
    """Open a sign-in link in the browser of this desktop, if a person sits at one.

    The link goes through `page`, which only its owner can read: anyone can read a browser's command line.
    """
    has_desktop = sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    if can_ask() and has_desktop:
        replace_private(page, f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">')
        click.launch(str(page))


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of a command that an error ends."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return EXIT_CODES[Outcome.CANCELLED]
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, Paused):
        return EXIT_CODES[Outcome.PAUSED]
    if isinstance(error, Overlap):
        return EXIT_CODES[Outcome.SKIPPED_OVERLAP]
    return EXIT_REFUSED if isinstance(error, _NOTHING_SPENT) else EXIT_CODES[Outcome.FAILED]


def report_error(message: str, remedy: str) -> None:
    """Write an error and its remedy to the error output."""
    steps.clear()
    color = False if os.environ.get("NO_COLOR") else None
    click.secho("error: ", fg="red", bold=True, nl=False, err=True, color=color)
    echo(message, err=True)
    if remedy:
        echo(f"  {remedy}", err=True)
