"""The verb `call`: one request to an operation of the service, and its answer as it comes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal import confirmed, echo, echo_json
from patternmill.errors import ConfigurationError
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome

if TYPE_CHECKING:
    from patternmill.service.outcomes import Answer


@click.command("call")
@click.argument("operation")
@click.argument("body", metavar="[JSON|@FILE|-]", default="{}")
@click.option("--environment", help="Whose address and key to take: staging, production, ...")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask before an operation that may change something; needed without a terminal.",
)
def command(operation: str, body: str, environment: str | None, yes: bool) -> int:
    """Post a JSON body to OPERATION (a group and a name, such as models/list), and print the answer.

    For what no other verb asks of the service. Nothing is known of the operation's fields: the body (default: {}; from
    a file, or - for the standard input) goes out as it is, once. What could buy something outside of the ledger,
    create operations and those of the group refine, is refused; what is not called get or list is confirmed first. The
    key is that of an import, and is masked in the answer.

    \b
    Examples:
      patternmill call models/list
      patternmill call products/get '{"productId": "prod_4c1f"}' --environment production
      patternmill call orders/get @checkout.json

    Exit codes: 0 answered with success; 3 the service refused the request (4xx); 1 it failed (5xx), did not answer, or
    not in JSON; 2 not sent: the operation, the body or a setting is wrong, or it was not confirmed.
    """
    from cli.launcher import ask_service
    from patternmill.runs.safeguards import refuse_known_other_service
    from patternmill.service.direct_calls import only_reads
    from patternmill.settings import load_settings

    reads = only_reads(operation)
    content = _content(body)
    settings = load_settings(environment=environment)
    if not settings.embedded:
        refuse_known_other_service(settings)
    question = f"{operation} may change something at the service, off the record. Send it?"
    if not reads and not yes and not confirmed(question, "Not sent"):
        return EXIT_REFUSED
    return _shown(
        ask_service(settings, lambda api: api.call(operation, content, changing=not reads)),
    )


def _content(body: str) -> bytes:
    """The bytes of the body, which are JSON. Raises ConfigurationError."""
    import orjson

    try:
        if body == "-":
            content = sys.stdin.buffer.read()
        else:
            content = Path(body[1:]).read_bytes() if body.startswith("@") else body.encode()
        orjson.loads(content)
    except OSError as error:
        raise ConfigurationError(f"{body[1:]} cannot be read ({type(error).__name__}).") from None
    except ValueError:
        raise ConfigurationError(
            "The body is not JSON.", remedy="Write it as JSON in UTF-8; in quotes, on a command line."
        ) from None
    return content


def _shown(answer: Answer) -> int:
    """The body goes to the standard output, as JSON; what went wrong, to the error output."""
    from patternmill.service.outcomes import Trouble
    from patternmill.service.resend import sentence

    is_json = answer.status is not None and answer.trouble is Trouble.NONE
    if is_json:
        echo_json(answer.body)
    if answer.usable:
        return EXIT_CODES[Outcome.COMPLETED]
    unreadable = " That is no JSON." if answer.status is not None and not is_json else ""
    echo(f"{sentence(answer)}{unreadable}", err=True)
    refused = answer.status is not None and 400 <= answer.status < 500
    return EXIT_CODES[Outcome.COMPLETED_WITH_FAILURES if refused else Outcome.FAILED]
