"""The verb `explain`: the whole story of one row or item, in the order in which it happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cli.terminal import echo

if TYPE_CHECKING:
    from patternmill.ledger.records import Attempt
    from patternmill.ledger.reports.story import ItemStory, Story, StoryEvent

_MOST_SHARING = 10


@click.command("explain")
@click.argument("name", metavar="SKU|PRODUCT|PATTERN|JOB|REQUEST-ID")
@click.option("--catalog", help="This catalog alone.")
@click.option("--environment", help="This environment alone: staging, production, ...")
def command(name: str, catalog: str | None, environment: str | None) -> int:
    """Tell everything that is known of one row, product, pattern, job or request.

    What was asked for and by which runs, each attempt with its request ID, job and result, every change with its
    time, what failed and why, what it cost, and what a person decided. Reads the ledger alone; times are UTC.

    \b
    Examples:
      patternmill explain SPR-CUS-001
      patternmill explain job_4c1f --environment production

    \b
    Exit codes: 0 told; 2 nothing has that name, or a setting is wrong.
    """
    from patternmill.catalog.rows import tidy
    from patternmill.errors import ConfigurationError
    from patternmill.ledger.ledger import open_ledger
    from patternmill.ledger.reports.story import stories
    from patternmill.settings import load_settings

    with open_ledger(load_settings(environment=environment), must_exist=True) as ledger:
        found = [
            story
            for story in stories(ledger, tidy(name))
            if catalog in (None, story.catalog) and environment in (None, story.environment)
        ]
    if not found:
        raise ConfigurationError(
            f"Nothing in this ledger is called {name!r}.",
            remedy="Write a sku as its file does, or the whole ID of a product, pattern, job or request.",
        )
    for index, story in enumerate(found):
        for line in ([""] if index else []) + list(story_lines(story)):
            echo(line)
    return 0


def story_lines(story: Story) -> Iterator[str]:
    """One story, as plain lines."""
    yield f"{story.sku or 'A pattern'} in catalog {story.catalog} ({story.environment})"
    yield from _standing_lines(story)
    for item in story.items:
        yield ""
        yield from _item_lines(item, story)
    yield ""
    yield "What happened (UTC):"
    for happening in story.events:
        yield f"  {_happening(happening)}"


def _standing_lines(story: Story) -> Iterator[str]:
    from patternmill.text import shortened

    now = story.now
    if now is not None:
        yield f"  now:    {now.status.value.replace('_', ' ')}" + (
            f" ({now.error_code})" if now.error_code else ""
        )
        for text in filter(None, (now.error, now.remedy)):
            yield f"          {text}"
    spent = sum(sum(item.prices) for item in story.items)
    if spent:
        yield f"  price:  {spent} (minor units), over all attempts"
    if story.sharing and (story.sku is None or len(story.sharing) > 1):
        named = ", ".join(story.sharing[:_MOST_SHARING])
        more = f" and {len(story.sharing) - _MOST_SHARING} more" if len(story.sharing) > _MOST_SHARING else ""
        yield f"  pattern shared by: {named}{more}"
    for number, seen in enumerate(story.runs):
        before = story.runs[number - 1].row if number else None
        if seen.row != before and "prompt" in seen.row:
            yield f"  asked for since {seen.record.run_id}: {shortened(str(seen.row['prompt']), 200)}"
            yield f"          {seen.row.get('category', '')} {_selections(seen.row.get('selections', {}))}".rstrip()


def _selections(selections: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in selections.items())


def _item_lines(item: ItemStory, story: Story) -> Iterator[str]:
    last = story.runs[-1] if story.runs else None
    current = last is None or item.key in (last.pattern_key, last.product_key)
    yield f"{item.stage} {item.key}" + ("" if current else "  (as it was asked for before)")
    content = item.content
    if "prompt" in content:
        yield f"  prompt: {content['prompt']}"
    else:
        yield f"  {content.get('category')} {_selections(content.get('selections', {}))}".rstrip()
    if content.get("edition"):
        yield f"  edition: {content['edition']}"
    if not item.attempts:
        yield "  never begun"
    for attempt, price in zip(item.attempts, item.prices, strict=True):
        yield from _attempt_lines(attempt, price)


def _attempt_lines(attempt: Attempt, price: int) -> Iterator[str]:
    yield f"  attempt {attempt.attempt}: {attempt.state}" + (f", price {price}" if price else "")
    for name, value in (
        ("request", attempt.request_id),
        ("job", attempt.job_id),
        ("result", attempt.result_id),
        ("picture", attempt.picture_url),
        ("error", ": ".join(filter(None, (attempt.error_code, attempt.error)))),
    ):
        if value:
            yield f"    {name + ':':9}{value}"


_WHAT = {
    "run_began": "run began",
    "run_ended": "run ended",
    "intended": "request written down",
    "withdrawn": "request withdrawn: certainly never sent",
    "accepted": "the service has the job",
    "succeeded": "succeeded",
    "failed": "failed",
    "rejected": "the service refused the request",
    "held": "held for a person's decision",
}


def _happening(happening: StoryEvent) -> str:
    from patternmill.text import moment, shortened

    what = _WHAT.get(happening.what, happening.what.replace("_", " "))
    detail = shortened(happening.detail or "", 200)
    if happening.what == "settled":
        what, detail = "settled", _settled(happening.detail or "{}")
    if happening.stage is not None:
        what = f"{happening.stage} {happening.attempt}: {what}"
    told = f"{what} ({detail})" if detail else what
    return f"{moment(happening.at)}  {told}  [{happening.run_id}]"


def _settled(detail: str) -> str:
    kept = json.loads(detail)
    decision = str(kept.get("decision", "")).replace("_", " ")
    job = f" {kept['job_id']}" if kept.get("job_id") else ""
    return f"{decision}{job}, by {kept.get('by')}: {kept.get('reason')}"
