"""The command `patternmill`: loads the requested verb, and turns errors into messages and exit codes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
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
    "import": ("cli.commands.import_", "Turn a CSV of prompts and selections into products."),
    "refresh": ("cli.commands.refresh", "Update a catalog from its source: make only what has changed."),
    "catalog": ("cli.commands.catalog", "Write out what a catalog has now: each sku with its product ID."),
    "check": ("cli.commands.check", "Check every row of a CSV; spends nothing."),
    "offer": ("cli.commands.offer", "Show what can be made, or write a workbook to fill in."),
    "status": ("cli.commands.status", "Show runs, money, what is open, and what to do next."),
    "retry": ("cli.commands.retry", "Retry rows that failed, were stopped or are in doubt."),
    "order": ("cli.commands.order", "Order samples of picked rows: a checkout to pay, then its order."),
    "explain": (
        "cli.commands.explain",
        "Show the history of a row, product, job or request; report a failure.",
    ),
    "results": ("cli.commands.results", "Write the results files of a run again."),
    "settle": ("cli.commands.settle", "Decide what becomes of requests in doubt or held."),
    "ledger": ("cli.commands.ledger", "Check or export the ledger, and verify results files."),
    "up": ("cli.commands.up", "Start everything in one terminal: UI, worker, deployments, studio."),
    "studio": ("cli.commands.studio", "Start the embedded studio, for trials without an account."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, summary) for verb, (_, summary) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="patternmill")
def patternmill() -> None:
    """Turn a CSV of prompts and category selections into products.

    Each row's prompt becomes a pattern, and each row a product on it. A ledger records all that was begun: a
    run that was interrupted is resumed, and a second run of the same file buys nothing twice.

    \b
    Try it, without an account or a setting (the embedded studio makes the patterns):
      patternmill check  inputs/spring_catalog.csv
      patternmill import inputs/spring_catalog.csv
      patternmill status --open

    \b
    Settings come from the environment, or from .env in the working directory:
      PATTERNMILL_STUDIO_URL   the service's address, ending with /v1; none: the embedded studio
      PATTERNMILL_API_KEY      the key for it
      PATTERNMILL_ENVIRONMENT  staging (the default) or production: scopes the ledger and the category IDs
      PATTERNMILL_CURRENCY     EUR, USD, ...: how amounts are shown; they are set in minor units (1000 is €10.00)
      PATTERNMILL_HOME         ledger, history and logs (default .patternmill)
      PATTERNMILL_LEDGER_URL   postgresql://... when several machines share a ledger
      PATTERNMILL_NOTIFY_URL   a webhook for messages about runs (up --automations)
      PREFECT_API_URL          a Prefect server of yours; none: one is started for the run
      PATTERNMILL_DEBUG        1: unexpected errors show their traceback

    \b
    Exit codes:
      0    every row has its product (check: every row is valid)
      3    completed with failures (check: some rows are refused)
      2    refused before anything was spent: the file, a setting or the command line is wrong,
           or the plan waits for a person's approval
      1    failed
      4    another run has the lease of this catalog
      130  interrupted; the next run resumes it

    `patternmill VERB --help` describes one verb.
    """


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
