"""Patterns: generated from a prompt, or refined from another pattern."""

from __future__ import annotations

from studio import requests
from studio.answers import JobAnswer, PatternAnswer, PatternPage
from studio.design import Change, Crop, Design, Edit, Extend, Recolor
from studio.offer import find_model
from studio.operations import jobs
from studio.operations.call import Call, part_of, place, timestamp
from studio.operations.references import find_reference
from studio.records import Job, Subject
from studio.wire import FieldFault, Refusal

#: The most changes to a pattern and its ancestors together, and the most repeats of its first tile in each direction.
CHANGES_LIMIT, REPEATS_LIMIT = 32, 9


def create(call: Call, body: requests.CreatePattern) -> JobAnswer:
    """Generate a pattern from a prompt."""

    def plan() -> tuple[Subject, str | None]:
        failure = _failure(call, body.prompt)
        find_model(body.model)
        # Without a seed, a prompt that is requested again is drawn differently: whoever pays twice wants a choice.
        again = _times_asked(call, body.prompt) or None
        design = Design(
            prompt=body.prompt,
            model=body.model,
            seed=again if body.seed is None else body.seed,
            palette=body.palette,
            references=tuple(find_reference(call, one).colours for one in body.referenceIds),
        )
        return Subject(design=design, size=body.size, reference_ids=body.referenceIds), failure

    return jobs.start(call, body, plan)


def get(call: Call, body: requests.GetPattern) -> PatternAnswer:
    """Return a pattern."""
    return _answer(call, find_pattern(call, body.patternId))


def list_patterns(call: Call, body: requests.Page) -> PatternPage:
    """List all patterns."""
    found, cursor = part_of(body, jobs.results(call, "pattern", place(body)))
    return {"patterns": [_answer(call, job) for job in found], "nextCursor": cursor}


def edit(call: Call, body: requests.EditPattern) -> JobAnswer:
    """Make a new pattern: this one with more words."""
    return _refine(call, body, Edit(prompt=body.prompt))


def recolor(call: Call, body: requests.RecolorPattern) -> JobAnswer:
    """Make a new pattern: this one in other colours."""
    return _refine(call, body, Recolor(palette=tuple(body.palette)))


def crop(call: Call, body: requests.CropPattern) -> JobAnswer:
    """Make a new pattern: a part of this one's tile."""
    return _refine(call, body, Crop(x=body.x, y=body.y, width=body.width, height=body.height))


def extend(call: Call, body: requests.ExtendPattern) -> JobAnswer:
    """Make a new pattern: this one with a larger repeat."""
    return _refine(call, body, Extend(columns=body.columns, rows=body.rows))


def find_pattern(call: Call, pattern_id: str) -> Job:
    """Return the job that made this pattern. Raises Refusal (404)."""
    return jobs.of_result(call, "pattern", pattern_id)


def _answer(call: Call, job: Job) -> PatternAnswer:
    subject, design = job.subject, job.subject.design
    return {
        "patternId": job.result_id,
        "prompt": design.prompt,
        "model": design.model,
        "seed": design.seed,
        "size": subject.size,
        "palette": list(design.palette),
        "referenceIds": list(subject.reference_ids),
        "parentPatternId": subject.parent_id,
        "change": design.changes[-1].model_dump(mode="json") if design.changes else None,
        "imageUrl": jobs.picture_url(call, job),
        "createdAt": timestamp(job.ends_at),
    }


def _refine(call: Call, body: requests.RefineBody, change: Change) -> JobAnswer:
    def plan() -> tuple[Subject, str | None]:
        subject = find_pattern(call, body.patternId).subject
        design = subject.design.model_copy(update={"changes": (*subject.design.changes, change)})
        _check_changes(design)
        failure = _failure(call, change.prompt) if isinstance(change, Edit) else None
        return subject.model_copy(update={"design": design, "parent_id": body.patternId}), failure

    return jobs.start(call, body, plan)


def _failure(call: Call, prompt: str) -> str | None:
    """Return why a job of this prompt is going to fail, if it is. Raises Refusal (422). Both are for rehearsals."""
    marks = prompt.lower()
    if "[refuse]" in marks:
        raise Refusal(422, "content_refused", "The prompt is refused, because it contains [refuse].")
    if "[fail]" in marks:
        return "The pattern could not be generated, because its prompt contains [fail]."
    if "[fail once]" in marks and not _times_asked(call, prompt):
        return "The pattern could not be generated this time, because its prompt contains [fail once]."
    return None


def _times_asked(call: Call, prompt: str) -> int:
    """Return how many patterns of this prompt were asked for, refined ones included."""
    return len([*call.store.newest(Job, **{"subject.design.prompt": prompt, "kind": "pattern"})])


def _check_changes(design: Design) -> None:
    """Raise Refusal (422) when the design cannot be changed in this way."""
    last = design.changes[-1]
    if isinstance(last, Crop) and (last.x + last.width > 1 or last.y + last.height > 1):
        side = "width" if last.x + last.width > 1 else "height"
        fault = FieldFault(side, "reaches beyond the tile")
        raise Refusal(422, "invalid_crop", f"The crop's {side} reaches beyond the tile.", (fault,))
    columns = rows = 1
    for change in design.changes:
        if isinstance(change, Extend):
            columns, rows = columns * change.columns, rows * change.rows
    if len(design.changes) > CHANGES_LIMIT or max(columns, rows) > REPEATS_LIMIT:
        message = (
            f"A pattern may have {CHANGES_LIMIT} changes, and its tile may be extended {REPEATS_LIMIT}-fold."
        )
        raise Refusal(422, "too_many_changes", message)
