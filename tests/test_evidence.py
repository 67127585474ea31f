"""What contradicts a request in an answer about its job, as a table."""

import pytest

from patternmill.items import Stage
from patternmill.service.evidence import Asked, contradiction, made_in, repeats

PROMPT = {"requestId": "r1", "prompt": "Blue herons, ink on cream"}
CHOICE = {
    "requestId": "r2", "patternId": "p1", "categoryId": "mug", "selections": {"Size": "11oz", "Rim": "red"},
}  # fmt: skip
REFINED = {"requestId": "r3", "patternId": "p1", "hue": "blue"}
#: What other items of ours have.
OTHERS = {
    ("requestId", "r9"), ("prompt", "Blue herons"), ("patternId", "p9"), ("selection", ("Size", "15oz")),
    ("jobId", "j9"), ("result", "made9"),
}  # fmt: skip
DONE = {"status": "succeeded"}


def is_other(field, value):
    assert field in ("requestId", "prompt", "patternId", "selection", "jobId", "result")
    assert str(value).isprintable()
    return (field, value) in OTHERS


def said(sent, data, *, repeated=(), job_id=None, stage=None, job_is_new=True):
    stage = stage or (Stage.PATTERN if "prompt" in sent else Stage.PRODUCT)
    asked = Asked(stage, sent, is_other, job_id, job_is_new, repeated)
    return contradiction({"jobId": "j1", "kind": stage, "status": "running", "result": None} | data, asked)


@pytest.mark.parametrize(
    ("sent", "data", "known", "named"),
    [
        (PROMPT, {"jobId": "j2"}, {"job_id": "j1"}, "j1"),
        (PROMPT, {"jobId": "j9"}, {}, "j9"),
        (CHOICE, {"kind": "pattern"}, {}, "kind pattern"),
        (PROMPT, {"kind": "Product"}, {}, "kind product"),
        (PROMPT, {"requestId": "r9"}, {}, "r9"),
        (PROMPT, {"request": {"requestId": "r9"}}, {}, "r9"),
        (PROMPT, {"input": {"prompt": "Blue herons"}}, {}, "Blue herons"),
        (CHOICE, {"patternId": "p9"}, {}, "p9"),
        (CHOICE, DONE | {"result": {"productId": "new", "patternId": "p9"}}, {}, "p9"),
        (CHOICE, {"selections": {"Size": "15oz", "Rim": "red"}}, {}, "Size='15oz'"),
        (PROMPT, {"requestId": "req_77"}, {"repeated": {"requestId"}}, "req_77"),
        (PROMPT, {"prompt": "Red foxes"}, {"repeated": {"prompt"}}, "Red foxes"),
        (CHOICE, {"categoryId": "bag"}, {"repeated": {"categoryId"}}, "bag"),
        (CHOICE, {"selections": {"Rim": "blue"}}, {"repeated": {"selections"}}, "blue"),
        (PROMPT, {"status": "failed", "result": {"patternId": "new"}}, {}, "new"),
        (CHOICE, DONE | {"result": {"patternId": "p1"}}, {}, "ended with a pattern"),
        (CHOICE, DONE | {"result": {"productId": "made9"}}, {}, "made9"),
    ],
)
def test_what_contradicts_is_named(sent, data, known, named):
    assert named in said(sent, data, **known)


@pytest.mark.parametrize(
    ("sent", "data", "known"),
    [
        (PROMPT, {}, {"repeated": {"prompt", "requestId"}}),
        (PROMPT, {"jobId": "j9"}, {"job_id": "j9", "job_is_new": False}),
        (PROMPT, {"kind": "generation"}, {}),
        (PROMPT, {"kind": None}, {}),
        (PROMPT, {"requestId": "req_77"}, {}),
        (PROMPT, {"requestId": "req_77", "request": {"requestId": "r1"}}, {"repeated": {"requestId"}}),
        (PROMPT, {"prompt": "Blue herons, ink…"}, {"repeated": {"prompt"}}),
        (PROMPT, {"prompt": "blue  herons, ink on CREAM"}, {"repeated": {"prompt"}}),
        (PROMPT, {"prompt": None}, {"repeated": {"prompt"}}),
        (PROMPT, {"prompt": "Red foxes"}, {}),
        (PROMPT, {"similar": [{"prompt": "Blue herons", "patternId": "p9"}]}, {}),
        (PROMPT, DONE | {"result": {"patternId": "new", "productId": "made9"}}, {}),
        (PROMPT, DONE | {"result": None}, {}),
        (CHOICE, {"selections": {"Size": "11OZ", "Finish": "matte"}}, {"repeated": {"selections"}}),
        (CHOICE, {"selections": {"Size": "12oz"}}, {}),
        (PROMPT, {"requestId": "\ud800", "prompt": "\x00"}, {}),
        (CHOICE, {"categoryId": "bag"}, {}),
        (CHOICE, {"selections": [{"name": "Size", "value": "15oz"}]}, {}),
        (CHOICE, DONE | {"result": {"productId": "new", "patternId": "p1"}}, {}),
        (CHOICE, {"status": "failed", "result": {"patternId": "p1"}}, {}),
        (REFINED, DONE | {"kind": "pattern", "result": {"patternId": "new"}}, {"stage": Stage.REFINEMENT}),
    ],
)
def test_what_does_not_contradict(sent, data, known):
    assert said(sent, data, **known) == ""


def test_a_service_repeats_what_was_sent_exactly():
    data = {
        "requestId": "r2",
        "job": {"patternId": "p1", "selections": {"Size": "11oz", "Rim": "red"}},
        "categoryId": "x",
    }
    assert repeats(data, CHOICE) == {"requestId", "patternId", "selections"}


@pytest.mark.parametrize(
    ("data", "stage", "made"),
    [
        ({"checkoutId": "c1"}, Stage.CHECKOUT, "c1"), ({"referenceId": "f1"}, Stage.REFERENCE, "f1"),
        ({"productId": "q1"}, Stage.PRODUCT, None), ({"jobId": "j1", "checkoutId": "c1"}, Stage.CHECKOUT, "j1"),
        ({"checkoutId": "c" * 500}, Stage.CHECKOUT, "c" * 500), ({"checkoutId": "c" * 501}, Stage.CHECKOUT, None),
        ({"checkoutId": " "}, Stage.CHECKOUT, None),
    ],
)  # fmt: skip
def test_some_things_are_made_at_once_and_named_in_place_of_a_job(data, stage, made):
    found = made_in(data, stage)
    assert (found and found["jobId"]) == made


def test_an_answer_is_searched_three_objects_deep():
    deep = {"a": {"b": {"c": {"requestId": "r9"}}}}
    assert "r9" in said(PROMPT, deep)
    assert said(PROMPT, {"0": deep}) == ""


def test_a_field_that_is_no_text_in_place_of_a_text_says_something_else():
    assert "['Blue']" in said(PROMPT, {"prompt": ["Blue"]}, repeated={"prompt"})
