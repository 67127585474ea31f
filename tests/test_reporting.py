"""`explain --report`: what is sent about a request, within the bounds of feedback, and what each answer to it means."""

import json

import pytest

from cli.main import run as command
from patternmill.ledger.database import Database
from patternmill.service.answers import Answer, Refused, Unclear, decide_report
from tests.double import Weather
from tests.double.server import KEY
from tests.double.service import Reply
from tests.test_cli import asked
from tests.test_runs import double, row, run, sheet  # noqa: F401

NAME = "report-1"
WORDS = "I expected a tote in m, and got a refusal. I tried it twice."


@pytest.mark.parametrize(
    ("status", "text", "trouble", "means", "said"),
    [
        (200, '{"requestId": "report-1"}', "", None, ""),
        (201, '{"requestId": "report-1", "more": 1}', "", None, ""),
        (200, '{"requestId": "report-2"}', "", Unclear, "may have arrived"),
        (200, "{}", "", Unclear, "may have arrived"),
        (204, "", "", Unclear, "may have arrived"),
        (200, "<html>Sign in</html>", "", Unclear, "may have arrived"),
        (400, '{"error": {"field": "text", "message": "too long"}}', "", Refused, "too long"),
        (401, '{"error": "no such key"}', "", Refused, "Check PATTERNMILL_API_KEY"),
        (403, "<html>Blocked</html>", "", Refused, "403"),
        (404, '{"error": "no such operation"}', "", Refused, "no such operation"),
        (300, '{"requestId": "report-1"}', "", Refused, ""),
        (302, "it leads to nowhere", "", Refused, "nowhere"),
        (429, '{"error": "too fast"}', "", Refused, "Send it again later"),
        (503, '{"error": "no feedback today"}', "", Refused, "no feedback today"),
        (408, "", "", Unclear, "may have arrived"),
        (500, "", "", Unclear, "may have arrived"),
        (504, "<html>Gateway</html>", "", Unclear, "may have arrived"),
        (None, "no whole answer was received", "lost", Unclear, "no whole answer"),
        (None, "no connection", "unreachable", Refused, "no connection"),
        (None, "its name is not found", "unusable", Refused, "not found"),
    ],
)
def test_what_an_answer_to_a_report_means(status, text, trouble, means, said):
    found = decide_report(Answer(status, text, trouble=trouble), NAME)
    assert type(found) is (means or type(None))
    assert said in getattr(found, "message", "")


@pytest.fixture
def made(double):  # noqa: F811
    """A row that the service has refused, and one that we have."""
    sheet(row(2, "[refused] moss"), row(3, size="huge"))
    run()
    return double


def reports(double):  # noqa: F811
    sent = [one for one in double.record if one.get("operation") == "feedback/create"]
    return [json.loads(one["body"]) for one in sent]


def test_a_report_says_what_was_sent_and_what_came_of_it_and_is_sent_once(made, capfd):
    capfd.readouterr()
    assert command(["explain", "A-2", "--report", WORDS, "--yes"]) == 0
    said = capfd.readouterr().out
    (report,) = reports(made)
    asked = [one for one in made.record if one.get("operation") == "patterns/create"]
    (refused,) = [one for one in asked if "[refused]" in one["body"]]
    assert report["request"]["body"] == json.loads(refused["body"])
    assert (report["procedure"], report["agent"]) == ("patterns/create", report["request"]["userAgent"])
    assert report["text"].startswith(f"{WORDS}\n")
    assert "prompt holds a word that is not allowed" in report["text"]
    assert refused["name"] in report["text"]
    assert report["requestId"] != refused["name"]
    assert json.loads(said[said.index("{") : said.rindex("}") + 1]) == report
    assert said.splitlines()[-1] == f"Sent as {report['requestId']}."
    sheet(row(1))
    run()
    assert command(["explain", "A-1", "--report", WORDS, "--yes"]) == 0
    assert reports(made)[1]["procedure"] == "products/create"


