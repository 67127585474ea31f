"""The verb `explain`: the history of a row or item."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from cli.json_output import Part, fields_of, show, show_parts, utc
from cli.run_options import verb
from cli.terminal import confirmed, echo
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import Ledger, open_ledger
from patternmill.ledger.records import FORGOTTEN, Attempt
from patternmill.ledger.reports.checkouts import CheckoutRecord, CheckoutStatus
from patternmill.ledger.reports.requests import RecordedItem
from patternmill.ledger.reports.story import Story, StoryEvent, stories
from patternmill.ledger.spending import prices_of
from patternmill.money import money, sums
from patternmill.planning.rows import tidy
from patternmill.settings import load_settings
from patternmill.states import EXIT_CODES, EXIT_REFUSED, Outcome
from patternmill.text import moment, more, readable, shortened

_MOST_SHARING = 10


@verb("explain")
@click.argument("name", metavar="SKU|ID")
@click.option("--catalog", help="Only this catalog.")
@click.option("--environment", help="Only this environment: staging, production, ...")
@click.option("--report", is_flag=True, help="Report its failure to the service's operators, once.")
@click.option("--text", help="With --report: what to write, instead of what the ledger knows.")
@click.option("--yes", is_flag=True, help="With --report: do not ask; needed without a terminal.")
def command(
    name: str, catalog: str | None, environment: str | None, report: bool, text: str | None, yes: bool
) -> int:
    """Show the history of a row, by its sku, or of a product, pattern, job, checkout or request, by its ID.

    Shows what was bought for it, each attempt and its result, what failed and why, what it cost, and what a person
    decided. Reads only the ledger; times are UTC.

    With --report, the request as it was sent, the answer as far as it was kept, and the attempts go to the service's
    operators, without keys, credentials and e-mail addresses. You see the report first; it is sent once.

    \b
    Examples:
      patternmill explain SPR-CUS-001
      patternmill explain job_4c1f --environment production --report

    Exit codes: 0 shown, or reported; 2 nothing has that name, a setting is wrong, or the report was not confirmed; with
    --report also 1 not delivered, 3 its answer was lost: it may have arrived.
    """
    if (text is not None or yes) and not report:
        raise click.UsageError("--text and --yes need --report.")
    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        matches = stories(ledger, tidy(name), catalog, environment)
        if matches and report:
            return _report(ledger, matches, tidy(name), text, yes=yes)
    if not matches:
        raise ConfigurationError(
            f"Nothing in this ledger is called {name!r}.",
            remedy="Write a sku as its file does, or the whole ID of a product, pattern, job or request.",
        )
    show_parts({"stories": map(_story, matches)})
    return 0


def _report(ledger: Ledger, matches: Sequence[Story], name: str, text: str | None, *, yes: bool) -> int:
    """Show the report of a failure exactly as it is sent, and send it once that is confirmed; return the exit code."""
    from cli.services import ask_service
    from patternmill.runs.failure_reports import failure_in, failure_report, send_feedback
    from patternmill.runs.safeguards import settings_for_request
    from patternmill.service.feedback_report import DeliveryState

    if text is not None and not text.strip():
        raise click.UsageError("The --text is empty.")
    failure = failure_in(ledger, matches, name)
    request_id = failure[0].request_id
    settings = settings_for_request(ledger, request_id)
    report = failure_report(ledger, failure, settings.secrets(), text)
    echo(f"To the operators of {settings.studio_url or 'the embedded studio'}:")
    echo(json.dumps(report, ensure_ascii=False, indent=2))
    echo("Look for personal data in it: the request has what the row asked for.")
    if not yes and not confirmed("Send it?", "Not sent"):
        return EXIT_REFUSED
    delivery = ask_service(settings, lambda api: send_feedback(ledger, api, request_id, report))
    if delivery is None:
        raise ConfigurationError(
            f"This failure was reported before, or may have been: see `patternmill explain {request_id}`."
        )
    state, message = delivery
    codes = {DeliveryState.SENT: Outcome.COMPLETED, DeliveryState.IN_DOUBT: Outcome.COMPLETED_WITH_FAILURES}
    outcome = codes.get(state, Outcome.FAILED)
    show(lambda: {"report": report, "delivery": state, "message": message})
    echo(message, err=outcome is not Outcome.COMPLETED)
    return EXIT_CODES[outcome]


def _story(story: Story) -> Part:
    """Return the story of a row or a pattern, for programs and for people."""
    fields = fields_of(story, "environment", "catalog", "sku", "sharing")
    fields |= fields_of(story.now, "status", "error_code", "error", "remedy") if story.now else {}
    fields |= {
        "items": [_item_fields(item) for item in story.items],
        "checkouts": [fields_of(record, "checkout_id", "order_name", "status") for record in story.checkouts],
        "events": [{**asdict(event), "at": utc(event.at)} for event in story.events],
    }
    return fields, "\n".join(_lines(story))


def _item_fields(item: RecordedItem) -> dict[str, object]:
    names = ("attempt", "state", "request_id", "job_id", "result_id", "picture_url", "error_code", "error")
    attempts = [
        {**fields_of(attempt, *names, "price", "currency"), "since": utc(attempt.since)}
        for attempt in item.attempts
    ]
    return {**fields_of(item, "key", "stage", "content"), "attempts": attempts}


def _lines(story: Story) -> Iterator[str]:
    yield f"{story.sku or 'A pattern'} in catalog {story.catalog} ({story.environment})"
    yield from _state_lines(story)
    if price := sums(prices_of(attempt for item in story.items for attempt in item.attempts)):
        yield f"  price:  {price}, over all attempts"
    if story.sharing and (story.sku is None or len(story.sharing) > 1):
        yield f"  pattern shared by: {', '.join(story.sharing[:_MOST_SHARING])}"
        yield from more(len(story.sharing), _MOST_SHARING, indent=" " * 10)
    for item in story.items:
        earlier = "  (of an earlier request)" if story.is_of_earlier_request(item.key) else ""
        yield f"\n{item.stage} {item.key}{earlier}"
        yield from _item_lines(item)
    for checkout in story.checkouts:
        yield from _checkout_lines(checkout)
    yield "\nWhat happened (UTC):"
    yield from (f"  {_event_line(event)}" for event in story.events)


def _state_lines(story: Story) -> Iterator[str]:
    now = story.now
    if story.retired is not None:
        at, run_id = story.retired
        yield f"  now:    retired {moment(at)}{f' by run {run_id}' if run_id else ''}: the source no longer has it"
    elif now is not None:
        yield f"  now:    {readable(now.status.value)}{f' ({now.error_code})' if now.error_code else ''}"
        yield from (f"          {text}" for text in (now.error, now.remedy) if text)


def _item_lines(item: RecordedItem) -> Iterator[str]:
    for name, value in item.content.items():
        if name == FORGOTTEN:
            yield "  what it is made of was forgotten"
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"  {name}: {shortened(text, 200)}"
    if not item.attempts:
        yield "  never begun"
    yield from (line for attempt in item.attempts for line in _attempt_lines(attempt))


def _checkout_lines(checkout: CheckoutRecord) -> Iterator[str]:
    """Yield a checkout without its address, which lets anyone who reads it pay."""
    named = ", ".join(f"{line.sku} × {line.quantity}" for line in checkout.lines[:_MOST_SHARING])
    yield f"\ncheckout {checkout.checkout_id or 'not open'}, part of order {checkout.order_name!r}: {named}"
    yield from more(len(checkout.lines), _MOST_SHARING)
    yield from _attempt_lines(checkout.attempt) if checkout.attempt is not None else ()
    is_known = checkout.status in (CheckoutStatus.PAID, CheckoutStatus.CANCELLED)
    yield f"  {checkout.status if is_known else 'not paid, as far as is known'}"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    cost = f", {money(attempt.price, attempt.currency)}" if attempt.price else ""
    yield f"  attempt {attempt.attempt}: {attempt.state}{cost}"
    facts = {
        "request": attempt.request_id,
        "job": attempt.job_id if attempt.job_id != attempt.result_id else None,
        "result": attempt.result_id,
        "picture": attempt.picture_url,
        "error": ": ".join(filter(None, (attempt.error_code, attempt.error))),
    }
    yield from (f"    {name + ':':9}{value}" for name, value in facts.items() if value)


_EVENTS = {
    "intended": "request recorded",
    "withdrawn": "request withdrawn: certainly never sent",
    "accepted": "the service has the job",
    "ordered": "the service shows the order",
    "rejected": "the service refused the request",
    "held": "held for a person's decision",
    "answered": "what was answered",
    "decided": "a person decided",
    "feedback_intended": "a report to the service's operators was begun",
    "feedback_sent": "reported to the service's operators",
    "feedback_in_doubt": "the report may have arrived",
    "feedback_not_sent": "the report was not delivered",
}


def _event_line(event: StoryEvent) -> str:
    what, detail = _EVENTS.get(event.what, readable(event.what)), shortened(_detail(event), 200)
    item = f"{event.stage} {event.attempt}: " if event.stage is not None else ""
    return f"{moment(event.at)}  {item}{what}{f' ({detail})' if detail else ''}  [{event.run_id}]"


def _detail(event: StoryEvent) -> str:
    """Return what is recorded with an event, some of it as JSON."""
    if event.what not in ("settled", "decided", "answered") or not event.detail:
        return event.detail or ""
    recorded = json.loads(event.detail)
    if event.what == "answered":
        response = recorded["status"] or "no answer"
        return f"{recorded['operation']}: {response}, after {recorded['durationMs']:,.0f} ms"
    decision, note = recorded.get("verdict", ""), recorded.get("note")
    if event.what == "settled":
        decision, note = readable(recorded["decision"]), recorded["reason"]
        decision += f" {recorded['job_id']}" if recorded.get("job_id") else ""
    return f"{decision}, by {recorded['by']}{f': {note}' if note else ''}"
