"""The report: every check with its outcome, as JSON and as text, and what changed since an earlier one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from patternmill.conformance.answer_shapes import is_same_shape
from patternmill.conformance.check_results import AnswerForm, Check, CheckOutcome, CheckResult, SkipReason
from patternmill.text import counted, plural, shortened

#: What an answer shows that came because of an option, or did not come by chance, is compared with nothing.
_INCOMPARABLE = frozenset(
    {
        SkipReason.COSTS,
        SkipReason.FEEDBACK,
        SkipReason.PAID_ORDER,
        SkipReason.NO_ANSWER,
        SkipReason.RATE_LIMITED,
        SkipReason.NO_OCCASION,
    }
)
_LONGEST_SHAPE = 160


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class CheckLine(_Model):
    """One check of a report."""

    check: str
    section: str
    statement: str
    outcome: CheckOutcome
    detail: str
    reason: SkipReason | None = None
    answers: tuple[AnswerForm, ...] = ()

    @property
    def is_comparable(self) -> bool:
        return self.reason not in _INCOMPARABLE


class ConformanceReport(_Model):
    url: str
    checked_at: datetime
    version: str
    #: What was allowed: patterns and products together, and reports to the operators.
    spend: int
    feedback: bool
    requests: int
    #: Patterns and products that were made, or may have been.
    bought_at_most: int
    lines: tuple[CheckLine, ...]

    @property
    def deviations(self) -> list[CheckLine]:
        return [line for line in self.lines if line.outcome is CheckOutcome.DEVIATES]

    def counts(self) -> str:
        found = Counter(line.outcome for line in self.lines)
        return counted({outcome.value: found[outcome] for outcome in CheckOutcome})


def line_of(check: Check, result: CheckResult) -> CheckLine:
    return CheckLine(check=check.id, section=check.section, statement=check.statement, **vars(result))


def line_texts(line: CheckLine, width: int) -> Iterator[str]:
    """For a terminal; `width` is that of the longest name of a check."""
    yield f"{line.outcome.value.replace('_', ' '):<12} {line.check:<{width}}  {line.detail}"
    indent = " " * (width + 15)
    if line.outcome is CheckOutcome.DEVIATES:
        yield f"{indent}§ {line.section}: {line.statement}"
    if line.outcome is CheckOutcome.UNSPECIFIED:
        for answer in line.answers:
            if answer.status is not None:
                yield f"{indent}{answer.request}: {answer.status} {shortened(answer.text, _LONGEST_SHAPE)}"


def summary_text(report: ConformanceReport) -> str:
    bought = f"at most {report.bought_at_most} bought" if report.bought_at_most else "nothing bought"
    return f"{plural(len(report.lines), 'check')}: {report.counts()}; {plural(report.requests, 'request')}, {bought}"


def changes(before: ConformanceReport, now: ConformanceReport) -> list[str]:
    """What is different, a sentence for each check; checks that one of the two could not run are left out."""
    known = {line.check: line for line in before.lines}
    return [
        f"{line.check}: {change}"
        for line in now.lines
        if line.check in known and (change := _change(known[line.check], line))
    ]


def _change(before: CheckLine, now: CheckLine) -> str:
    if not (before.is_comparable and now.is_comparable):
        return ""
    if before.outcome is not now.outcome:
        return f"was {_readable(before)}, is {_readable(now)}"
    if now.outcome is not CheckOutcome.UNSPECIFIED:
        return ""
    earlier = {answer.request: answer for answer in before.answers}
    found = (_answer_change(earlier[one.request], one) for one in now.answers if one.request in earlier)
    return "; ".join(filter(None, found))


def _answer_change(before: AnswerForm, now: AnswerForm) -> str:
    if before.status != now.status:
        return f"{now.request}: answered {before.status}, now {now.status}"
    if before.shape is None and now.shape is None:
        return ""
    if before.shape is None or now.shape is None or not is_same_shape(before.shape, now.shape):
        return f"{now.request}: was {_short(before)}, is {_short(now)}"
    return ""


def _short(answer: AnswerForm) -> str:
    return shortened(answer.text, _LONGEST_SHAPE)


def _readable(line: CheckLine) -> str:
    return f"{line.outcome.value.replace('_', ' ')} ({line.detail})"


def carried_over(before: ConformanceReport, now: ConformanceReport) -> ConformanceReport:
    """What to compare the next report with: this one, and of checks that it could not run what was known."""
    known = {line.check: line for line in before.lines}
    lines = (line if line.is_comparable else known.get(line.check, line) for line in now.lines)
    return now.model_copy(update={"lines": tuple(lines)})
