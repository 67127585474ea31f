"""Patterns: generated from a prompt, or refined from another pattern."""

from __future__ import annotations

from studio.design import Change, Crop, Design, Edit, Extend, Recolor
from studio.errors import FieldFault, Refusal, unknown
from studio.instruments import prompt_marks
from studio.models import find_model
from studio.operations.context import Answer, Caller, Context, timestamp
from studio.operations.jobs import Jobs, Work, picture_url
from studio.operations.references import References
from studio.requests import (
    DEFAULT_SIZE,
    CreatePattern,
    CropPattern,
    EditPattern,
    ExtendPattern,
    GetPattern,
    Page,
    RecolorPattern,
    RefineBody,
)
from studio.store import Job

#: A pattern's own changes and those of its ancestors; and how often its first tile may stand in it, in each direction.
CHANGES_LIMIT = 32
REPEATS_LIMIT = 9


class Patterns:
    """`patterns/*` and `refine/*`."""

    def __init__(self, context: Context, jobs: Jobs, references: References) -> None:
        self._context = context
        self._jobs = jobs
        self._references = references

    def create(self, body: CreatePattern, caller: Caller) -> Answer:
        return self._jobs.start("patterns/create", body, caller, lambda: self._first(body, caller))

    def edit(self, body: EditPattern, caller: Caller) -> Answer:
        return self._refine("refine/edit", body, caller, Edit(prompt=body.prompt))

    def recolor(self, body: RecolorPattern, caller: Caller) -> Answer:
        return self._refine("refine/recolor", body, caller, Recolor(palette=tuple(body.palette)))

    def crop(self, body: CropPattern, caller: Caller) -> Answer:
        change = Crop(x=body.x, y=body.y, width=body.width, height=body.height)
        return self._refine("refine/crop", body, caller, change)

    def extend(self, body: ExtendPattern, caller: Caller) -> Answer:
        return self._refine("refine/extend", body, caller, Extend(columns=body.columns, rows=body.rows))

    def get(self, body: GetPattern, caller: Caller) -> Answer:
        return pattern_body(self.find(body.patternId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        return self._jobs.listed_results("pattern", body, caller, lambda job: pattern_body(job, caller))

    def find(self, pattern_id: str, caller: Caller) -> Job:
        """The job that made this pattern. Raises Refusal (404): until it has succeeded, a pattern is unknown."""
        return self._jobs.of_result("pattern", pattern_id, caller)

    def _first(self, body: CreatePattern, caller: Caller) -> Work:
        prompt_marks.refuse_content(body.prompt)
        if find_model(body.model) is None:
            raise unknown("model", body.model)
        digests = tuple(self._references.find(one, caller).sha256 for one in body.referenceIds)
        # Asked for again without a seed, a prompt is drawn otherwise: whoever pays twice wants to choose.
        seed = (
            body.seed if body.seed is not None else self._context.store.jobs.times_asked(body.prompt) or None
        )
        design = Design(
            prompt=body.prompt, model=body.model, seed=seed, palette=body.palette, references=digests
        )
        subject = subject_of(design)
        if body.referenceIds:
            subject["referenceIds"] = list(body.referenceIds)
        if body.size != DEFAULT_SIZE:
            subject["size"] = body.size
        failure = prompt_marks.pattern_failure(body.prompt, self._context.store.jobs.prompt_was_asked)
        return Work("pattern", subject, failure, digests)

    def _refine(self, operation: str, body: RefineBody, caller: Caller, change: Change) -> Answer:
        return self._jobs.start(operation, body, caller, lambda: self._next(body.patternId, caller, change))

    def _next(self, parent_id: str, caller: Caller, change: Change) -> Work:
        parent = self.find(parent_id, caller)
        design = design_of(parent.subject)
        design = design.model_copy(update={"changes": (*design.changes, change)})
        _check_changes(design)
        failure = None
        if isinstance(change, Edit):
            prompt_marks.refuse_content(change.prompt)
            failure = prompt_marks.pattern_failure(change.prompt, self._context.store.jobs.prompt_was_asked)
        subject = {**subject_of(design), **parts(parent.subject, "referenceIds", "size"), "parent": parent_id}
        return Work("pattern", subject, failure)


def subject_of(design: Design) -> dict[str, object]:
    """A design as a job keeps it: the prompt and, apart, what is more than a prompt."""
    more = design.model_dump(mode="json", exclude_defaults=True, exclude={"prompt"})
    if design.changes:
        more["changes"] = [change.model_dump(mode="json") for change in design.changes]
    return {"prompt": design.prompt, **({"design": more} if more else {})}


def design_of(subject: dict[str, object]) -> Design:
    """What `subject_of` kept."""
    more = subject.get("design", {})
    assert isinstance(more, dict)
    return Design.model_validate({**more, "prompt": subject["prompt"]})


def parts(subject: dict[str, object], *names: str) -> dict[str, object]:
    """Of these, what the subject has."""
    return {name: subject[name] for name in names if name in subject}


def pattern_body(job: Job, caller: Caller) -> Answer:
    """The record of a pattern that is there."""
    design = design_of(job.subject)
    return {
        "patternId": job.result_id,
        "prompt": design.prompt,
        "model": design.model,
        "seed": design.seed,
        "size": job.subject.get("size", DEFAULT_SIZE),
        "palette": list(design.palette),
        "referenceIds": job.subject.get("referenceIds", []),
        "parentPatternId": job.subject.get("parent"),
        "change": design.changes[-1].model_dump(mode="json") if design.changes else None,
        "imageUrl": picture_url(caller, job.picture_id),
        "createdAt": timestamp(job.ends_at),
    }


def _check_changes(design: Design) -> None:
    """Raises Refusal (422) when the design cannot be changed so."""
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
