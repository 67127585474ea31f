"""What outside evidence says about runs: the record of the service and the results, and nothing of the program."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.double.service import CATEGORIES, NOT_MADE, REFUSED

FINAL = ("succeeded", "failed", "refused", "held")
_ADVICE = "orrect the row"


@dataclass(frozen=True)
class Line:
    """What a row of a sheet asks for."""

    sku: str
    prompt: str
    category: str = "Tote"
    size: str = "s"

    @property
    def pattern(self) -> str:
        return _content("pattern", prompt=self.prompt)

    @property
    def product(self) -> str:
        return _content(
            "product", built_on=self.pattern, category=self.category, label=self.sku, size=self.size
        )


HEADER = "sku,prompt,category,option:size,option:label"


def sheet_of(lines: Sequence[Line]) -> str:
    """Return the lines as a sheet."""
    return (
        "\n".join([HEADER, *(f"{one.sku},{one.prompt},{one.category},{one.size},{one.sku}" for one in lines)])
        + "\n"
    )


def _content(stage: str, **facts: str) -> str:
    return json.dumps([stage, facts], sort_keys=True)


class Audit:
    """The evidence of a record. `excused`: requests that a person has written off, so that more may be bought.

    `again`: prompts with the takes of them that a person wanted another one of.
    """

    def __init__(
        self,
        record: Sequence[Mapping[str, Any]],
        excused: Collection[str] = (),
        again: Collection[tuple[str, int]] = (),
    ) -> None:
        self._record, self._excused = record, excused
        self._takes = Counter(_content("pattern", prompt=prompt) for prompt, _ in again)
        self.jobs = [event for event in record if event["event"] == "job"]
        self._patterns = {job["result"]: self._content(job) for job in self.jobs if job["stage"] == "pattern"}
        self.by_content: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for job in self.jobs:
            self.by_content[self._content(job)].append(job)

    def _content(self, job: Mapping[str, Any]) -> str:
        body = job["body"]
        if job["stage"] == "pattern":
            return _content("pattern", prompt=body["prompt"])
        if job["stage"] == "checkout":  # no two orders of a story have the same lines
            return _content(
                "checkout", **{name: str(lines) for name, lines in body.items() if name != "requestId"}
            )
        category = CATEGORIES[body["categoryId"]]
        return _content(
            "product", built_on=self._patterns[body["patternId"]], category=category, **body["selections"]
        )

    def bought_twice(self) -> Iterator[str]:
        """Yield what was bought again while the one before was not said to have failed, twice, by the service itself.

        A job that fails for the content of its prompt is final as well.
        """
        told = defaultdict[str, list[float]](list)
        for event in self._record:
            if event["event"] == "told":
                told[event["job"]].append(event["at"])
        for content, jobs in self.by_content.items():
            takes = self._takes[json.loads(content)[1].get("built_on", content)]
            for before, after in pairwise(jobs):
                times = sum(at <= after["at"] for at in told[before["job"]])
                failed = before["reason"] and "policy" not in before["reason"] and times >= 2
                if failed or before["request"] in self._excused:
                    continue
                if takes:
                    takes -= 1
                else:
                    yield f"{content} was bought twice: {before['job']}, told as failed {times} times, {after['job']}"

    def changed(self) -> Iterator[str]:
        """Yield the requests that came with more than one body, and what the service itself found wrong."""
        bodies: dict[str, set[str]] = defaultdict(set)
        for event in self._record:
            if event["event"] == "request" and event["operation"].endswith("/create"):
                bodies[event["name"]].add(event["body"])
            if event["event"] == "offence":
                yield event["text"]
        yield from (
            f"request {name} came with {len(sent)} bodies" for name, sent in bodies.items() if len(sent) > 1
        )

    def wrong_advice(self, lines: Sequence[Line], rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Yield the rows that are to be corrected although what they ask for exists, or nothing is wrong with them."""
        lines_by_sku = {line.sku: line for line in lines}
        for row in rows:
            line = lines_by_sku.get(row["sku"])
            if line and any(_ADVICE in (text or "") for text in row.values()):
                refused = (
                    line.pattern if REFUSED in line.prompt else line.product if line.size == NOT_MADE else ""
                )
                if not refused or self.by_content[refused]:
                    yield f"row {line.sku} is to be corrected: {row['error']}"

    def lost(self, lines: Sequence[Line], rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Yield the rows that are not there once, not final, not what the service made, or another row's."""
        if [row["sku"] for row in rows] != [line.sku for line in lines]:
            yield f"{len(lines)} rows went in, and other {len(rows)} came out"
            return
        for line, row in zip(lines, rows, strict=True):
            if fault := self._fault_of(line, row):
                yield f"row {line.sku} is {row['status']} ({row['error_code']}: {row['error']}): {fault}"

    def _fault_of(self, line: Line, row: Mapping[str, str]) -> str:
        made, built_on = self._made(line.product), self._made(line.pattern)
        if row["status"] not in FINAL:
            return "that is not final"
        if row["status"] != "succeeded":
            is_of_take = made and not self._takes[line.pattern]  # else it may be that of another take
            return f"the service has made {made}" if is_of_take or not self._may_fail(line) else ""
        if row["product_id"] in made and row["pattern_id"] in built_on:
            return ""
        return f"it has {row['product_id']} on {row['pattern_id']}, and its own is {made} on {built_on}"

    def _made(self, content: str) -> list[str]:
        return [job["result"] for job in self.by_content[content] if not job["reason"] and not job["odd"]]

    def _may_fail(self, line: Line) -> bool:
        """Return whether the service refuses what a row asks for, or its last job has failed."""
        if line.size == NOT_MADE or REFUSED in line.prompt:
            return True
        last = [
            self.by_content[content][-1]
            for content in (line.pattern, line.product)
            if self.by_content[content]
        ]
        ends = last if self._takes[line.pattern] else last[-1:]  # the last pattern may be a later take
        return any(job["reason"] or job["odd"] for job in ends)
