"""What must hold after a simulation, from the service's record against the rows that were asked for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from patternmill.results.row_results import RowResult
from patternmill.states import UNCLEAR_REFUSAL, RowStatus
from tests.integration.simulation.play import Line, Story
from tests.integration.simulation.service import LOOK_UP, POLL, SimulatedJob
from tests.integration.simulation.weather import FINAL, Weather

CATEGORY_IDS = {"Tote": "cat_tote", "Mug": "cat_mug"}


def faults(story: Story) -> list[str]:
    """Every broken invariant, as a sentence."""
    return [
        *story.offences,
        *story.service.offences,
        *_bought_twice(story),
        *_bytes_changed(story),
        *_rows_wrong(story),
    ]


def jobs_by_content(story: Story) -> dict[tuple[str, str], list[SimulatedJob]]:
    """What was charged for each thing, in order. A product's pattern is named by its prompt."""
    found: dict[tuple[str, str], list[SimulatedJob]] = defaultdict(list)
    for job in story.service.jobs.values():
        fields = {name: value for name, value in job.fields.items() if name != "requestId"}
        found[job.operation, json.dumps(fields, sort_keys=True)].append(job)
    return found


def _bought_twice(story: Story) -> Iterator[str]:
    """A second charge for the same thing only after the service reported that the first one failed; never too many."""
    for (operation, content), jobs in jobs_by_content(story).items():
        if len(jobs) > story.setup.attempts:
            yield f"{operation} {content} was bought {len(jobs)} times"
        for before, after in pairwise(jobs):
            if before.failure_told is None or before.failure_told > after.begun:
                yield f"{operation} {content}: {after.job_id} was bought while {before.job_id} had not failed"
            if before.reason is not None and FINAL in before.reason:
                yield f"{operation} {content} was bought again after a final refusal"


def _bytes_changed(story: Story) -> Iterator[str]:
    """One request ID, one body: on the wire, not only as far as the service came to see it."""
    bodies: dict[str, set[bytes]] = defaultdict(set)
    for asked in story.service.asked:
        if asked.operation not in {POLL, LOOK_UP}:
            bodies[asked.name].add(asked.body)
    yield from (
        f"request {name} was sent with {len(these)} bodies"
        for name, these in bodies.items()
        if len(these) > 1
    )


def _rows_wrong(story: Story) -> Iterator[str]:
    """Each row is in the results once, in the state of the service's jobs, with its own product."""
    if list(story.rows) != [line.sku for line in story.setup.lines]:
        yield "the rows that came out are not those that went in"
        return
    jobs = jobs_by_content(story)
    patterns = {
        json.loads(content)["prompt"]: made for (_, content), made in jobs.items() if "prompt" in content
    }
    for line in story.setup.lines:
        row = story.rows[line.sku]
        pattern = patterns[line.prompt][-1]
        product = jobs.get(("products/create", _product_content(line, pattern.result_id)), [pattern])[-1]
        if "orrect the row" in (row.remedy or ""):
            yield f"row {line.sku} is to be corrected: {row.error}"
        was_refused = any(item.request_id in story.service.refused for item in row.items)
        if was_refused and _is_for_a_person(row, story.setup.weather):
            continue
        status = RowStatus.FAILED if product.reason else RowStatus.SUCCEEDED
        if row.status is not status:
            yield f"row {line.sku} is {row.status}, and {product.job_id} is {status}"
        if row.product_id != (None if product.reason else product.result_id):
            yield f"row {line.sku} has the product {row.product_id}, and its own is {product.result_id}"


def _is_for_a_person(row: RowResult, weather: Weather) -> bool:
    """Whether a row is left as one is whose request the service refused because it has it."""
    if weather.looks_up and "looked for" not in (row.error or ""):
        return False
    return row.status is RowStatus.HELD or row.error_code == UNCLEAR_REFUSAL


def _product_content(line: Line, pattern_id: str) -> str:
    fields = {
        "patternId": pattern_id,
        "categoryId": CATEGORY_IDS[line.category],
        "selections": {"name": line.sku, "size": line.size},
    }
    return json.dumps(fields, sort_keys=True)
