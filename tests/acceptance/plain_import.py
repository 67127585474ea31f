"""`patternmill import` as a process without Prefect: otherwise the same command, which starts in a second.

`python -m tests.acceptance.plain_import [--at K --do kill] ... -- FILE [OPTIONS OF IMPORT]`.
Options before `--` are what the test does to the program: a crash point, shorter times.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import cli.commands.making
import cli.launcher
import patternmill.runs.results_files  # noqa: F401  # loaded once, for all forks
from cli.main import run
from patternmill.ledger import ledger
from patternmill.runs import lease
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec
from patternmill.service import studio_api
from patternmill.service.resend import ResendPolicy
from patternmill.settings import load_settings
from prefect_host.connection import PrefectConnection
from tests.acceptance import points


class NoConnection(PrefectConnection):
    """A connection without a Prefect server: the command drives the run itself, as when the server is lost."""

    def start(self) -> bool:
        return False


def main(arguments: Sequence[str]) -> int:
    """Change the program as the options say, then run its command `import`; return the exit code."""
    own, theirs = _split(list(arguments))
    inject = _parser().parse_args(own)
    cli.launcher.PrefectConnection = NoConnection  # type: ignore[misc]
    if inject.first_pause is not None:
        first_pause = timedelta(seconds=inject.first_pause)
        policy = functools.partial(ResendPolicy, first_pause=first_pause)
        studio_api.ResendPolicy = policy  # type: ignore[misc,assignment]
    if inject.drain is not None:
        _drain_for(timedelta(seconds=inject.drain))
    if inject.silence is not None:
        lease.TAKEOVER_AFTER = timedelta(seconds=inject.silence)
        ledger.CONFIRMED_FOR = lease.TAKEOVER_AFTER / 2
    if inject.create_rate is not None:
        studio_api.CREATE_RATE = inject.create_rate
    if inject.explode:
        _explode()
    if inject.points is not None:
        points.watch(inject.points, at=inject.at, do=inject.do)
    return run(["import", *theirs])


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    cut = arguments.index("--")
    return arguments[:cut], arguments[cut + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plain_import")
    parser.add_argument("--points", type=Path, help="write the crash points passed into this file")
    parser.add_argument("--at", help="the point, as the file names it, at which something is done")
    parser.add_argument("--do", choices=sorted(points.DEEDS))
    parser.add_argument("--first-pause", type=float, help="seconds before a first second try (0.5)")
    parser.add_argument("--create-rate", type=float, help="creates a second (500)")
    parser.add_argument("--explode", action="store_true", help="an unexpected error that names the key")
    parser.add_argument("--drain", type=float, help="seconds for which a stopped run follows its jobs (20)")
    parser.add_argument(
        "--silence", type=float, help="seconds after which a silent holder is taken over (20)"
    )
    return parser


def _drain_for(drain: timedelta) -> None:
    def begun(spec: RunSpec, *watchers: Any) -> Run:
        return Run(replace(spec, options=replace(spec.options, drain=drain)), *watchers)

    cli.launcher.Run = begun  # type: ignore[misc,assignment]


def _explode() -> None:
    async def offer(self: studio_api.StudioApi, written: object = ()) -> Any:
        settings = load_settings()
        assert settings.service is not None
        key = settings.service.key.get_secret_value()
        raise RuntimeError(f"nobody expected this of {key}")

    studio_api.StudioApi.offer = offer  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
