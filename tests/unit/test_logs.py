"""Log lines: canaries put wherever a call may bring one are in none of them, and each line of JSON is an object."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from patternmill.errors import ConfigurationError
from patternmill.logs import LOG_FORMAT, write_logs

KEY, PASSWORD, BEARER = "sk_canary_0123456789", 'can"ary\\ßpass', "canary-of-another"
URL = f"postgresql://mill:{PASSWORD}@127.0.0.1/ledger"
logger = logging.getLogger("patternmill.service.anywhere")


class Holder:
    """Shows a secret only once it is turned into text."""

    def __repr__(self) -> str:
        return f"Holder({KEY})"


def raise_and_log() -> None:
    try:
        raise RuntimeError(f"refused for {KEY}") from ValueError(PASSWORD)
    except RuntimeError:
        logger.exception("It failed", extra={"at_url": URL})


CALLS: dict[str, Callable[[], None]] = {
    "message": lambda: logger.info("The key is %s, at %s", KEY, URL),
    "unknown secrets": lambda: logger.info("Authorization: Bearer %s, password='%s", BEARER, BEARER),
    "extra": lambda: logger.warning(
        "x", extra={"sku": KEY, "body": {KEY: [PASSWORD, Holder()]}, "o": Holder()}
    ),
    "traceback": raise_and_log,
    "stack": lambda: logger.error("x %s", PASSWORD, stack_info=True),
    "control characters": lambda: logger.info("a\nb\x1b[31m\u202e%s", KEY),
}


@pytest.fixture(params=["text", "json"])
def output(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Yield what is written to the error output in one of the formats."""
    for name in ("PATTERNMILL_HOME", "PATTERNMILL_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "https://studio.example/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", KEY)
    monkeypatch.setenv("SOME_PASSWORD", PASSWORD)
    monkeypatch.setenv(LOG_FORMAT, request.param)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    names = ("patternmill", "tasks", "prefect_host", "cli")
    before = [(each := logging.getLogger(name), each.handlers, each.propagate, each.level) for name in names]
    write_logs()
    yield stream
    for each, handlers, propagate, level in before:
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.mark.parametrize("call", CALLS)
def test_no_secret_is_in_the_finished_line(call: str, output: io.StringIO) -> None:
    CALLS[call]()
    written = output.getvalue()
    for secret in (KEY, PASSWORD, BEARER, json.dumps(PASSWORD)[1:-1]):
        assert secret not in written
    assert "**********" in written or call == "extra"
    assert written.isprintable() or set(written) - set(filter(str.isprintable, written)) == {"\n"}
    if written.startswith("{"):
        (line,) = written.splitlines()
        assert {"at", "level", "logger", "message"} <= json.loads(line).keys()
        assert ("traceback" in json.loads(line)) == (call == "traceback")


def test_nothing_is_written_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOG_FORMAT, raising=False)
    before = logging.getLogger("patternmill").handlers
    write_logs()
    assert logging.getLogger("patternmill").handlers is before
    monkeypatch.setenv(LOG_FORMAT, "xml")
    with pytest.raises(ConfigurationError, match="text or json"):
        write_logs()
