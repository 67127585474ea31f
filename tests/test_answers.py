"""What each answer of the service leads to, as tables."""

import json

import pytest

from patternmill.items import Stage
from patternmill.service.answers import (
    Accepted,
    Again,
    Answer,
    Ended,
    Situation,
    Unclear,
    decide_create,
    decide_poll,
)
from patternmill.service.evidence import Asked

PRODUCT = {"requestId": "r1", "patternId": "pat_1", "categoryId": "cat_mug", "selections": {"Size": "11oz"}}
PATTERN = {"requestId": "r1", "prompt": "blue herons"}
JOB = {"jobId": "job_1", "kind": "product", "status": "running", "result": None}
PAGE = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Enable JavaScript</body></html>"
)
DOUBT, FIRST, LATE = {"in_doubt": True}, {"works": False}, {"elapsed": 601.0}
DUPLICATE = "Duplicate request: this requestId was already processed."


def situation(sent=PRODUCT, *, job_id=None, **known):
    stage = Stage.PATTERN if "prompt" in sent else Stage.PRODUCT
    return Situation(Asked(stage, sent, job_id=job_id), patience=600.0, **known)


def answer(status, body=None, **more):
    return Answer(status, body if isinstance(body, str) else json.dumps(body), **more)


def shown(decision):
    """Return a decision as it is written in the tables."""
    match decision:
        case Again(_, in_doubt, told):
            return f"again{', in doubt' * in_doubt}{', told' * told}"
        case Accepted(job_id):
            return job_id
        case Ended(result_id, _, code):
            return result_id or code
        case Unclear():
            return "unclear"
    return f"{type(decision).__name__.lower()}: {decision.code}"


