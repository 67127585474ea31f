"""The lint of a plan: what it would buy, and files that look like another catalog's."""

from __future__ import annotations

from dataclasses import replace

from patternmill.catalog.row_checks import check_rows
from patternmill.runs.plan_record import LINT
from patternmill.runs.preview import preview
from patternmill.runs.spec import RunSpec

from .fake_studio import OFFER, Service
from .workshop import Workshop, rows

SKUS = [f"S-{number}" for number in range(8)]
SPELLED = rows(("A", "ikat"), ("B", "Ikat"), ("C", "ikat."))


def lint_of(shop: Workshop, text: str, catalog: str = "spring") -> list[str]:
    spec: RunSpec = replace(shop.spec(), catalog=catalog)
    checked = check_rows(shop.file(text), OFFER, prompt_limit=100)
    return [one.message for one in preview(spec, checked).lint]


def test_only_what_would_be_bought_is_lint(shop: Workshop, service: Service) -> None:
    """And the record of a run says it in a sentence, for its page."""
    assert len(lint_of(shop, SPELLED)) == 1
    ended = shop.run(SPELLED)
    assert ended.ending.record.options[LINT].startswith("Worth a look: 1 remark")
    assert lint_of(shop, SPELLED) == []
    assert LINT not in shop.run(SPELLED).ending.record.options
    (again,) = lint_of(shop, SPELLED + "D,IKAT,Tote,D\n")
    assert again.startswith("4 spellings of one prompt, in rows 2-5")
