"""The network under the client: connections that are stale, names that are not found, certificates, a steady 1 % of faults."""

from tests.test_client import READY, raw
from tests.test_runs import double, row, run, sheet  # noqa: F401

KEPT = raw(200, READY, "connection: keep-alive\r\n")
NO_CATEGORIES = raw(200, b"[]", "connection: keep-alive\r\n")
TOO_LONG = raw(400, b'{"error": "prompt is too long"}')
