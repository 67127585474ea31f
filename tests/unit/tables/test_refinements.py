"""The columns `refine:<operation>`, `reference` and `model`: what cells ask for, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from patternmill.errors import InputRefused
from patternmill.planning.extras import Extras, Picture
from patternmill.planning.items import canonical_json
from patternmill.planning.offer import Category, Offer
from patternmill.planning.problems import Problem, RowCode
from patternmill.planning.refinements import Refinement, read_refinement

from .samples import checked, problems, read

PLAIN = "sku,prompt,category"


@pytest.mark.parametrize(
    ("operation", "cell", "parameters"),
    [
        ("recolor", "#1f3a5f #F2E8CF", {"palette": ["#1f3a5f", "#f2e8cf"]}),
        ("recolor", "abc; 112233", {"palette": ["#aabbcc", "#112233"]}),
        ("crop", "0, 0.50, 1.0, 2", {"x": 0, "y": 0.5, "width": 1, "height": 2}),
        ("crop", "10 20 300 400", {"x": 10, "y": 20, "width": 300, "height": 400}),
        ("extend", "2x3", {"columns": 2, "rows": 3}),
        ("extend", "2 × 3", {"columns": 2, "rows": 3}),
        ("edit", "remove the moon", {"prompt": "remove the moon"}),
        ("edit", '{"instruction": "no moon", "strength": 0.5}', {"instruction": "no moon", "strength": 0.5}),
        ("recolor", '{"palette": "warm"}', {"palette": "warm"}),
    ],
)
def test_cell_becomes_parameters(operation: str, cell: str, parameters: dict[str, Any]) -> None:
    assert read_refinement(operation, cell, "c") == Refinement(operation, parameters)


@pytest.mark.parametrize(
    ("operation", "short", "written"),
    [
        ("crop", "0,0,0.5,2", '{"x": 0.0, "y": -0.0, "width": 0.50, "height": 2.0}'),
        ("extend", "2x3", '{"columns": 2.0, "rows": 3}'),
        ("edit", "more reeds", '{"prompt": " more \u00a0reeds"}'),
        ("recolor", "#1f3a5f #abc", '{"palette": ["#1F3A5F", " #abc "]}'),
    ],
)
def test_json_and_short_form_of_one_refinement_are_one(operation: str, short: str, written: str) -> None:
    """Under one request ID: they are compared, and sent, as JSON."""
    asked = [read_refinement(operation, cell, "c") for cell in (short, written)]
    texts = [canonical_json(one.parameters) for one in asked if isinstance(one, Refinement)]
    assert texts == [texts[0]] * 2


def test_what_only_json_can_say_is_sent_as_it_is() -> None:
    cell = '{"palette": ["Teal"], "soft": true, "weights": [{"of": 0.25, "name": "A  B"}]}'
    found = read_refinement("recolor", cell, "c")
    assert isinstance(found, Refinement)
    assert found.parameters == {"palette": ["Teal"], "soft": True, "weights": [{"of": 0.25, "name": "A B"}]}


@pytest.mark.parametrize(
    ("operation", "cell"),
    [
        ("recolor", "teal"),
        ("recolor", ",;"),
        ("crop", "0,0,1"),
        ("crop", "0,0,-1,1"),
        ("crop", "0,0,nan,1"),
        ("extend", "0x3"),
        ("edit", "{}"),
        ("edit", '{"a": NaN}'),
        ("edit", '{"a": "\\ud800"}'),
        ("edit", "{not json"),
        ("crop", '{"patternId": "another"}'),
    ],
)
def test_nonsense_is_refused_with_the_form(operation: str, cell: str) -> None:
    found = read_refinement(operation, cell, "c")
    assert isinstance(found, Problem)
    assert (found.code, found.column) == (RowCode.MALFORMED_REFINEMENT, "c")
    assert "JSON object" in found.remedy


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("refine:recolour", "There are refine:recolor, refine:crop, "),
        ("refine recolor", "refine:recolor"),
        ("refine_crop", "refine:crop"),
        ("refine:", "refine:edit"),
    ],
)
def test_unknown_refinement_is_refused_by_name(header: str, remedy: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read(f"{PLAIN},{header}\nS-1,a heron,Tote,x\n")
    assert refused.value.code == "unknown_refinement"
    assert header in refused.value.message
    assert remedy in refused.value.remedy


def test_operations_are_applied_in_the_order_of_the_columns() -> None:
    catalog = read(f"{PLAIN},Refine : Crop ,refine:recolor\nS-1,a heron,Tote,0 0 1 1,#abcdef\n")
    (row,) = checked(catalog, None).accepted
    assert [one.operation for one in row.refinements] == ["crop", "recolor"]


MODELS = Offer((Category("m-1", "Linocut"), Category("m-2", "Silk")), note=None)


def test_unknown_model_is_refused_with_the_nearest() -> None:
    catalog = read(f"{PLAIN},model\nS-1,a heron,Tote,Linokut\n")
    (problem,) = problems(checked(catalog, None, extras=Extras(MODELS)))
    assert problem.code == RowCode.UNKNOWN_MODEL
    assert "did you mean `Linocut`?" in problem.remedy


def test_reference_is_known_by_its_bytes() -> None:
    catalog = read(f"{PLAIN},reference\nS-1,a heron,Tote,a.png\n")
    extras = Extras(pictures={"a.png": Picture("5" * 64, b"png")})
    (row,) = checked(catalog, None, extras=extras).accepted
    assert row.reference == "5" * 64
