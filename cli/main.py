"""The command `patternmill`: loads the requested verb, and turns errors into messages and exit codes."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

import click

from cli.terminal import echo, exit_code_of, prepare_streams, report_error
from patternmill import __version__
from patternmill.errors import ConfigurationError, PatternmillError
from patternmill.processes import collect_no_more, collect_rarely

#: The summary of each verb in the list of verbs.
VERBS_BY_HEADING = {
    "Make": {
        "check": "Check a sheet, and ask once what its columns mean.",
        "offer": "Show what can be made.",
        "import": "Turn the rows of a sheet into products.",
        "refresh": "Update a catalog: make only what has changed.",
        "retry": "Retry rows that failed, were stopped or are in doubt.",
    },
    "Look and order": {
        "look": "Look at what was made: keep, reject or ask for others.",
        "remake": "Make another take of a pattern, and its products.",
        "order": "Order samples of rows: a checkout that a person pays.",
    },
    "See and decide": {
        "status": "Show runs, catalogs, what is open, what to do next.",
        "explain": "Show the history of a row or ID; report a failure.",
        "settle": "Decide about requests that are in doubt or held.",
        "catalog": "Write what a catalog has: each sku with its product ID.",
        "results": "Write the results files of a run again, or delete them.",
    },
    "Operate": {
        "pause": "Stop all buying, by any run.",
        "unpause": "Lift a pause.",
        "up": "Serve the Prefect UI, a worker and the deployments.",
        "studio": "Serve the embedded studio.",
        "doctor": "Check the installation: disk, ledger, key, Prefect, limits.",
    },
}
VERBS = [verb for verbs in VERBS_BY_HEADING.values() for verb in verbs]
#: The click commands of verbs that share a module of `cli.commands`; that of any other verb is `command` in its own.
_PLACES = {
    "check": "check.check",
    "offer": "check.offer",
    "import": "making.import_",
    "refresh": "making.refresh",
    "retry": "making.retry",
    "remake": "making.remake",
    "catalog": "results.catalog",
    "results": "results.results",
    "unpause": "pause.unpause",
    "studio": "up.studio",
}
#: Names that are read beside the settings.
OTHER_VARIABLES = {
    "PATTERNMILL_STUDIO_URL",
    "PATTERNMILL_API_KEY",
    "PATTERNMILL_DEBUG",
    "PATTERNMILL_LOG_FORMAT",
    "PATTERNMILL_WORKER_FOLDER",
}


class Verbs(click.Group):
    """A group whose verbs are imported on use, so that each starts with only what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return VERBS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, name = _PLACES.get(cmd_name, f"{cmd_name}.command").partition(".")
        command: click.Command = getattr(importlib.import_module(f"cli.commands.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"There is no verb {args[0]!r}{_near(args[0], VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in VERBS_BY_HEADING.items():
            with formatter.section(heading):
                formatter.write_dl(list(verbs.items()))


def _near(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name, with the nearest known one."""
    nearest = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {nearest[0]}?" if nearest else "."


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    subcommand_metavar="VERB ...",
)
@click.version_option(__version__, prog_name="patternmill")
def patternmill() -> None:
    """Turn a sheet of prompts and selections into products. The same command again resumes, and pays for nothing twice.

    Without an account: patternmill import inputs/spring_catalog.csv

    Settings are in the environment or in .env: see .env.example. Exit codes: 0 done, 3 with failures, 2 refused and
    nothing spent, 1 failed, 4 another run goes on, 130 interrupted.
    """
    from patternmill.env_file import PREFIX, set_variables, variable
    from patternmill.settings import Settings

    settings = {*map(variable, Settings.model_fields), *OTHER_VARIABLES}
    for name in sorted(set_variables(os.environ).keys() - settings):
        if name.startswith(PREFIX):
            # A limit whose name is misspelt would be no limit.
            echo(f"warning: {name} is no setting{_near(name, settings)}", err=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one verb, whose callback returns its exit code, and end the process with it."""
    prepare_streams()
    # SIGTERM acts as Ctrl-C until there is a run to stop: what was started is ended, with the exit code of a stop.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    collect_rarely()
    code = run(arguments)
    collect_no_more()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; every error becomes a message on stderr."""
    return guarded(partial(_run_verb, sys.argv[1:] if arguments is None else arguments))


def _run_verb(arguments: Sequence[str]) -> object:
    for text in arguments:
        if text != text.encode(errors="replace").decode():
            raise ConfigurationError(
                f"{text!r} is not written in UTF-8, as everything on record is.",
                remedy="Rename the file, or set the terminal to UTF-8.",
            )
    # What was typed is the object of every click context.
    return patternmill.main(arguments, prog_name="patternmill", standalone_mode=False, obj=arguments)


def guarded(work: Callable[[], object]) -> int:
    """Return the exit code of what a process does; every error becomes a message on stderr."""
    try:
        if "@" in os.environ.get("PREFECT_API_URL", ""):
            raise ConfigurationError(
                "PREFECT_API_URL holds a user name or password, which Prefect would write into its logs.",
                remedy="Remove it, and set PREFECT_API_AUTH_STRING=user:password instead.",
            )
        if os.environ.get("PATTERNMILL_LOG_FORMAT"):
            from patternmill.logs import write_logs

            write_logs()
        code = work()
        return code if isinstance(code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, click.ClickException):
            error.show()
        elif isinstance(error, click.Abort | KeyboardInterrupt):
            echo("Interrupted.", err=True)
        elif isinstance(error, PatternmillError):
            report_error(error.message, error.remedy)
        else:
            _report_unexpected(error)
        return exit_code_of(error)


def _report_unexpected(error: BaseException) -> None:
    """Say in a line what happened, and write the traceback, with secrets masked, to a file under the home."""
    from patternmill.files import private_folder, replace_private
    from patternmill.logs import masked
    from patternmill.settings import load_settings

    text = masked("".join(traceback.format_exception(error)))
    if os.environ.get("PATTERNMILL_DEBUG"):
        echo(text, err=True, nl=False)
        return
    home = Path(".patternmill")
    with suppress(PatternmillError):
        home = load_settings().home
    try:
        report = private_folder(home / "logs") / f"error-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
        replace_private(report, text)
        place = f"The traceback is in {report}."
    except OSError:
        place = "Set PATTERNMILL_DEBUG=1 to see the traceback."
    summary = masked(f"{type(error).__name__}: {error}").splitlines()[0]
    report_error(
        f"Something unexpected happened: {summary}",
        f"{place} The ledger has all requests: run the command again to resume.",
    )


if __name__ == "__main__":
    main()
