"""Reports to a service's operators about one request: what is sent is shown, and asked about."""

import asyncio
import importlib.metadata
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import click

from cli.making import service
from cli.questions import can_ask
from patternmill.errors import Halted, Refusal
from patternmill.ledger.purchases import check_environment
from patternmill.ledger.reports import attempts_about, open_ledger
from patternmill.run import check_name
from patternmill.service.answers import Unclear, decide_report
from patternmill.service.client import Client
from patternmill.settings import Settings
from patternmill.states import Attempt, Outcome, State
from patternmill.text import printable

_AGENT = f"patternmill/{importlib.metadata.version('patternmill')}"
#: The most of a text, in units of UTF-16, and of a request, in characters: one that holds a picture is left out.
_MOST_TEXT, _MOST_BODY = 4000, 20_000


def send_report(name: str, words: str, environment: str | None, *, yes: bool) -> None:
    """Send a report about the last request for a thing, once. Raises Refusal where it does not arrive."""
    with service(environment, silent=True), open_ledger() as (database, settings):
        check_name(environment, settings)
        check_environment(database, settings)
        report = _report_about(attempts_about(database, settings.service, name), words.strip())
        body = settings.without_secrets(json.dumps(report, ensure_ascii=False, indent=2))
        click.echo(printable(body))
        if not yes and not can_ask():
            raise Refusal("unconfirmed", "Nothing was sent.", "If it is to be sent as shown: --yes.")
        if not yes:
            click.confirm(f"Send this to the operators of {settings.service}?", abort=True, err=True)
        asyncio.run(_send(settings, body, report["requestId"]))
    click.echo(f"Sent as {report['requestId']}.")


def _report_about(attempts: Sequence[Attempt], words: str) -> dict[str, Any]:
    """Return a report about the last of these that did not end well, or the last. Raises Refusal."""
    if not attempts:
        raise Refusal("no_request", "The service was never asked for this: there is nothing to report.")
    one = next((one for one in reversed(attempts) if one.state is not State.SUCCEEDED), attempts[-1])
    facts = f"request {one.request_id}, job {one.job_id}, result {one.result_id} {one.code}\n{one.message}"
    text = f"{words}\n\n{one.stage}, attempt {one.number}: {one.state}, {facts}".strip()
    if not words or len(text.encode("utf-16-le", "replace")) > 2 * _MOST_TEXT:
        raise Refusal(
            "wrong_option", "A report says in some 3,000 characters what was expected, and what happened."
        )
    body = {"body": json.loads(one.body)} if len(one.body) <= _MOST_BODY else {}
    seen = datetime.fromtimestamp(one.ended_at or one.intended_at, UTC).isoformat()
    return {
        "requestId": f"report-{uuid4()}", "text": text, "procedure": one.operation[:200],
        "request": {**body, "userAgent": _AGENT}, "agent": _AGENT, "reportedAt": seen,
    }  # fmt: skip


async def _send(settings: Settings, body: str, name: str) -> None:
    async with Client(settings) as client:
        found = decide_report(await client.post("feedback/create", body), name)
    if isinstance(found, Unclear):
        raise Halted(Outcome.FAILED, "report_unclear", found.message)
    if found:
        raise Refusal(found.code, found.message)
