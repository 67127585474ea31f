"""Which rule falls on which request: the same seed and the same requests always meet the same faults."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection

from tests.hostile.plan import Plan, Rule
from tests.hostile.shop import Call


class Chooser:
    """Counts what was asked and what was fired, for `nth`, `each` and `share`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._fitting: Counter[int] = Counter()
        self._fired_for: Counter[tuple[int, str]] = Counter()
        self._ordinal: Counter[tuple[str, str]] = Counter()

    def choose(self, call: Call, faults: Collection[str]) -> Rule | None:
        """Return the first rule that falls on the call, and note it there."""
        self._ordinal[call.operation, call.identity] += 1
        for index, rule in enumerate(self.plan.rules):
            if rule.fault not in faults or rule.operation not in {"*", call.operation}:
                continue
            subject = call.content if rule.by_content else call.identity
            if self._fits(rule, call) and self._falls(index, rule, call, subject):
                self._fired_for[index, subject] += 1
                call.rules.append(index)
                return rule
        return None

    def _fits(self, rule: Rule, call: Call) -> bool:
        return rule.matching in call.content and rule.repeat in (None, call.is_repeat)

    def _falls(self, index: int, rule: Rule, call: Call, subject: str) -> bool:
        self._fitting[index] += 1
        return (
            (not rule.nth or self._fitting[index] in rule.nth)
            and (rule.each is None or self._fired_for[index, subject] < rule.each)
            and self._dice(index, call) < rule.share
        )

    def _dice(self, index: int, call: Call) -> float:
        ordinal = self._ordinal[call.operation, call.identity]
        return random.Random(f"{self.plan.seed}/{index}/{call.identity}/{ordinal}").random()
