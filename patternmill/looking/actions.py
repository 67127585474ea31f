"""The commands that a person can start from the page, each once for the plan that was shown."""

from __future__ import annotations

import secrets
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from patternmill.errors import InputRefused
from patternmill.runs.plan_text import ShownPlan

#: The most lines of each output of a command that the page shows, and the most shown plans that are remembered.
_MOST_LINES, _MOST_SHOWN = 60, 100


@dataclass(frozen=True)
class Action:
    """A command of the page, and a function that says what it would do now."""

    #: Returns None if there is nothing to do. Raises PatternmillError.
    plan: Callable[[], ShownPlan | None]
    #: The command that carries out a plan, whose digest is appended.
    command: Sequence[str]


@dataclass(frozen=True)
class BegunCommand:
    """A command that was started, with what it has written so far."""

    name: str
    #: The digest of the plan that it carries out.
    digest: str
    process: subprocess.Popen[str]
    #: Its standard output, and its error output, where it says what it is doing.
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    steps: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    _readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        for stream, lines in ((self.process.stdout, self.lines), (self.process.stderr, self.steps)):
            assert stream is not None, "both are pipes"
            self._readers.append(threading.Thread(target=_read, args=(stream, lines), daemon=True))
            self._readers[-1].start()

    @property
    def code(self) -> int | None:
        """Return the exit code once all output is read; None while it runs."""
        return None if any(reader.is_alive() for reader in self._readers) else self.process.poll()

    def wait(self) -> None:
        for reader in self._readers:
            reader.join()
        self.process.wait()

    def shown(self) -> dict[str, Any]:
        """Return its state as the page reads it."""
        return {"name": self.name, "lines": list(self.lines), "steps": list(self.steps), "code": self.code}


def _read(stream: IO[str], lines: deque[str]) -> None:
    with stream:
        lines.extend(line.rstrip("\n") for line in stream)


class Actions:
    """The commands of one page. A plan can be carried out once, and only as it was shown."""

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = actions
        #: Under the token that the page got with a plan: its command's name with the plan, and the command once begun.
        self._shown: dict[str, tuple[str, ShownPlan]] = {}
        self._begun: dict[str, BegunCommand] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        return list(self._actions)

    def show(self, name: str) -> dict[str, Any] | None:
        """Return the current plan of a command, with a token to carry it out; None if there is nothing to do."""
        plan = self._actions[name].plan()
        if plan is None:
            return None
        token = secrets.token_urlsafe(16)
        with self._lock:
            self._shown[token] = (name, plan)
            for old in list(self._shown)[:-_MOST_SHOWN]:
                del self._shown[old]
        return {"sum": plan.sum, "lines": plan.lines, "token": token}

    def begin(self, name: str, token: str) -> BegunCommand:
        """Start a command for the plan that was shown with a token, or return the one that this plan started.

        Raises InputRefused if no plan was shown with it, or the plan has changed.
        """
        with self._lock:
            its_name, plan = self._shown.get(token, ("", None))
            if plan is None or its_name != name:
                raise InputRefused("This plan was not shown, or was carried out.", remedy="Look at it again.")
            if token not in self._begun:
                same = (name, plan.digest, None)
                others = self._begun.values()
                running = (other for other in others if (other.name, other.digest, other.code) == same)
                self._begun[token] = next(running, None) or self._start(name, plan)
            return self._begun[token]

    def _start(self, name: str, plan: ShownPlan) -> BegunCommand:
        if self._actions[name].plan() != plan:
            raise InputRefused(
                "The plan has changed since it was shown. Nothing was started.", remedy="Look at it again."
            )
        process = subprocess.Popen(
            [*self._actions[name].command, "--approve", plan.digest],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C on the terminal goes to the server of the page, which passes it on.
            start_new_session=True,
        )
        return BegunCommand(name, plan.digest, process)

    def begun(self) -> list[dict[str, Any]]:
        """Return the commands that were started, the latest last, as the page reads them."""
        return [command.shown() for command in list(self._begun.values())]

    def stop(self, on_wait: Callable[[str], None]) -> None:
        """Stop the commands that still run, as Ctrl-C does, and wait; call `on_wait` with the name of each.

        Another Ctrl-C meanwhile is passed on too, and ends the command at once, as on a terminal of its own.
        """
        for command in list(self._begun.values()):
            if command.code is None:
                on_wait(command.name)
            while command.code is None:
                with suppress(KeyboardInterrupt):
                    command.process.send_signal(signal.SIGINT)
                    command.wait()
