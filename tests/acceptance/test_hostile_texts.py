"""Rows and a service with texts that try to be more than text, viewed in a browser, in both UIs of Prefect.

The server is our own, so its policy is switched off in the browser: the server of a user has none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import lay_database, migrated_database
from tests.acceptance.test_unauthorized_access import Attacked
from tests.acceptance.workers import up as serve
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.texts import HOSTILE_TEXTS
from tests.unit.service.sites import site

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

#: The paths of the two UIs.
UIS = ("", "/v2")
FAILED = "fails for"
#: Finds the elements of a page that would fetch or run something from elsewhere, or that a text was turned into.
MADE_OF_TEXT = """(host => {
  const ours = [location.protocol, 'http:', 'https:', 'data:', 'blob:'];
  const outside = address => {
    try {
      const url = new URL(address, location.href);
      return url.host === host || url.host.includes('example.com') || !ours.includes(url.protocol);
    } catch { return true; }
  };
  const leads = one => ['href', 'src', 'srcset', 'action'].some(name => {
    const address = one.getAttribute(name);
    return address && outside(address);
  });
  const tags = ['iframe', 'img', 'del', 's', 'em', 'a'];
  const rendered = tags.flatMap(tag => [`article.markdown-renderer ${tag}`, `.prose ${tag}`]);
  const made = [...document.querySelectorAll(['[onerror]', '[onload]', ...rendered].join())];
  const leading = [...document.querySelectorAll('[href], [src], [srcset], [action]')].filter(leads);
  return [...made, ...leading].map(one => one.outerHTML.slice(0, 200));
})"""


@contextmanager
def waiting(folder: Path, database: Path, texts: dict[str, str]) -> Iterator[Attacked]:
    """Serve while a plan of hostile rows waits; whatever is made of it fails with a hostile message."""
    lay_database(database, folder / "home")
    rules = [
        Rule("patterns/create", "job_fails", {"message": text}, matching=f"{FAILED} {number}.")
        for number, text in enumerate(texts.values())
    ]
    with Hostile(Plan(rules=tuple(rules)), folder / "service") as service:
        settings = {"PATTERNMILL_APPROVE_ABOVE_ITEMS": "3", "PATTERNMILL_ATTEMPTS": "1"}
        with serve(folder, **service.environment, **settings) as serving:
            file = str(write_rows(folder / "![n](x) <img src=x> a_b.csv", texts))
            prefect, out = serving.prefect, str(folder / "out")
            run = prefect.begin("bulk-import", file=file, environment="staging", out=out)
            yield Attacked(folder, serving.process, prefect.suspended(run))


def write_rows(path: Path, texts: dict[str, str]) -> Path:
    """Write each text as a sku, a prompt, a category and a selection; some are refused in a file, and shown as such."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "prompt", "category", "option:size", "note: <b>x</b>"])
        for number, text in enumerate(texts.values()):
            writer.writerow(
                [f"{number} {text[:80]}", f"{text[:300]} {FAILED} {number}.", "Mug", "11oz", text]
            )
            writer.writerow([f"c{number}", "herons", text[:200], "11oz", ""])
            writer.writerow([f"s{number}", "herons", "Mug", text[:200], ""])
    return path


def artifacts(up: Attacked) -> dict[str, str]:
    """Return the addresses of the run's artifacts by the last part of their keys."""
    found = up.api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [up.waiting]}}})
    keys = {one["id"]: "plan" if one["key"].startswith("plan-") else one["key"] for one in found}
    return {key.rpartition("-")[2]: f"artifacts/artifact/{artifact}" for artifact, key in keys.items()}


def test_every_text_is_shown_as_it_is(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Texts stay text where a person approves the plan, and in summary, logs and names; no other host is asked."""
    installed()
    database = migrated_database(tmp_path_factory.getbasetemp())
    with site() as listener, Browser(tmp_path_factory.mktemp("profile")) as browser:
        texts = {name: text.replace("HOST", listener.host) for name, text in HOSTILE_TEXTS.items()}

        def look(address: str, names: str, *seen: str) -> None:
            browser.open(f"{up.ui}{address}")
            for text in (*(texts[name] for name in filter(None, names.split(", "))), *seen):
                browser.shows(text)
            made = browser.do(f"{MADE_OF_TEXT}({json.dumps(listener.host)})")
            assert made == [], browser.do("location.href")
            assert listener.seen == []

        with waiting(tmp_path, database, texts) as up:
            browser.bypass_policy()
            browser.open(up.server.login_url())
            browser.until("location.pathname.includes('dashboard')")
            for ui in UIS:
                names = "image, link, file address, mail, entities, cell, emphasis"
                look(f"{ui}/{artifacts(up)['plan']}", names)
                look(f"{ui}/runs/flow-run/{up.waiting}", "", "a_b.csv")

            note = f"<b>A</b> ![w]({listener.url}/who) [n]({listener.url}/note)"
            answer = {"run_input": {"decision": "approve", "note": note}}
            up.api.post(f"flow_runs/{up.waiting}/resume", answer)
            assert up.prefect.ended(up.waiting)["name"] == "CompletedWithFailures"
            found = up.api.post("task_runs/filter", {"task_runs": {"name": {"like_": "/angle"}}})
            for ui in UIS:
                names = "image, html link, angle address, entities, backslashes, odd backtick"
                look(f"{ui}/{artifacts(up)['summary']}", names, "unsafe_characters")
                # The page has only the lines of a log that fit on its screen.
                log_line = "99 rows in ![n](x)" if ui else f"<http[:]//{listener.host}/angle>"
                look(f"{ui}/runs/flow-run/{up.waiting}", "", log_line)
                name = f"pattern · {texts['angle address']} fails"
                look(f"{ui}/runs/task-run/{found[0]['id']}", "", name)
