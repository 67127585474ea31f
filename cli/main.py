"""The command `patternmill`: loads the requested verb, and turns errors into messages and exit codes."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import click

from cli.terminal import echo, prepare_streams, report_error
from patternmill import __version__
from patternmill.errors import (
    ApprovalNeeded,
    ConfigurationError,
    InputRefused,
    PatternmillError,
    ServiceStopped,
)
from patternmill.processes import collect_no_more, collect_rarely
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

EXIT_FAILED = EXIT_CODES[Outcome.FAILED]

#: Raised before anything is spent; a service that stops a run later is that run's outcome.
NOTHING_SPENT = (InputRefused, ConfigurationError, ApprovalNeeded, ServiceStopped)

#: Verb: its module, which has a click command called `command`, and its summary in the list of verbs.
VERBS: dict[str, tuple[str, str]] = {
    "check": ("cli.commands.check", "Check a sheet, and ask once what its columns mean."),
    "offer": ("cli.commands.offer", "Show what can be made."),
    "import": ("cli.commands.import_", "Turn the rows of a sheet into products."),
    "refresh": ("cli.commands.refresh", "Update a catalog: make only what has changed."),
    "retry": ("cli.commands.retry", "Retry rows that failed, were stopped or are in doubt."),
    "remake": ("cli.commands.remake", "Make another take of a pattern, and its products."),
    "order": ("cli.commands.order", "Order samples of rows: a checkout that a person pays."),
    "status": ("cli.commands.status", "Show runs, money, what is open, and what to do next."),
    "explain": ("cli.commands.explain", "Show the history of a row or ID; report a failure."),
    "settle": ("cli.commands.settle", "Decide about requests that are in doubt or held."),
    "look": ("cli.commands.look", "Look at what was made: keep, reject or ask for others."),
    "catalog": ("cli.commands.catalog", "Write what a catalog has: each sku with its product ID."),
    "results": ("cli.commands.results", "Write the results files of a run again."),
    "up": ("cli.commands.up", "Serve the Prefect UI, a worker and the deployments."),
    "studio": ("cli.commands.studio", "Serve the embedded studio."),
}
#: The heading above the verbs from this one on.
HEADINGS = {"check": "Make products", "status": "See and decide", "up": "Operate"}
#: Names that are read beside the settings.
OTHER_VARIABLES = {
    "PATTERNMILL_STUDIO_URL",
    "PATTERNMILL_API_KEY",
    "PATTERNMILL_DEBUG",
    "PATTERNMILL_WORKER_FOLDER",
}


class Verbs(click.Group):
    """A group whose verbs are imported on use, so that each starts with only what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"There is no verb {args[0]!r}{_near(args[0], VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: list[tuple[str, list[tuple[str, str]]]] = []
        for verb, (_, summary) in VERBS.items():
            if verb in HEADINGS:
                sections.append((HEADINGS[verb], []))
            sections[-1][1].append((verb, summary))
        for heading, rows in sections:
            with formatter.section(heading):
                formatter.write_dl(rows)


def _near(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known."""
    nearest = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {nearest[0]}?" if nearest else "."


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    subcommand_metavar="VERB ...",
)
@click.version_option(__version__, prog_name="patternmill")
def patternmill() -> None:
    """Turn a sheet of prompts and selections into products: a pattern of each prompt, a product of each row.

    All that is begun is on record: the same command again resumes it, and nothing is paid for twice. To try it
    without an account: patternmill import inputs/spring_catalog.csv

    Settings are in the environment or in .env: see .env.example. Exit codes: 0 done, 3 with failures, 2 refused and
    nothing spent, 1 failed, 4 another run goes on, 130 interrupted. `patternmill VERB --help` describes a verb.
    """
    _warn_of_unknown_variables()


def _warn_of_unknown_variables() -> None:
    """A limit whose name is misspelt would be no limit."""
    from patternmill.env_file import PREFIX, set_variables, variable
    from patternmill.settings import Settings

    named = set_variables(os.environ)
    known = {*map(variable, Settings.model_fields), *OTHER_VARIABLES}
    for name in sorted(name for name in named.keys() - known if name.startswith(PREFIX)):
        echo(f"warning: {name} is no setting{_near(name, known)}", err=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one verb, whose callback returns its exit code, and end the process with it."""
    prepare_streams()
    # As Ctrl-C, until a run is there to be stopped: what was started is ended, and the exit code is that of a stop.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    collect_rarely()
    code = run(arguments)
    collect_no_more()
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; every error becomes a message on stderr."""
    return guarded(lambda: patternmill.main(arguments, prog_name="patternmill", standalone_mode=False))


def guarded(work: Callable[[], object]) -> int:
    """The exit code of what a process does; every error becomes a message on stderr."""
    try:
        _refuse_prefect_password()
        return _exit_code(work())
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        echo("Interrupted.", err=True)
        return EXIT_CODES[Outcome.CANCELLED]
    except PatternmillError as error:
        report_error(error.message, error.remedy)
        return EXIT_REFUSED if isinstance(error, NOTHING_SPENT) else EXIT_FAILED
    except Exception as error:
        return _unexpected(error)


def _refuse_prefect_password() -> None:
    """Prefect writes its server's address into logs as it is. Raises ConfigurationError."""
    if "@" in os.environ.get("PREFECT_API_URL", ""):
        raise ConfigurationError(
            "PREFECT_API_URL holds a user name or password, which Prefect would write into its logs.",
            remedy="Remove it, and set PREFECT_API_AUTH_STRING=user:password instead.",
        )


def _exit_code(result: Any) -> int:
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception) -> int:
    from cli import crash_report

    if os.environ.get("PATTERNMILL_DEBUG"):
        echo(crash_report.masked_traceback(error), err=True, nl=False)
        return EXIT_FAILED
    summary = crash_report.masked(f"{type(error).__name__}: {error}").splitlines()[0]
    report = crash_report.write_report(error)
    where = f"The traceback is in {report}." if report else "Set PATTERNMILL_DEBUG=1 to see the traceback."
    report_error(
        f"Something unexpected happened: {summary}",
        f"{where} The ledger has all requests: run the command again to resume.",
    )
    return EXIT_FAILED


if __name__ == "__main__":
    main()
