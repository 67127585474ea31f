"""Patterns: generated from a prompt, or refined from another pattern."""

from __future__ import annotations

from pydantic import TypeAdapter

from studio.design import Change, Crop, Design, Edit, Extend
from studio.errors import FieldFault, Refusal, unknown
from studio.instruments import prompt_marks
from studio.models import find_model
from studio.operations.context import Answer, Caller, Context, timestamp
from studio.operations.jobs import Jobs, Work, picture_url
from studio.operations.references import References
from studio.requests import CreatePattern, GetPattern, Page, RefineBody
from studio.store.records import Job, Subject

#: The most changes to a pattern and its ancestors together, and the most repeats of its first tile in each direction.
CHANGES_LIMIT = 32
REPEATS_LIMIT = 9
CHANGE: TypeAdapter[Change] = TypeAdapter(Change)


class Patterns:
    """`patterns/*`."""

    def __init__(self, context: Context, jobs: Jobs, references: References) -> None:
        self._context = context
        self._jobs = jobs
        self._references = references

    def create(self, body: CreatePattern, caller: Caller) -> Answer:
        return self._jobs.start(body, caller, lambda: self._work(body, caller))

    def get(self, body: GetPattern, caller: Caller) -> Answer:
        return pattern_body(self.find(body.patternId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        return self._jobs.listed_results("pattern", body, caller, lambda job: pattern_body(job, caller))

    def find(self, pattern_id: str, caller: Caller) -> Job:
        """Return the job that made this pattern. Raises Refusal (404)."""
        return self._jobs.of_result("pattern", pattern_id, caller)

    def failure(self, prompt: str) -> str | None:
        """Return why a job of this prompt is going to fail, if it is. Raises Refusal (422)."""
        prompt_marks.refuse_content(prompt)
        return prompt_marks.pattern_failure(prompt, self._context.store.jobs.times_asked)

    def _work(self, body: CreatePattern, caller: Caller) -> Work:
        failure = self.failure(body.prompt)
        if find_model(body.model) is None:
            raise unknown("model", body.model)
        # Without a seed, a prompt that is requested again is drawn differently: whoever pays twice wants a choice.
        again = self._context.store.jobs.times_asked(body.prompt) or None
        design = Design(
            prompt=body.prompt,
            model=body.model,
            seed=again if body.seed is None else body.seed,
            palette=body.palette,
            references=tuple(self._references.find(one, caller).sha256 for one in body.referenceIds),
        )
        return Work(Subject(design=design, size=body.size, reference_ids=body.referenceIds), failure)


class Refine:
    """`refine/*`: each is one change, of which a new pattern comes."""

    def __init__(self, jobs: Jobs, patterns: Patterns) -> None:
        self._jobs = jobs
        self._patterns = patterns

    def change(self, body: RefineBody, caller: Caller) -> Answer:
        return self._jobs.start(body, caller, lambda: self._work(body, caller))

    edit = recolor = crop = extend = change

    def _work(self, body: RefineBody, caller: Caller) -> Work:
        parent = self._patterns.find(body.patternId, caller)
        change = _change(body, caller.operation.removeprefix("refine/"))
        subject = parent.subject
        design = subject.design.model_copy(update={"changes": (*subject.design.changes, change)})
        _check_changes(design)
        failure = self._patterns.failure(change.prompt) if isinstance(change, Edit) else None
        return Work(subject.model_copy(update={"design": design, "parent_id": body.patternId}), failure)


def pattern_body(job: Job, caller: Caller) -> Answer:
    """Return the record of a pattern that is there."""
    subject, design = job.subject, job.subject.design
    return {
        "patternId": job.result_id,
        "prompt": design.prompt,
        "model": design.model,
        "seed": design.seed,
        "size": subject.size,
        "palette": design.palette,
        "referenceIds": subject.reference_ids,
        "parentPatternId": subject.parent_id,
        "change": design.changes[-1].model_dump(mode="json") if design.changes else None,
        "imageUrl": picture_url(caller, job),
        "createdAt": timestamp(job.ends_at),
    }


def _change(body: RefineBody, operation: str) -> Change:
    """Return the change that the body's own fields describe."""
    names = type(body).model_fields.keys() - RefineBody.model_fields.keys()
    return CHANGE.validate_python({"operation": operation, **{name: getattr(body, name) for name in names}})


def _check_changes(design: Design) -> None:
    """Raise Refusal (422) when the design cannot be changed in this way."""
    last = design.changes[-1]
    if isinstance(last, Crop) and (last.x + last.width > 1 or last.y + last.height > 1):
        side = "width" if last.x + last.width > 1 else "height"
        fault = FieldFault(side, "reaches beyond the tile")
        raise Refusal(422, "invalid_crop", f"The crop's {side} reaches beyond the tile.", (fault,))
    if len(design.changes) > CHANGES_LIMIT or _repeats(design) > REPEATS_LIMIT:
        raise Refusal(
            422,
            "too_many_changes",
            f"A pattern may have {CHANGES_LIMIT} changes, and its tile may be extended {REPEATS_LIMIT}-fold.",
        )


def _repeats(design: Design) -> int:
    columns = rows = 1
    for change in design.changes:
        if isinstance(change, Extend):
            columns, rows = columns * change.columns, rows * change.rows
    return max(columns, rows)