def test_a_report_is_within_the_bounds_or_is_not_sent(made, capfd):
    for mark in ("x", "ö", "😀"):
        units = len(mark.encode("utf-16-le")) // 2
        assert command(["explain", "A-2", "--report", mark * (3_500 // units), "--yes"]) == 0
        assert 3_500 < len(reports(made)[-1]["text"].encode("utf-16-le")) // 2 <= 4_000
        assert 1 <= len(reports(made)[-1]["requestId"]) <= 128
        for words in (mark * (4_000 // units), " ", ""):
            assert command(["explain", "A-2", "--report", words, "--yes"]) == 2
            assert "A report says" in capfd.readouterr().err
    assert len(reports(made)) == 3


def test_a_picture_is_in_no_report(made):
    database, body = Database("home/ledger.sqlite3"), json.dumps({"requestId": "r", "content": "A" * 50_000})
    database.change(lambda connection: connection.execute("UPDATE attempts SET body = :body", body=body))
    database.disconnect()
    assert command(["explain", "A-2", "--report", WORDS, "--yes"]) == 0
    assert "body" not in reports(made)[0]["request"]


def test_no_secret_of_the_settings_is_in_a_report(made, monkeypatch, capfd):
    sources = {"shop": {"url": "https://u:passw0rd@shop.example/feed", "header": "X-Key: header-secret"}}
    monkeypatch.setenv("PATTERNMILL_SOURCES", json.dumps(sources))
    words = f"I sent {KEY} and X-Key: header-secret for https://u:passw0rd@shop.example/feed"
    capfd.readouterr()
    assert command(["explain", "A-2", "--report", words, "--yes"]) == 0
    said, sent = capfd.readouterr().out, json.dumps(reports(made))
    assert not [one for one in (KEY, "header-secret", "passw0rd") if one in said or one in sent]


def test_nothing_is_sent_without_a_yes(made, capfd):
    assert command(["explain", "A-2", "--report", WORDS]) == 2
    assert "--yes" in capfd.readouterr().err
    question = "Send this to the operators of production?"
    said, code = asked(["explain", "A-2", "--report", WORDS], [(question, "n\n")])
    assert (code, reports(made)) == (130, []), said
    said, code = asked(["explain", "A-2", "--report", WORDS], [(question, "y\n")])
    assert (code, len(reports(made))) == (0, 1), said


def test_what_was_never_asked_for_or_is_of_another_service_is_not_reported(made, capfd, monkeypatch):
    assert command(["explain", "A-3", "--report", WORDS, "--yes"]) == 2
    assert "nothing to report" in capfd.readouterr().err
    assert command(["explain", "A-2", "--report", WORDS, "--yes", "--environment", "staging"]) == 2
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    assert command(["explain", "A-2", "--report", WORDS, "--yes"]) == 2
    assert "PATTERNMILL_STUDIO_URL says" in capfd.readouterr().err
    assert reports(made) == []


def test_each_answer_gives_a_sentence_and_an_exit_code_and_nothing_is_sent_again(made, monkeypatch, capfd):
    async def arrive(operation, body):
        return Reply(400, {"error": {"field": "text", "message": "not in English"}})

    refused, unclear = (2, "[report_refused]"), (3, "[report_unclear]")
    ends = dict.fromkeys(("limited", "busy"), (2, "[no_reports]"))
    ends |= dict.fromkeys(("failed", "lost", "html"), unclear) | {"": refused}
    for number, (fault, end) in enumerate(ends.items(), 1):
        made.weather = Weather(latency=0.001, faults={fault: 1.0} if fault else {})
        if not fault:
            monkeypatch.setattr(made, "_arrive", arrive)
        code = command(["explain", "A-2", "--report", WORDS, "--yes"])
        assert (code, capfd.readouterr().err.split()[-1]) == end
        assert len(reports(made)) == number
