"""Chromium without a window, driven over its own debugging protocol: pages opened, keys pressed, scripts run."""

import json
import os
import shutil
import subprocess
import time
from itertools import count

import pytest
from websockets.sync.client import connect

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
#: The keys that the browser itself acts on: their numbers, and what some of them write.
_OWN_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " ")}
#: Blocks cookies and all storage, as a person can in the browser's settings.
BLOCKED = {"profile": {"default_content_setting_values": {"cookies": 2}}}
#: Collects errors of scripts, and what the page's own policy does not let it do.
_WATCH = """window.complaints = [];
addEventListener('error', (event) => event.message && complaints.push(event.message));
addEventListener('unhandledrejection', (event) => complaints.push(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => complaints.push(event.violatedDirective));"""


def installed():
    """Return the browser's command, or skip the test; fail where CI should have installed one."""
    if command := next(filter(None, map(shutil.which, _NAMES)), None):
        return command
    reason = "no Chromium: `make system` installs it"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """One browser with a profile of its own and one page."""

    def __init__(self, profile, preferences=None):
        if preferences:
            (profile / "Default").mkdir(parents=True)
            (profile / "Default/Preferences").write_text(json.dumps(preferences))
        command = [installed(), *_QUIET, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._numbers, self._session, note = count(1), None, profile / "DevToolsActivePort"
        until = time.monotonic() + 30
        while not note.exists() or len(note.read_text().splitlines()) < 2:
            assert time.monotonic() < until, "the browser does not start"
            time.sleep(0.05)
        port, path = note.read_text().splitlines()[:2]
        self._socket = connect(f"ws://127.0.0.1:{port}{path}", max_size=None)
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)

    def send(self, method, **params):
        message = {"id": next(self._numbers), "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while (answer := json.loads(self._socket.recv(60))).get("id") != message["id"]:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def show(self, address, width=1280, scheme="light"):
        """Open a page on a screen of this width, and wait for its cards."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=address)
        self.until("document.querySelector('article')")

    def do(self, script):
        """Run a script, wait for its value, and return it."""
        done = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def text(self, selector="body"):
        return self.do(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def until(self, script, within=20):
        """Wait until a script comes to something true."""
        deadline = time.monotonic() + within
        while not self._holds(script):
            assert time.monotonic() < deadline, f"{script}:\n{self.text()}"
            time.sleep(0.03)

    def _holds(self, script):
        """Return whether a script is true; it is not while another page is loaded."""
        try:
            return self.do(f"!!({script})")
        except AssertionError as error:
            if "navigated or closed" in str(error):
                return False
            raise

    def says(self, text, selector="body"):
        self.until(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})")

    def press(self, *keys):
        for key in keys:
            number, text = _OWN_KEYS.get(key, (0, key if len(key) == 1 else ""))
            how = {"key": key, "text": text, "windowsVirtualKeyCode": number}
            self.send(
                "Input.dispatchKeyEvent", type="keyDown", **{name: one for name, one in how.items() if one}
            )
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def names(self, role):
        """Return the names by which a screen reader knows all things of a role."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        mine = [node for node in nodes if not node["ignored"] and node["role"]["value"] == role]
        return [node["name"]["value"] for node in mine]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.terminate()
        self._process.wait(20)
