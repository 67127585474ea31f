"""A webhook that keeps what Prefect's automations send it, and the automations of deployments/ that send it there."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

AUTOMATIONS = Path(__file__).resolve().parent.parent / "deployments" / "automations.yaml"
#: The script that saves the block as a person fills it in in the UI.
BLOCK = """
import sys
from prefect.blocks.notifications import CustomWebhookNotificationBlock
message = {"subject": "{{subject}}", "body": "{{body}}"}
secrets = {"address": sys.argv[1]}
print(CustomWebhookNotificationBlock(name="ops", url="{{address}}", json_data=message, secrets=secrets).save("ops"))
"""
#: Texts of the automations, and what replaces them for tests that would wait too long.
IMPATIENT = {"patience 600": "patience 10", "within: 120": "within: 10", "within: 93600": "within: 15"}
#: The time to wait for a message that would be one too many.
QUIET_SECONDS = 12


class Inbox:
    """A webhook that keeps what it is sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.messages.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing to the terminal."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook-with-a-key"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def only_message(self) -> tuple[str, str]:
        """Return subject and body of the one message that comes."""
        until = time.monotonic() + 120
        while not self.messages:
            assert time.monotonic() < until, "no message came"
            time.sleep(0.3)
        time.sleep(QUIET_SECONDS)
        assert len(self.messages) == 1, self.messages
        (message,) = self.messages
        return message["subject"], message["body"]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def apply_automations(
    environment: Mapping[str, str], inbox: Inbox, folder: Path, shorter: Mapping[str, str] | None = None
) -> None:
    """Make the shipped automations at the server of this environment, so that they write to the inbox."""
    command = [sys.executable, "-c", BLOCK, inbox.url]
    block = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    text = AUTOMATIONS.read_text("utf-8")
    for written, instead in (shorter or {}).items():
        assert text.count(written) == 1, written
        text = text.replace(written, instead)
    file = folder / "automations.yaml"
    file.write_text(text.replace("BLOCK-ID", block.stdout.strip()))
    create = [sys.executable, "-m", "prefect", "automation", "create", "--from-file", str(file)]
    subprocess.run(create, env=environment, check=True, timeout=120)
