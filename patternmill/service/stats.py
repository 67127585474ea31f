"""What was asked of the service and how it answered, counted for the manifest and the benchmarks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from patternmill.service.answers import Answer


@dataclass(slots=True)
class Stats:
    """Counts of exchanges by operation, and by what came of them: a status, or the trouble in a word."""

    requests: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    #: Seconds spent waiting for answers, by operation.
    seconds: dict[str, float] = field(default_factory=dict)

    def count(self, operation: str, answer: Answer) -> None:
        self.requests[operation] += 1
        self.answers[str(answer.status or answer.trouble.value)] += 1
        self.seconds[operation] = self.seconds.get(operation, 0.0) + answer.elapsed

    def as_dict(self) -> dict[str, dict[str, float]]:
        """As plain JSON."""
        return {
            "requests": dict(self.requests),
            "answers": dict(self.answers),
            "seconds": {operation: round(spent, 3) for operation, spent in self.seconds.items()},
        }
