"""Verbs, their options made from the fields of their requests, and the question of which catalog is meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from cli.json_output import write_json
from cli.terminal import can_ask, echo_lines
from patternmill.errors import ConfigurationError, SeveralCatalogs
from patternmill.parameters import CHANGES, DUPLICATES, LEDGER, confirmation
from patternmill.runs.request import RunRequest
from patternmill.states import RowStatus

Request = TypeVar("Request", bound=BaseModel)

_APPROVE = click.Option(
    ["--approve"],
    metavar="DIGEST",
    help="Approve the plan with this digest, or its first 12 characters, as --plan-only shows it.",
)
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Write one JSON object, for programs.")
_EXITS_OF_RUNS = (
    "Exit codes: 0 every row has its product; 3 completed with failures, or something waits for a person; 2 refused "
    "before anything was spent, or not approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted."
)
#: What a field must be, where pydantic would only name the pattern that it does not match.
_EXPECTATIONS = {
    "environment": "must have lower-case letters, digits, - and _ alone, 63 at most, as in `staging`",
    "catalog": "must have letters, digits, dashes, dots and spaces alone, 63 at most: it names a folder too",
    "order": "must have letters, digits, dashes, dots and spaces alone, 63 at most",
    **dict.fromkeys(("file", "source"), "must name a sheet: it is empty"),
    "budget": "must be an amount, as in 500.00",
    "status": f"must be one of {', '.join(RowStatus)}",
    "changed_since": "must be a date, or a date and time, as in 2026-03-01T09:30",
    "wait": "must be a number and its unit, as in 30m or 2h",
}
_METAVARS = {
    "changed_since": "DATE",
    "status": "A,B",
    "max_failures": "N|N%",
    "retire_at_most": "N,N%",
    "change_at_most": "N,N%",
    "wait": "TIME",
    "order": "NAME",
    "confirm": f"ENVIRONMENT|{DUPLICATES}|{CHANGES}|{LEDGER}",
}


def verb(
    name: str,
    model: type[BaseModel] | None = None,
    *,
    without: tuple[str, ...] = (),
    approves: bool = False,
    has_json: bool = True,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a verb of a function; where it needs one of several catalogs, it offers the choice on a terminal.

    `model`: its request, which the function gets as `request`; its fields become options, except for those in
    `without` and the function's own arguments and options. `approves`: it takes a plan's digest as `approve`.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        def run(*, as_json: bool = False, **options: Any) -> int:
            work = partial(_run, function, model, options)
            return write_json(work) if as_json else work()

        # The arguments and options that its decorators have declared.
        params: list[click.Parameter] = [*reversed(getattr(function, "__click_params__", ()))]
        if model is not None:
            params += _options(model, {*without, *(param.name for param in params)})
        params += [option for option, is_taken in ((_APPROVE, approves), (_JSON, has_json)) if is_taken]
        epilog = _EXITS_OF_RUNS if model is not None and issubclass(model, RunRequest) else None
        return click.Command(name, params=params, callback=run, help=function.__doc__, epilog=epilog)

    return decorate


def _run(function: Callable[..., int], model: type[BaseModel] | None, options: Mapping[str, Any]) -> int:
    """Run a verb with its request in place of the options that are fields of it; ask which catalog, if it needs one."""
    fields = model.model_fields if model is not None else {}
    given = {name: value for name, value in options.items() if name not in fields}
    if model is not None:
        given["request"] = checked_request(model, {name: options[name] for name in fields if name in options})
    try:
        return function(**given)
    except SeveralCatalogs as several:
        if not can_ask():
            raise
        catalog, environment = _chosen(several.scopes)
    # `look` takes the name of a catalog as its argument.
    named = {"catalog" if "catalog" in options else "run": catalog, "environment": environment}
    return _run(function, model, {**options, **named})


def _chosen(scopes: Sequence[tuple[str, str]]) -> tuple[str, str]:
    named = {name: (name, environment) for name, environment in reversed(scopes)}
    numbered = {str(number): scope for number, scope in enumerate(scopes, 1)}
    lines = [f"  {number}) {name} ({environment})" for number, (name, environment) in numbered.items()]
    echo_lines(["Several catalogs here:", *lines])
    choices = click.Choice([*numbered, *reversed(named)])
    choice: str = click.prompt("Number or name", type=choices, show_choices=False)
    return numbered.get(choice) or named[choice]


def _options(model: type[BaseModel], left_out: Collection[str | None]) -> Iterator[click.Option]:
    """Yield options for fields of a request, as its JSON schema describes them; last those of every run."""
    fields = model.model_json_schema()["properties"]
    for name in sorted(fields, key=RunRequest.model_fields.__contains__):
        if name not in left_out:
            yield _option(name, fields[name])


def _option(name: str, field: dict[str, Any]) -> click.Option:
    kind = field["anyOf"][0] if "anyOf" in field else field
    flag, text = f"--{name.replace('_', '-')}", field["description"]
    if kind["type"] == "boolean":
        return click.Option([flag], is_flag=True, help=text)
    is_repeatable = kind["type"] == "array" or name == "confirm"
    types: dict[str, Any] = {
        "integer": click.IntRange(kind.get("minimum"), kind.get("maximum")),
        "path": click.Path(path_type=Path),
    }
    return click.Option(
        [flag],
        type=types.get(kind.get("format", kind["type"])),
        metavar=_METAVARS.get(name, "N" if kind["type"] == "integer" else None),
        multiple=is_repeatable,
        callback=(lambda context, option, values: confirmation(values)) if name == "confirm" else None,
        help=f"{text} Repeatable." if is_repeatable else text,
    )


def checked_request(model: type[Request], options: Mapping[str, Any]) -> Request:
    """Return a request made of options; those that are None count as not set. Raises ConfigurationError."""
    try:
        return model(**{name: value for name, value in options.items() if value not in (None, ())})
    except ValidationError as error:
        faults = {
            str(fault["loc"][0]): fault["msg"].removeprefix("Value error, ") for fault in error.errors()
        }
        messages = (f"{_typed_name(name)} {_EXPECTATIONS.get(name, text)}" for name, text in faults.items())
        raise ConfigurationError(f"{'; '.join(messages)}.", remedy="Correct it, or see --help.") from None


def _typed_name(field: str) -> str:
    """Return a field as a person sees it: an argument, or an option."""
    return field.upper() if field in ("file", "source") else f"--{field.replace('_', '-')}"
