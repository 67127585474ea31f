"""Verbs, their options made from the fields of their requests, and the question which catalog is meant."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from cli.json_output import write_json
from cli.terminal import can_ask, echo_lines, typed
from patternmill.addresses import shown_address
from patternmill.errors import ConfigurationError, SeveralCatalogs
from patternmill.parameters import CHANGES, DUPLICATES, LEDGER, checked_path, confirmation
from patternmill.runs.request import RunRequest
from patternmill.states import RowStatus
from patternmill.tables.row_filter import RowFilter

Options = Callable[[Callable[..., Any]], Callable[..., Any]]
Request = TypeVar("Request", bound=BaseModel)

_APPROVE = click.option(
    "--approve",
    metavar="DIGEST",
    help="Approve the plan with this digest, or its first 12 characters, as --plan-only shows it.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object, for programs.")
_EXITS_OF_RUNS = (
    "Exit codes: 0 every row has its product; 3 completed with failures, or something waits for a person; 2 refused "
    "before anything was spent, or not approved; 1 failed; 4 another run of this catalog goes on; 130 interrupted."
)
#: What pydantic says of a name is the pattern that it does not match.
_EXPECTATIONS = {
    "environment": "must have lower-case letters, digits, - and _ alone, 63 at most, as in `staging`",
    "catalog": "must have letters, digits, dashes, dots and spaces alone, 63 at most: it names a folder too",
    "order": "must have letters, digits, dashes, dots and spaces alone, 63 at most",
    "budget": "must be an amount, as in 500.00",
    "status": f"must be of {', '.join(RowStatus)}",
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
#: Where a command's context keeps what was typed.
_ARGUMENTS = "patternmill.arguments"


def verb(
    name: str,
    model: type[BaseModel] | None = None,
    *,
    declared: tuple[str, ...] = (),
    approves: bool = False,
    has_json: bool = True,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a verb of a function; where it needs one of several catalogs, it offers the choice on a terminal.

    `model`: its request, whose fields are its options but for those that are `declared` at the function, as arguments
    for instance; the function gets it as `request`. `approves`: it takes the digest of a plan as `approve`.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        @wraps(function)
        def run(*, as_json: bool = False, **options: Any) -> int:
            if as_json:
                return write_json(lambda: function(**options))
            try:
                return function(**options)
            except SeveralCatalogs as several:
                if not can_ask():
                    raise
                return function(**_with_catalog(options, *_chosen(several.scopes)))

        command: Callable[..., int] = _JSON(run) if has_json else run
        command = _APPROVE(command) if approves else command
        if model is None:
            return click.command(name)(command)
        # Its own before those of every run.
        fields = [name for name in model.model_fields if name not in declared]
        names = sorted(fields, key=RunRequest.model_fields.__contains__)
        epilog = _EXITS_OF_RUNS if issubclass(model, RunRequest) else None
        made = click.command(name, cls=_RequestCommand, epilog=epilog)(named_options(model, *names)(command))
        made.model = model
        return made

    return decorate


def _with_catalog(options: Mapping[str, Any], catalog: str, environment: str) -> dict[str, Any]:
    """Return the options of a verb with the catalog that was chosen; `look` takes its name as its argument."""
    if "request" in options:
        update = {"catalog": catalog, "environment": environment}
        return {**options, "request": options["request"].model_copy(update=update)}
    return {**options, "catalog" if "catalog" in options else "run": catalog, "environment": environment}


def _chosen(scopes: Sequence[tuple[str, str]]) -> tuple[str, str]:
    named = {name: (name, environment) for name, environment in reversed(scopes)}
    numbered = {str(number): scope for number, scope in enumerate(scopes, 1)}
    lines = [f"  {number}) {name} ({environment})" for number, (name, environment) in numbered.items()]
    echo_lines(["Several catalogs here:", *lines])
    choices = click.Choice([*numbered, *named])
    choice: str = click.prompt("Number or name", type=choices, show_choices=False)
    return numbered.get(choice) or named[choice]


class _RequestCommand(click.Command):
    """A verb that gets the options of its request as one argument, `request`."""

    model: type[BaseModel]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = tuple(args)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            values = {name: ctx.params.pop(name) for name in self.model.model_fields if name in ctx.params}
            ctx.params["request"] = checked_request(self.model, values)
        return rest


def named_options(model: type[BaseModel], *names: str) -> Options:
    """Return options for some of the fields of a request, as its JSON schema describes them."""
    schema = model.model_json_schema()

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            is_required = name in schema.get("required", ())
            command = _option(name, schema["properties"][name], required=is_required)(command)
        return command

    return decorate


def _option(name: str, field: dict[str, Any], *, required: bool) -> Options:
    kind = field["anyOf"][0] if "anyOf" in field else field
    flag, text = f"--{name.replace('_', '-')}", field["description"]
    if kind["type"] == "boolean":
        return click.option(flag, is_flag=True, help=text)
    is_repeatable = kind["type"] == "array" or name == "confirm"
    types: dict[str, Any] = {
        "integer": click.IntRange(kind.get("minimum"), kind.get("maximum")),
        "path": click.Path(path_type=Path),
    }
    return click.option(
        flag,
        type=types.get(kind.get("format", kind["type"])),
        metavar=_METAVARS.get(name, "N" if kind["type"] == "integer" else None),
        multiple=is_repeatable,
        required=required,
        callback=(lambda context, option, values: confirmation(values)) if name == "confirm" else None,
        help=f"{text} Repeatable." if is_repeatable else text,
    )


#: The filter of rows, for verbs whose request is nothing else.
filter_options = named_options(RowFilter, *RowFilter.model_fields)


class PlaceType(click.Path):
    """Accepts a file or folder to write to, and no address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return checked_path(Path(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def checked_request(model: type[Request], options: Mapping[str, Any]) -> Request:
    """Return a request made of options; those that are None count as not set. Raises ConfigurationError."""
    try:
        return model(**{name: value for name, value in options.items() if value not in (None, ())})
    except ValidationError as error:
        faults = {
            str(fault["loc"][0]): fault["msg"].removeprefix("Value error, ") for fault in error.errors()
        }
        messages = (
            f"--{name.replace('_', '-')} {_EXPECTATIONS.get(name, text)}" for name, text in faults.items()
        )
        raise ConfigurationError(f"{'; '.join(messages)}.", remedy="Correct it, or see --help.") from None


def command_line() -> str:
    """Return what a person typed to begin this run, without secrets."""
    context = click.get_current_context(silent=True)
    if context is None or _ARGUMENTS not in context.meta:
        return "the same command again"
    arguments = map(_shown_argument, context.meta[_ARGUMENTS])
    return typed(shlex.join(["patternmill", context.info_name or "", *arguments]))


def _shown_argument(argument: str) -> str:
    flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{flag}{equals}{shown_address(value)}"
