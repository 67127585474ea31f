"""The options of the command line that set a studio's instruments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from studio.instruments.clock import read_clock
from studio.instruments.fault_plan import NO_FAULTS, FaultPlan, load_plan
from studio.instruments.instrument_set import Start

Value = TypeVar("Value")


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for testing others")
    group.add_argument("--control", action="store_true", help="POST /control/... may change it while it runs")
    group.add_argument(
        "--clock",
        type=_reading(read_clock),
        default="real",
        metavar="real|manual|INSTANT",
        help="manual: time stands still until it is moved; an instant: so, beginning there",
    )
    group.add_argument("--faults", type=_reading(_plan), metavar="FILE", help="a fault plan, JSON or TOML")


def take_start(options: dict[str, Any]) -> Start:
    """What these options set, taken out of all options."""
    return Start(
        clock=options.pop("clock"),
        plan=options.pop("faults") or NO_FAULTS,
        control=options.pop("control"),
    )


def _plan(path: str) -> FaultPlan:
    try:
        return load_plan(Path(path))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error


def _reading(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """So that a person sees the reason, not the name of a function."""

    def argument(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return argument