@pytest.mark.parametrize(
    ("said", "known", "expected"),
    [
        (Answer(trouble="unreachable"), {}, "again"),
        (Answer(trouble="unreachable"), LATE, "unclear"),
        (Answer(trouble="lost"), {}, "again, in doubt"),
        (Answer(trouble="unusable"), {}, "stop: unusable_address"),
        (answer(401), {}, "stop: unauthorized"),
        (answer(402), {}, "stop: payment_required"),
        (answer(403, {"error": "key has no such scope"}), DOUBT, "stop: forbidden"),
        (answer(403, {"error": "Size is not allowed for you"}), {}, "refused: invalid_request"),
        (answer(403, {"error": "Size is not allowed for you"}), DOUBT, "held: refused_in_doubt"),
        (answer(403, {"error": "Size is not allowed for you"}), FIRST, "stop: forbidden"),
        (answer(403, PAGE), {}, "again"),
        (answer(403, PAGE), FIRST, "again"),
        (answer(401, PAGE), {}, "again"),
        (answer(401, PAGE), FIRST, "stop: unauthorized"),
        (answer(407, PAGE), {}, "stop: proxy_unauthorized"),
        (answer(403, "error code: 1020"), {}, "again"),
        (answer(403, PAGE), {"quiet": 181.0}, "stop: page_in_front"),
        (answer(404, PAGE), FIRST, "stop: wrong_address"),
        (answer(404, PAGE), {}, "again"),
        (answer(400, PAGE), {}, "again"),
        (answer(200, PAGE), {}, "again, in doubt"),
        (answer(200, PAGE), {"alike": 3}, "again, in doubt"),
        (answer(200, PAGE), {"quiet": 181.0}, "stop: page_in_front"),
        (answer(502, PAGE), {}, "again, in doubt"),
        (answer(520, PAGE), {"quiet": 181.0}, "again, in doubt"),
        (answer(429), {}, "again"),
        (answer(429), LATE, "again"),
        (answer(429, retry_after=9.0), {}, "again, told"),
        (answer(429, retry_after=0.0), {}, "again"),
        (answer(429, retry_after=3601.0), {}, "stop: rate_limited"),
        (answer(429), {"quiet": 3601.0}, "stop: rate_limited"),
        (answer(503, retry_after=3601.0), {}, "stop: rate_limited"),
        (answer(500), {}, "again, in doubt"),
        (answer(500), LATE, "unclear"),
        (answer(503, retry_after=2.0), {}, "again, in doubt, told"),
        (answer(408), {}, "again, in doubt"),
        (answer(423), {}, "again, in doubt"),
        (answer(425), {}, "again, in doubt"),
        (answer(302), FIRST, "stop: wrong_address"),
        (answer(302), {}, "again, in doubt"),
        (answer(302), {"tries": 3}, "held: refused_in_doubt"),
        (answer(404, "no such operation"), FIRST, "stop: wrong_address"),
        (answer(404, {"message": "unknown categoryId"}), {}, "refused: invalid_request"),
        (answer(404, {"message": "unknown categoryId"}), DOUBT, "held: refused_in_doubt"),
        (answer(413, "too large"), {}, "refused: unclear_refusal"),
        (answer(400, {"message": "quota exceeded"}), {}, "refused: unclear_refusal"),
        (answer(400, {"message": "quota exceeded"}), DOUBT, "held: refused_in_doubt"),
        (answer(200, JOB), {}, "job_1"),
        (answer(201, {"jobId": "job_1"}), DOUBT, "job_1"),
        (answer(200, JOB | {"note": "it exists already"}), DOUBT, "job_1"),
        (answer(200, '{"jobId": "job_1", "progress": NaN}'), {}, "job_1"),
        (answer(200, '{"jobId": "job_'), {}, "again, in doubt"),
        (answer(200, '{"jobId": "job_'), {"alike": 3}, "held: unreadable"),
        (answer(200, '{"jobId": "job_1", "input": {"requestId": "r1", "pro'), {}, "again, in doubt"),
        (answer(200, {"jobId": 7}), LATE, "held: unreadable"),
        (answer(200, {"jobId": "\ud800"}), {}, "again, in doubt"),
        (answer(200, [JOB]), {}, "again, in doubt"),
        (answer(204, ""), {}, "again, in doubt"),
        (answer(200, {"success": False, "error": "colour is wrong"}), {}, "again, in doubt"),
        (answer(200, {"success": False, "error": "Size is wrong"}), {"alike": 3}, "held: unreadable"),
        (answer(200, JOB | {"kind": "pattern"}), {}, "held: contradiction"),
        (answer(200, JOB | {"status": "failed", "error": {"message": DUPLICATE}}), {}, "held: repeated_request"),
        (answer(200, JOB | {"status": "failed", "error": {"message": "no ink"}}), {}, "job_1"),
        (answer(200, JOB), {"job_id": "job_0"}, "held: contradiction"),
        (answer(409, JOB), {"job_id": "job_1"}, "job_1"),
        (answer(200, "[" * 100_000), {}, "again, in doubt"),
        # at the very limit of a rule
        (answer(300), {"tries": 3}, "held: refused_in_doubt"), (answer(300), FIRST, "stop: wrong_address"),
        (answer(300, JOB), {}, "again, in doubt"), (answer(200, {"jobId": 7}), {"elapsed": 600.0}, "again, in doubt"),
        (answer(200, {"jobId": 7}), {"elapsed": 600.1}, "held: unreadable"), (answer(300, PAGE), {}, "again"),
        (answer(429, retry_after=3600.0), {}, "again, told"), (answer(403, PAGE), {"quiet": 180.0}, "again"),
        (answer(500), {"elapsed": 600.0}, "again, in doubt"),
    ],
)  # fmt: skip
def test_create(said, known, expected):
    assert shown(decide_create(said, situation(**known))) == expected


