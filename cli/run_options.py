"""The options of `import`, `refresh`, `retry` and `order`, made from the fields of their request."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import BaseModel, ValidationError

from patternmill.errors import ConfigurationError
from patternmill.parameters import DUPLICATES, LEDGER, MAPPING_CHANGE, checked_place, confirmation
from patternmill.results.row_filter import RowFilter
from patternmill.runs.request import RunRequest
from patternmill.states import RowStatus

Command = Callable[..., Any]
Request = TypeVar("Request", bound=BaseModel)

approve_option = click.option(
    "--approve",
    metavar="DIGEST",
    help="Approve the plan with this digest, or its first 12 characters, as --plan-only shows it.",
)


class PlaceType(click.Path):
    """A file or folder to write to, which is no address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return checked_place(Path(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


#: What pydantic says of a name is the pattern that it does not match.
_NAMES = {
    "environment": "must have lower-case letters, digits, - and _ alone, 63 at most, as in `staging`",
    "catalog": "must have letters, digits, dashes, dots and spaces alone, 63 at most: it names a folder too",
    "order": "must have letters, digits, dashes, dots and spaces alone, 63 at most",
    "budget": "must be an amount, as in 500.00",
    "status": f"must be of {', '.join(RowStatus)}",
    "changed_since": "must be a date, or a date and time, as in 2026-03-01T09:30",
    "wait": "must be a number and its unit, as in 30m or 2h",
}
#: Where a command's context keeps what was typed.
_ARGUMENTS = "patternmill.arguments"
_METAVARS = {
    "changed_since": "DATE",
    "status": "A,B",
    "max_failures": "N|N%",
    "retire_at_most": "N,N%",
    "wait": "TIME",
    "order": "NAME",
}


def run_options(model: type[BaseModel], declared: tuple[str, ...]) -> Callable[[Command], Command]:
    """Options for the fields of a request, its own before the common ones; `request_command` collects them.

    Those that are `declared` are declared at the command, as arguments for instance, and collected too.
    """
    names = sorted(model.model_fields, key=RunRequest.model_fields.__contains__)
    return named_options(model, *(name for name in names if name not in declared))


def named_options(model: type[BaseModel], *names: str) -> Callable[[Command], Command]:
    """Options for some of the fields of a request."""
    schema = model.model_json_schema()
    required = schema.get("required", ())
    options = [_option(name, schema["properties"][name], required=name in required) for name in names]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def row_filter(asked: Mapping[str, Any]) -> RowFilter:
    """Raises ConfigurationError."""
    return checked_request(RowFilter, asked)


def request_command(model: type[BaseModel]) -> type[click.Command]:
    """A command that gets the options of a request as one argument, `request`."""

    class RequestCommand(click.Command):
        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            ctx.meta[_ARGUMENTS] = tuple(args)
            rest = super().parse_args(ctx, args)
            if not ctx.resilient_parsing:
                ctx.params["request"] = checked_request(
                    model, {name: ctx.params.pop(name) for name in model.model_fields}
                )
            return rest

    return RequestCommand


def command_line() -> str:
    """What a person typed to begin this run; without secrets, and without an approval, which is used up."""
    context = click.get_current_context(silent=True)
    if context is None or _ARGUMENTS not in context.meta:
        return "the same command again"
    kept = map(_shown_argument, _without_approval(context.meta[_ARGUMENTS]))
    return shlex.join(["patternmill", context.info_name or "", *kept])


def _without_approval(typed: Sequence[str]) -> list[str]:
    """Leave out `--approve` and its value."""
    arguments = list(typed)
    if "--approve" in arguments:
        place = arguments.index("--approve")
        del arguments[place : place + 2]
    return [one for one in arguments if not one.startswith("--approve=")]


def _shown_argument(argument: str) -> str:
    from patternmill.catalog.remote import shown_address

    flag, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{flag}{equals}{shown_address(value)}"


def checked_request(model: type[Request], asked: Mapping[str, Any]) -> Request:
    """A request from options; those that are None count as not set. Raises ConfigurationError."""
    try:
        return model(**{name: value for name, value in asked.items() if value not in (None, ())})
    except ValidationError as error:
        faults = [
            (str(fault["loc"][0]), fault["msg"].removeprefix("Value error, ")) for fault in error.errors()
        ]
        messages = [f"--{name.replace('_', '-')} {_NAMES.get(name, message)}" for name, message in faults]
        raise ConfigurationError(f"{'; '.join(messages)}.", remedy="Correct it, or see --help.") from None


def _option(name: str, field: dict[str, Any], *, required: bool) -> Callable[[Command], Command]:
    """`field` is the JSON schema of the request's field."""
    flag, text = f"--{name.replace('_', '-')}", field["description"]
    if name == "confirm":
        return click.option(
            flag,
            metavar=f"ENVIRONMENT|{DUPLICATES}|{MAPPING_CHANGE}|{LEDGER}",
            multiple=True,
            callback=lambda context, option, values: confirmation(values),
            help=f"{text} Repeatable.",
        )
    kind = field["anyOf"][0] if "anyOf" in field else field
    if kind["type"] == "boolean":
        return click.option(flag, is_flag=True, help=text)
    many = kind["type"] == "array"
    types: dict[str, Any] = {
        "integer": click.IntRange(kind.get("minimum"), kind.get("maximum")),
        "path": click.Path(path_type=Path),
    }
    return click.option(
        flag,
        type=types.get(kind.get("format", kind["type"])),
        metavar=_METAVARS.get(name, "N" if kind["type"] == "integer" else None),
        multiple=many,
        required=required,
        help=f"{text} Repeatable." if many else text,
    )


#: The filter of rows, for verbs whose request is nothing else: `row_filter` reads it.
filter_options = named_options(RowFilter, *RowFilter.model_fields)
