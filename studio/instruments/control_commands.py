"""`python -m studio control COMMAND [FIELD=VALUE ...]`: the control interface from the shell."""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from studio.instruments.control_client import ControlClient, ControlFailed, Json

EXAMPLES = """
commands and their fields:
  state                                  how the instruments are set
  reset                                  remove all objects; API keys stay
  snapshot name=NAME, or file=PATH       write the whole state to a file
  restore name=NAME, or file=PATH        go back to it
  clock/advance seconds=90               move the manual clock
  clock/next-job-end                     move it to the next end of a job
  faults                                 how often each fault met a call, and fired
  faults/set @plan.toml                  take a fault plan, JSON or TOML; without a file: none
  shapes/set categories=paged            answer in another shape
  limits/set like=small                  take limits by name
  feedback/set on=false                  switch feedback off
  meter                                  what was bought, and what looks as if bought twice
  checkout/pay checkoutId=ID             pay a checkout; checkout/cancel likewise
"""


def main(argv: Sequence[str]) -> int:
    """0: done, and the answer is on standard output; 1: refused, or there is no such studio."""
    parser = argparse.ArgumentParser(
        prog="python -m studio control",
        description="Change a studio that runs with --control.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--home", type=Path, default=Path(".studio"), help="the studio's home")
    parser.add_argument("command")
    parser.add_argument("fields", nargs="*", metavar="FIELD=VALUE or @FILE")
    options = parser.parse_args(argv)
    try:
        answer = ControlClient(options.home).ask(options.command, read_fields(options.fields))
    except (ControlFailed, OSError, ValueError) as error:
        print(f"studio: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2, ensure_ascii=False))
    return 0


def read_fields(texts: Sequence[str]) -> Json:
    """The body of a command. A value is JSON if it can be read as such, else a text. Raises OSError, ValueError."""
    body: Json = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if text.startswith("@"):
            body |= _read(Path(text[1:]))
        elif separator:
            body[name] = _value(name, value)
        else:
            raise ValueError(f"{text!r} is no field: write FIELD=VALUE")
    return body


def _value(name: str, text: str) -> object:
    if name == "file":
        return str(Path(text).absolute())
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read(path: Path) -> Json:
    text = path.read_text("utf-8")
    found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{path} has no JSON object")
    return found