@pytest.mark.parametrize("known", [{}, DOUBT], ids=["first", "in doubt"])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (409, {}),
        (412, {"error": {"message": "requestId was used before"}}),
        (422, {"error": {"code": "idempotency_key_reuse", "message": "Keys can only be used once."}}),
        (400, {"error": "Duplicate request"}),
        (422, {"message": "This operation has already been processed."}),
        (400, {"errors": [{"code": "DUPLICATE_ORDER", "detail": "order exists"}]}),
        (200, {"success": False, "error": {"message": "duplicate requestId"}}),
        (422, {"detail": [{"loc": ["body", "requestId"], "msg": "has already been taken"}]}),
        (422, {"detail": [{"loc": ["body", "requestId"], "msg": "is not available", "type": "value_error"}]}),
        (422, {"errors": {"request_id": ["has already been taken"]}}),
        (400, {"errors": [{"source": {"pointer": "/data/requestId"}, "title": "must be unique"}]}),
        (400, {"message": "Order for prompt and Size exists: AlreadyExists"}),
        (422, {"message": "We have seen this request before"}),
        (400, {"error": "E11000 duplicate key", "input": PATTERN}),
        (500, {"error": "duplicate key value violates a constraint"}),
        (422, {"error": {"field": "prompt", "message": "A pattern for this prompt exists."}}),
        (422, {"error": {"field": "prompt", "message": "prompt is taken"}}),
        (422, {"error": {"field": "prompt", "message": "prompt: already exists in your library"}}),
        (422, {"error": {"field": "prompt", "message": "Ein Muster mit diesem prompt gibt es bereits."}}),
        (422, {"message": "Un motif avec ce prompt existe déjà."}),
        (422, {"message": "Ya existe un patrón con este prompt."}),
        (422, {"message": "Il prompt è già in uso."}),
        (422, {"message": "Dit patroon bestaat al."}),
        (422, {"message": "该请求已存在"}),
        (422, {"message": "You have already generated a pattern with this prompt."}),
        (422, {"message": "You already have a pattern with this prompt."}),
        (422, {"error": {"field": "prompt", "message": "an existing pattern was found"}}),
        (422, {"error": {"field": "prompt", "message": "is in use"}}),
        (422, {"message": "A pattern has been created for this prompt."}),
        (422, {"message": "You have recently submitted this prompt."}),
        (422, {"message": "The prompt has been used."}),
        (422, {"message": "Another pattern has this prompt."}),
        (422, {"message": "Same prompt as pattern pat_17."}),
        (422, {"message": "Dieser prompt ist vergeben."}),
        (400, "Doppelte Anfrage"),
    ],
)
def test_words_of_a_duplicate_are_held(status, body, known):
    decision = decide_create(answer(status, body), situation(PATTERN, **known))
    assert shown(decision) == "held: repeated_request"
    assert "Correct the row" not in decision.message and "Do not change the row" in decision.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (409, {"error": "Another request in progress, try again later"}),
        (409, {"code": "request_already_in_progress"}),
        (400, {"message": "A concurrent request holds this ID"}),
        (422, {"message": "Die Anfrage wird gerade verarbeitet."}),
        (200, {"success": False, "error": "still processing"}),
        (400, {"message": "Try again later"}),
    ],
)
def test_a_request_under_way_is_waited_for(status, body):
    assert shown(decide_create(answer(status, body), situation(alike=9))) == "again, in doubt"
    assert shown(decide_create(answer(status, body), situation(**LATE))) == "unclear"


