"""Whatever a service answers, the suite ends with a result for each check, and within its limit."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from patternmill.conformance.suite import CHECKS
from patternmill.conformance.watch import json_of
from patternmill.errors import ServiceStopped
from patternmill.service.outcomes import Answer, ExchangeResult, Trouble
from tests.unit.conformance.whole_service import WholeService, checked

_FIELDS = st.sampled_from(
    ["jobId", "kind", "status", "result", "error", "message", "checkoutUrl", "categories", "options", "name"]
)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=4)
    | st.sampled_from(["running", "succeeded", "failed", "pattern", "http://["])
)
_JSON = st.recursive(
    _SCALARS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(_FIELDS, part, max_size=5),
    max_leaves=8,
)
_ANSWERS = st.builds(
    Answer,
    st.just(ExchangeResult.ANSWERED),
    st.sampled_from([Trouble.NONE, Trouble.NONE, Trouble.NONE, Trouble.HTML]),
    st.text(max_size=4),
    st.sampled_from([200, 200, 200, 201, 204, 307, 400, 404, 404, 429, 500, 503]),
    _JSON,
    st.sampled_from([None, None, "1", "soon", "1e9"]),
)


@given(st.lists(_ANSWERS, min_size=1, max_size=8), st.integers(0, 60))
@settings(max_examples=15)
def test_every_check_ends(answers: list[Answer], spend: int) -> None:
    service = WholeService()
    service.departure = lambda asked, normal: (
        normal() if asked.number % 3 == 2 else answers[len(service.asked) % len(answers)]
    )
    try:
        report = asyncio.run(checked(service, spend=spend, feedback=True))
    except ServiceStopped:
        return
    assert [line.check for line in report.lines] == [check.id for check in CHECKS]
    assert report.bought_at_most <= spend
    assert json_of(report)
