"""The verb `explain`: the history of a row or item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.terminal import echo
from patternmill.catalog.rows import tidy
from patternmill.errors import ConfigurationError
from patternmill.ledger.ledger import open_ledger
from patternmill.ledger.reports.story import stories
from patternmill.ledger.spending import prices_of
from patternmill.money import money, sums
from patternmill.settings import load_settings
from patternmill.text import moment, more, readable, shortened

if TYPE_CHECKING:
    from patternmill.ledger.records import Attempt
    from patternmill.ledger.reports.items import RecordedItem
    from patternmill.ledger.reports.order_report import CheckoutRecord
    from patternmill.ledger.reports.story import Story, StoryEvent

_MOST_SHARING = 10


@click.command("explain")
@click.argument("name", metavar="SKU|ID")
@click.option("--catalog", help="Only this catalog.")
@click.option("--environment", help="Only this environment: staging, production, ...")
@click.option("--report", is_flag=True, help="Report its failure to the service's operators, once.")
@click.option("--text", help="With --report: what to write, instead of what the ledger knows.")
@click.option("--yes", is_flag=True, help="With --report: do not ask; needed without a terminal.")
def command(
    name: str, catalog: str | None, environment: str | None, report: bool, text: str | None, yes: bool
) -> int:
    """Show the history of one row, by its sku, or of one product, pattern, job, checkout or request, by its ID.

    It shows what is bought for it, each attempt with its request ID, job and result, every change with its time and
    run, what failed and why, what it cost, and what a person decided. Reads only the ledger; times are UTC.

    \b
    Examples:
      patternmill explain SPR-CUS-001
      patternmill explain job_4c1f --environment production
      patternmill explain job_4c1f --report

    With --report, the request as it was sent, the answer as far as it is kept, and the attempts go to the service's
    operators. Keys, credentials, queries of addresses and e-mail addresses are removed. The report is shown first, and
    sent when you confirm it, once: what may have arrived is not sent again.

    Exit codes: 0 shown, or reported; 2 nothing has that name, a setting is wrong, or the report was not confirmed. Of
    --report: 1 not delivered (feedback is unavailable, or it was refused), 3 its answer was lost: it may have arrived.
    """
    from cli.failure_report import report_failure

    if (text is not None or yes) and not report:
        raise click.UsageError("--text and --yes are of --report.")
    settings = load_settings(environment, unknown_too=True)
    with open_ledger(settings, must_exist=True) as ledger:
        found = stories(ledger, tidy(name), catalog, environment)
        if found and report:
            return report_failure(ledger, found, tidy(name), text, yes)
    if not found:
        raise ConfigurationError(
            f"Nothing in this ledger is called {name!r}.",
            remedy="Write a sku as its file does, or the whole ID of a product, pattern, job or request.",
        )
    for index, story in enumerate(found):
        echo("\n" * bool(index) + "\n".join(story_lines(story)))
    return 0


def story_lines(story: Story) -> Iterator[str]:
    yield f"{story.sku or 'A pattern'} in catalog {story.catalog} ({story.environment})"
    yield from _status_lines(story)
    price = sums(prices_of(attempt for item in story.items for attempt in item.attempts))
    if price:
        yield f"  price:  {price}, over all attempts"
    yield from _sharing_lines(story)
    for item in story.items:
        yield ""
        yield from _item_lines(item, story)
    for checkout in story.checkouts:
        yield ""
        yield from _checkout_lines(checkout)
    yield ""
    yield "What happened (UTC):"
    yield from (f"  {_event_line(event)}" for event in story.events)


def _status_lines(story: Story) -> Iterator[str]:
    now = story.now
    if story.retired is not None:
        at, run_id = story.retired
        by = f" by run {run_id}" if run_id else ""
        yield f"  now:    retired {moment(at)}{by}: the source no longer has it"
    elif now is not None:
        code = f" ({now.error_code})" if now.error_code else ""
        yield f"  now:    {readable(now.status.value)}{code}"
        yield from (f"          {text}" for text in (now.error, now.remedy) if text)


def _sharing_lines(story: Story) -> Iterator[str]:
    if story.sharing and (story.sku is None or len(story.sharing) > 1):
        yield f"  pattern shared by: {', '.join(story.sharing[:_MOST_SHARING])}"
        yield from more(len(story.sharing), _MOST_SHARING, indent=" " * 10)


def _item_lines(item: RecordedItem, story: Story) -> Iterator[str]:
    """What is bought, and each attempt at it."""
    earlier = "  (of an earlier request)" if story.is_of_earlier_request(item.key) else ""
    yield f"{item.stage} {item.key}{earlier}"
    for name, value in item.content.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"  {name}: {shortened(text, 200)}"
    if not item.attempts:
        yield "  never begun"
    for attempt in item.attempts:
        cost = f", {money(attempt.price, attempt.currency)}" if attempt.price else ""
        yield f"  attempt {attempt.attempt}: {attempt.state}{cost}"
        yield from _attempt_lines(attempt)


def _checkout_lines(record: CheckoutRecord) -> Iterator[str]:
    """Never its address, which lets its reader pay."""
    lines = ", ".join(f"{line.sku} × {line.quantity}" for line in record.lines[:_MOST_SHARING])
    yield f"checkout {record.checkout_id or 'not open'}, part of order {record.order_name!r}: {lines}"
    yield from more(len(record.lines), _MOST_SHARING)
    if record.attempt is not None:
        yield f"  attempt {record.attempt.attempt}: {record.attempt.state}"
        yield from _attempt_lines(record.attempt)
    if record.is_cancelled:
        yield "  cancelled"
    else:
        yield "  paid" if record.is_paid else "  not paid, as far as is known"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    facts = {
        "request": attempt.request_id,
        "job": attempt.job_id if attempt.job_id != attempt.result_id else None,
        "result": attempt.result_id,
        "picture": attempt.picture_url,
        "error": ": ".join(filter(None, (attempt.error_code, attempt.error))),
    }
    yield from (f"    {name + ':':9}{value}" for name, value in facts.items() if value)


_EVENTS = {
    "run_began": "run began",
    "run_ended": "run ended",
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
    what = _EVENTS.get(event.what, readable(event.what))
    detail = _detail(event.what, event.detail or "")
    item = f"{event.stage} {event.attempt}: " if event.stage is not None else ""
    return f"{moment(event.at)}  {item}{what}{f' ({detail})' if detail else ''}  [{event.run_id}]"


def _detail(what: str, detail: str) -> str:
    if what == "settled":
        kept = json.loads(detail or "{}")
        job = f" {kept['job_id']}" if kept.get("job_id") else ""
        return f"{readable(str(kept.get('decision', '')))}{job}, by {kept.get('by')}: {kept.get('reason')}"
    if what == "decided":
        kept = json.loads(detail)
        return (
            f"{kept['verdict']}, by {kept['by']}{': ' if kept['note'] else ''}{shortened(kept['note'], 200)}"
        )
    if what == "answered":
        kept = json.loads(detail)
        return f"{kept['operation']}: {kept['status'] or 'no answer'}, after {kept['durationMs']:,.0f} ms"
    return shortened(detail, 200)