@pytest.mark.parametrize(
    ("status", "body", "sent"),
    [
        (422, {"detail": [{"loc": ["body", "categoryId"], "msg": "unknown"}]}, PRODUCT),
        (422, {"errors": {"selections": ["must be an object"]}}, PRODUCT),
        (400, {"error": {"message": "Size=11oz is not offered"}}, PRODUCT),
        (400, {"error": {"message": "There is no category cat_mug."}}, PRODUCT),
        (400, {"error": {"message": "No option Size exists."}}, PRODUCT),
        (422, {"error": "prompt is too long"}, PATTERN),
        (422, {"error": "prompt must describe an existing place"}, PATTERN),
        (422, {"error": "categoryId is not an existing category"}, PRODUCT),
        (400, {"error": "You have reached the prompt length limit"}, PATTERN),
        (400, {"error": "Size m is no longer in use"}, PRODUCT),
        (422, {"error": {"prompt": "too long"}, "requestId": "req_83"}, PATTERN),
    ],
)
def test_a_refusal_that_names_the_row_says_correct_it(status, body, sent):
    decision = decide_create(answer(status, body), situation(sent))
    assert shown(decision) == "refused: invalid_request" and "Correct the row" in decision.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, None),
        (422, {"error": {"code": "E-1138", "message": "Nope."}}),
        (422, {"detail": [{"loc": ["body", "patternId"], "msg": "unknown"}]}),
        (422, {"detail": [{"loc": ["body", "requestId"], "msg": "must have at most 12 characters"}]}),
        (422, {"detail": [{"loc": ["body"], "msg": "Nope.", "input": PRODUCT}]}),
        (400, {"error": "Nope.", **PRODUCT}),
        (400, {"message": "Idempotency-Key header is missing"}),
        (400, {"message": "You have already reached your monthly limit"}),
        (422, {"message": "You have already used your monthly quota of patterns."}),
        (422, {"message": "You have used all your credits."}),
        (400, {"message": "Ihr Kontingent ist bereits verbraucht"}),
        (400, {"error": "Nope.", "requestId": "req_8812"}),
    ],
)
def test_an_unclear_refusal_advises_no_change(status, body):
    decision = decide_create(answer(status, body), situation())
    assert shown(decision) == "refused: unclear_refusal" and "orrect" not in decision.message


@pytest.mark.parametrize("status", [400, 403, 422, 451])
def test_refused_content_says_that_the_prompt_has_to_be_changed(status):
    said = answer(status, {"error": {"message": "Rejected by our safety system."}})
    decision = decide_create(said, situation(PATTERN))
    assert (
        shown(decision) == "refused: invalid_request" and "The prompt has to be changed" in decision.message
    )


FAILED, DONE = JOB | {"status": "failed"}, JOB | {"status": "succeeded"}
SHAPELESS, OLD = DONE | {"result": {"asset": {"uid": "prd_1"}}}, {"elapsed": 100.0, "tries": 3}


@pytest.mark.parametrize(
    ("said", "known", "expected"),
    [
        (answer(200, JOB), {}, Again(0.0)),
        (answer(200, JOB | {"status": "queued"}), {}, Again(0.0)),
        (answer(200, JOB | {"status": "queued"}), LATE, "unclear"),
        (answer(200, '{"jobId": "job_1", "status": "running", "progress": NaN}'), {}, Again(0.0)),
        (answer(200, DONE | {"result": {"productId": "prd_1", "patternId": "pat_1"}}), {}, "prd_1"),
        (answer(200, DONE | {"result": {"productId": "prd_1"}}), LATE, "prd_1"),
        (answer(200, DONE | {"result": None}), {"alike": 9}, "again"),
        (answer(200, DONE | {"result": None}), LATE, "held: unreadable_result"),
        (answer(200, SHAPELESS), {}, "again"),
        (answer(200, SHAPELESS), {"alike": 3}, "held: unreadable_result"),
        (answer(200, DONE | {"result": {"patternId": "pat_1"}}), {}, "held: contradiction"),
        (answer(200, FAILED | {"error": {"message": "no ink"}}), {}, Ended(None, "no ink", "job_failed")),
        (answer(200, FAILED | {"error": "no ink"}), {}, Ended(None, "no ink", "job_failed")),
        (answer(200, FAILED), {}, Ended(None, "the service gave no reason", "job_failed")),
        (answer(200, FAILED | {"error": {"message": "rejected: the queue is full"}}), {}, "job_failed"),
        (answer(200, FAILED | {"error": {"message": "content policy"}}), {}, "content_refused"),
        (answer(200, FAILED | {"error": {"message": "Gegen die Richtlinien"}}), {}, "content_refused"),
        (answer(200, FAILED | {"error": {"message": DUPLICATE}}), {}, "held: repeated_request"),
        (answer(200, FAILED | {"error": {"message": "prompt exists"}}), {}, "held: repeated_request"),
        (answer(200, FAILED | {"result": {"productId": "prd_1"}}), {}, "held: contradiction"),
        (answer(200, JOB | {"jobId": "job_2"}), {}, "held: contradiction"),
        (answer(429, retry_after=3.0), {}, Again(3.0, told=True)),
        (answer(429, retry_after=9999.0), {}, "stop: rate_limited"),
        (answer(401), {}, "stop: unauthorized"),
        (answer(403, PAGE), {}, "again"),
        (answer(403, PAGE), {"quiet": 181.0}, "stop: page_in_front"),
        (answer(302), {}, "again"),
        (answer(500), {}, "again"),
        (answer(500), {"elapsed": 600.0}, "again"),
        (answer(500), {"elapsed": 600.1}, "unclear"),
        (answer(200, {"error": "try later"}), OLD, "again"),
        (answer(200, {"error": "try later"}), OLD | {"alike": 3}, "held: unreadable"),
        (answer(404), {}, "again"),
        (answer(404), {"tries": 9}, "again"),
        (answer(404), {"elapsed": 100.0}, "again"),
        (answer(404), OLD, "held: job_unknown"),
        (answer(404, PAGE), OLD, "again"),
        (answer(422, {"error": "no such job"}), OLD, "held: job_unknown"),
        (Answer(trouble="lost"), {}, "again"),
        (Answer(trouble="lost"), LATE, "unclear"),
        (Answer(trouble="unusable"), {}, "stop: unusable_address"),
    ],
)
def test_poll(said, known, expected):
    decision = decide_poll(said, situation(job_id="job_1", **known))
    assert expected in (decision, shown(decision))


