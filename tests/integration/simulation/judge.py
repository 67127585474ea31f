"""What must hold after a simulation, from the service's record against the rows that were asked for."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from patternmill.states import NOT_REPEATABLE, UNCLEAR_REFUSAL, RowStatus, Stage
from tests.hostile.shop import Job
from tests.integration.simulation.play import Line, Story
from tests.integration.simulation.service import LOOK_UP, POLL, REFINE
from tests.integration.simulation.weather import FINAL, NOT_MADE, Weather
from tests.row_results import RowResult

CATEGORY_IDS = {"Tote": "cat_tote", "Mug": "cat_mug"}


def faults(story: Story) -> list[str]:
    """Every broken invariant, as a sentence."""
    return [
        *story.offences,
        *story.service.offences,
        *bought_twice(story),
        *_bytes_changed(story),
        *wrong_advice(story),
        *_rows_wrong(story),
    ]


def jobs_by_content(story: Story) -> dict[tuple[str, str], list[Job]]:
    """What was charged for each thing, in order. A product's pattern is named by its prompt."""
    found: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in story.service.jobs.values():
        fields = {name: value for name, value in job.body.items() if name != "requestId"}
        found[job.operation, json.dumps(fields, sort_keys=True)].append(job)
    return found


def bought_twice(story: Story) -> Iterator[str]:
    """Yield whatever was charged again without a reported failure, after a final refusal, or too often."""
    for (operation, content), jobs in jobs_by_content(story).items():
        if len(jobs) > story.setup.attempts:
            yield f"{operation} {content} was bought {len(jobs)} times"
        for before, after in pairwise(jobs):
            if story.service.failure_told.get(before.job_id, math.inf) > after.created_at:
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
    for line in story.setup.lines:
        row = story.rows[line.sku]
        was_refused = any(item.request_id in story.service.refused for item in row.items)
        if _is_rightly_held(row, story) or (was_refused and _is_for_a_person(row, story.setup.weather)):
            continue
        last, is_product = _last_job(line, jobs)
        if last is None or not (is_product or last.reason or line.size == NOT_MADE):
            yield f"row {line.sku} is {row.status} ({row.error_code}), and was bought {last and last.job_id}"
            continue
        made = last.result_id if is_product and not last.reason else None
        status = RowStatus.SUCCEEDED if made else RowStatus.FAILED
        if row.status is not status:
            yield f"row {line.sku} is {row.status} ({row.error_code}), and {last.job_id} is {status}"
        if row.product_id != made:
            yield f"row {line.sku} has the product {row.product_id}, and its own is {made}"


def wrong_advice(story: Story) -> Iterator[str]:
    """Only a row that the service does not make is to be corrected."""
    for line in story.setup.lines:
        row = story.rows.get(line.sku)
        if row and line.size != NOT_MADE and "orrect the row" in (row.remedy or ""):
            yield f"row {line.sku} is to be corrected: {row.error}"


def _last_job(line: Line, jobs: Mapping[tuple[str, str], list[Job]]) -> tuple[Job | None, bool]:
    """Return the last job of a row at the service, and whether that is its product."""
    asked = [("patterns/create", {"prompt": line.prompt})]
    asked += [(REFINE, {"palette": [line.colour]})] * bool(line.colour)
    selections = {"name": line.sku, "size": line.size}
    product = ("products/create", {"categoryId": CATEGORY_IDS[line.category], "selections": selections})
    last: Job | None = None
    for operation, fields in [*asked, product]:
        built_on = {"patternId": last.result_id} if last else {}
        found = jobs.get((operation, json.dumps(fields | built_on, sort_keys=True)))
        if not found:
            return last, False
        last = found[-1]
    return last, True


def _is_rightly_held(row: RowResult, story: Story) -> bool:
    """Whether it is held for what the service did to one of its requests, or may not be sent again."""
    if row.status is not RowStatus.HELD:
        return False
    if row.error_code == NOT_REPEATABLE:
        return any(item.stage is Stage.REFINEMENT for item in row.items)
    return any(
        row.error_code in story.service.may_be_held[item.request_id] for item in row.items if item.request_id
    )


def _is_for_a_person(row: RowResult, weather: Weather) -> bool:
    """Return whether a row is left as if the service had refused its request because it already has it."""
    if weather.looks_up and "looked for" not in (row.error or ""):
        return False
    return row.status is RowStatus.HELD or row.error_code == UNCLEAR_REFUSAL
