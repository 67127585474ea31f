"""A real browser without a window, driven as a person would: pages opened, texts waited for, buttons clicked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from psutil import Process
from websockets.sync.client import connect

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,1800",
)
#: Clicks the element with exactly this text; of several, the last one, which is in the topmost dialog.
CLICK = """(text => {
  const matches = [...document.querySelectorAll('button, a, [role=menuitem], [role=option], [role=combobox]')]
    .filter(element => element.textContent.trim() === text && !element.disabled && element.getClientRects().length);
  if (!matches.length) return false;
  const element = matches.at(-1), event = {bubbles: true, cancelable: true, button: 0, pointerType: 'mouse'};
  element.dispatchEvent(new PointerEvent('pointerdown', event));
  element.dispatchEvent(new PointerEvent('pointerup', event));
  element.click();
  return true;
})"""
#: Fills in the field with this label, with the events of typing, so that the page notices.
FILL = """((label, value) => {
  const about = [...document.querySelectorAll('label')].filter(own => own.textContent.trim().startsWith(label)).at(-1);
  const near = about && about.closest('.schema-form-property, [data-slot=form-item]');
  const field = about && (document.getElementById(about.htmlFor) || near.querySelector('select, input, textarea'));
  if (!field || field.value === value) return !!field;
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, value);
  field.dispatchEvent(new Event('input', {bubbles: true}));
  field.dispatchEvent(new Event('change', {bubbles: true}));
})"""

#: The keys that the browser itself acts on, such as Enter on a button: their numbers, and what some of them write.
OWN_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " ")}
#: Collects what the browser complains of: errors of scripts, and what a page's own policy does not let it do.
WATCH = """window.complaints = [];
addEventListener('error', (event) => complaints.push(event.message));
addEventListener('unhandledrejection', (event) => complaints.push(String(event.reason)));
addEventListener('securitypolicyviolation', (event) => complaints.push(event.violatedDirective));"""
#: The browser's answer when another page came before the script had its turn.
NAVIGATED = "Inspected target navigated or closed"


class PageLeftError(Exception):
    """A script was sent to a page that was being left, and did not run."""


def installed() -> str:
    """Return the browser's command; without one, skip the test, or fail where CI should have installed one."""
    command = next(filter(None, map(shutil.which, BROWSERS)), None)
    if command:
        return command
    reason = f"no browser here: none of {', '.join(BROWSERS)} is installed (Debian: apt-get install chromium)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """One browser with a profile and one page, spoken to over its own debugging protocol."""

    def __init__(self, profile: Path) -> None:
        self._process = subprocess.Popen(
            [installed(), *QUIET, f"--user-data-dir={profile}", "--remote-debugging-port=0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = count(1)
        self._socket = connect(self._address(profile / "DevToolsActivePort"), max_size=None)
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    _session: str | None = None

    def _address(self, note: Path) -> str:
        until = time.monotonic() + 30
        while not note.exists() or len(note.read_text().splitlines()) < 2:
            assert time.monotonic() < until, "the browser does not start"
            time.sleep(0.1)
        port, path = note.read_text().splitlines()[:2]
        return f"ws://127.0.0.1:{port}{path}"

    def _send(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = json.loads(self._socket.recv(60))
            if answer.get("id") == number:
                if answer.get("error", {}).get("message") == NAVIGATED:
                    raise PageLeftError
                assert "error" not in answer, answer
                return answer["result"]

    def bypass_policy(self) -> None:
        """Ignore the Content-Security-Policy of all pages opened from now on."""
        self._send("Page.setBypassCSP", enabled=True)

    def watch(self) -> None:
        """Collect what the browser complains of, for the pages opened from now on, in `window.complaints`."""
        self._send("Page.enable")
        self._send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)

    def resize(self, width: int, height: int = 900) -> None:
        """Show the page as on a screen of this size, in CSS pixels."""
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def open(self, address: str) -> None:
        self._send("Page.navigate", url=address)

    def do(self, script: str) -> Any:
        """Run a script in this page, wait for its value, and return it."""
        done = self._send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def text(self) -> str:
        return str(self.do("document.body ? document.body.innerText : ''"))

    def until(self, script: str, within: float = 40) -> None:
        """Wait until a script of this page comes to something true."""
        deadline = time.monotonic() + within
        while not self._holds(script):
            assert time.monotonic() < deadline, f"{script} on {self.do('location.href')}:\n{self.text()}"
            time.sleep(0.05)

    def _holds(self, script: str) -> bool:
        try:
            return bool(self.do(script))
        except PageLeftError:
            return False

    def shows(self, text: str, within: float = 40) -> None:
        self.until(f"(document.body || {{innerText: ''}}).innerText.includes({json.dumps(text)})", within)

    def click(self, text: str) -> None:
        self.until(f"{CLICK}({json.dumps(text)})")

    def fill(self, label: str, value: str) -> None:
        """Fill in a field until it keeps the value: a form that is still processing one field loses the next."""
        self.until(f"{FILL}({json.dumps(label)}, {json.dumps(value)})")
        time.sleep(0.5)

    def press(self, *keys: str) -> None:
        """Press keys as a person does: letters, capitals with Shift, digits, or names such as `Enter`."""
        for key in keys:
            self._send("Input.dispatchKeyEvent", type="keyDown", **_key(key))
            self._send("Input.dispatchKeyEvent", type="keyUp", **_key(key))

    def hold(self, key: str) -> None:
        """Hold a key down for half a second."""
        for number in range(10):
            self._send("Input.dispatchKeyEvent", type="keyDown", autoRepeat=number > 0, **_key(key))
            time.sleep(0.05)
        self._send("Input.dispatchKeyEvent", type="keyUp", **_key(key))

    def save_files_in(self, folder: Path) -> None:
        """Save what the page offers for download in this folder, without asking."""
        self._send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def prefer(self, scheme: str) -> None:
        """Prefer this colour scheme: `light` or `dark`."""
        self._send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def kill(self) -> None:
        """Kill all its processes at once without warning, as a crash would."""
        family = [
            self._process.pid,
            *(one.pid for one in Process(self._process.pid).children(recursive=True)),
        ]
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(20)


def _key(key: str) -> dict[str, Any]:
    how = {"key": key, "code": f"Key{key.upper()}" if key.isalpha() and len(key) == 1 else key}
    if key in OWN_KEYS:
        number, text = OWN_KEYS[key]
        return how | {"windowsVirtualKeyCode": number, "text": text}
    text = {"text": key} if len(key) == 1 else {}
    return how | text | ({"modifiers": 8} if key.isupper() and len(key) == 1 else {})  # Shift