def test_a_failure_for_its_content_says_what_to_change():
    said = answer(200, {"jobId": "j", "status": "failed", "error": {"message": "Blocked by moderation."}})
    decision = decide_poll(said, situation(PATTERN, job_id="j"))
    assert decision.message == "Blocked by moderation. The prompt has to be changed."


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (answer(403, PAGE), "403: Just a moment... Enable JavaScript"),
        (answer(400, {"error": {"field": "size", "message": "too\nlong\ud800\0"}}), "400: size: too long"),
        (answer(500, ""), "500"),
        (Answer(trouble="lost", text="no whole answer in time"), "lost: no whole answer in time"),
    ],
)
def test_the_words_of_an_answer_are_one_line_that_can_be_stored(said, words):
    assert said.reason == words


CHECKOUT = {"jobId": "job_1", "status": "succeeded", "result": {"checkoutId": "che_1"}}


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://pay.example/1", "https://pay.example/1"), ("http://127.0.0.1/1", "http://127.0.0.1/1"),
        ("javascript:alert(1)", ""), ("https://pay.example/\x1b[31m", ""), (None, ""),
    ],
)  # fmt: skip
def test_a_checkout_is_made_at_once_and_its_address_is_one(address, kept):
    now = Situation(Asked(Stage.CHECKOUT, {"requestId": "r1", "lines": []}), patience=600.0)
    made = decide_create(answer(200, CHECKOUT | {"checkoutUrl": address}), now)
    assert made == Accepted("job_1", "che_1", kept)
    assert decide_create(answer(200, JOB | {"status": "succeeded"}), situation()) == Accepted("job_1")


def test_pauses_double_up_to_twenty_seconds_and_are_longer_for_what_cannot_be_read():
    tries = {1: 0.5, 2: 1.0, 3: 2.0, 6: 16.0, 7: 20.0, 99: 20.0}
    assert {one: situation(tries=one).pause for one in tries} == tries
    assert decide_create(answer(200, {}), situation()).after == 2.0
    assert decide_create(answer(200, {}, retry_after=7.0), situation()).after == 7.0


def test_a_situation_counts_tries_and_answers_that_are_alike_and_stays_in_doubt():
    first = situation().met(answer(500, "oh"), elapsed=3.0, quiet=4.0, works=False)
    assert (first.elapsed, first.quiet, first.works, first.alike) == (3.0, 4.0, False, 1)
    assert first.met(answer(500, "oh"), 5.0, 0.0, True).alike == 2
    assert first.met(answer(500, "no"), 5.0, 0.0, True).alike == 1
    again = first.after(Again(1.0, in_doubt=True))
    assert (again.tries, again.in_doubt) == (2, True)
    assert again.after(Again(1.0)).in_doubt
