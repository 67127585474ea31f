"""Rows and a service whose texts would be anything but text, looked at in a browser, in both UIs of Prefect.

The server is our own, so its policy is switched off in the browser: another's server has none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.browser import Browser, installed
from tests.acceptance.prefect_servers import lay_database, migrated_database
from tests.acceptance.test_unauthorized_access import Attacked
from tests.acceptance.workers import up as serve
from tests.hostile import Hostile, Plan, Rule
from tests.hostile.texts import HOSTILE_TEXTS
from tests.unit.service.sites import Site, site

pytestmark = pytest.mark.soak

#: Where each UI is.
UIS = ("", "/v2")
FAILED = "fails for"
#: Everything of a page that would ask or run something of elsewhere, or that a text was made into.
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


@pytest.fixture(scope="module")
def listener() -> Iterator[Site]:
    """A host that nothing may ask."""
    with site() as served:
        yield served


@pytest.fixture(scope="module")
def texts(listener: Site) -> dict[str, str]:
    return {name: text.replace("HOST", listener.host) for name, text in HOSTILE_TEXTS.items()}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]) -> Iterator[Attacked]:
    """Serving, with a plan of hostile rows that waits; whatever of it is made fails with a hostile message."""
    installed()
    folder = tmp_path_factory.mktemp("up")
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), folder / "home")
    rules = [
        Rule("patterns/create", "job_fails", {"message": text}, matching=f"{FAILED} {number}.")
        for number, text in enumerate(texts.values())
    ]
    with Hostile(Plan(rules=tuple(rules)), tmp_path_factory.mktemp("service")) as service:
        settings = {"PATTERNMILL_APPROVE_ABOVE_ITEMS": "3", "PATTERNMILL_ATTEMPTS": "1"}
        with serve(folder, **service.environment, **settings) as serving:
            file = str(write_rows(folder / "![n](x) <img src=x> a_b.csv", texts))
            prefect, out = serving.prefect, str(folder / "out")
            waiting = prefect.begin("bulk-import", file=file, environment="staging", out=out)
            yield Attacked(folder, serving.process, prefect.suspended(waiting))


def write_rows(path: Path, texts: dict[str, str]) -> Path:
    """Each text as a sku, a prompt, a category and a selection; what a file may not have is refused, and shown."""
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


@pytest.fixture(scope="module")
def browser(up: Attacked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as one:
        one.bypass_policy()
        one.open(up.login)
        one.until("location.pathname.includes('dashboard')")
        yield one


def look(browser: Browser, listener: Site, address: str, *seen: str) -> None:
    """The page has these texts as they are, and nothing is made of any."""
    browser.open(address)
    for text in seen:
        browser.shows(text)
    made = browser.do(f"{MADE_OF_TEXT}({json.dumps(listener.url.removeprefix('http://'))})")
    assert made == [], browser.do("location.href")
    assert listener.seen == []


def artifacts(up: Attacked) -> dict[str, str]:
    """The addresses of the run's artifacts, by the last part of their keys."""
    found = up.api.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [up.waiting]}}})
    keys = {one["id"]: "plan" if one["key"].startswith("plan-") else one["key"] for one in found}
    return {key.rpartition("-")[2]: f"artifacts/artifact/{artifact}" for artifact, key in keys.items()}


@pytest.mark.parametrize("ui", UIS)
def test_plan_that_waits(
    up: Attacked, browser: Browser, listener: Site, texts: dict[str, str], ui: str
) -> None:
    """The page that a person approves on, before anything is bought."""
    seen = [texts[name] for name in ("image", "link", "file address", "mail", "entities", "cell", "emphasis")]
    look(browser, listener, f"{up.ui}{ui}/{artifacts(up)['plan']}", *seen)
    look(browser, listener, f"{up.ui}{ui}/runs/flow-run/{up.waiting}", "a_b.csv")


@pytest.fixture(scope="module")
def ended(up: Attacked, listener: Site) -> str:
    """The run has ended; the ID of its flow run."""
    note = f"<b>A</b> ![w](http://{listener.url.removeprefix('http://')}/who) [n](http://{listener.url.removeprefix('http://')}/note)"
    up.api.post(f"flow_runs/{up.waiting}/resume", {"run_input": {"decision": "approve", "note": note}})
    assert up.prefect.ended(up.waiting)["name"] == "CompletedWithFailures"
    return up.waiting


@pytest.mark.parametrize("ui", UIS)
def test_pages_of_the_ended_run(
    up: Attacked, browser: Browser, listener: Site, texts: dict[str, str], ended: str, ui: str
) -> None:
    """Summary, failures with the service's reasons, logs, names."""
    pages = artifacts(up)
    seen = [texts[name] for name in ("image", "html link", "angle address", "entities", "backslashes")]
    look(
        browser,
        listener,
        f"{up.ui}{ui}/{pages['summary']}",
        *seen,
        texts["odd backtick"],
        "unsafe_characters",
    )
    # It has the lines of a log alone that fit on its screen.
    log_line = "99 rows in ![n](x)" if ui else f"<http[:]//{listener.url.removeprefix('http://')}/angle>"
    look(browser, listener, f"{up.ui}{ui}/runs/flow-run/{ended}", log_line)
    task_run = up.api.post("task_runs/filter", {"task_runs": {"name": {"like_": "/angle"}}})[0]["id"]
    name = f"pattern · {texts['angle address']} fails"
    look(browser, listener, f"{up.ui}{ui}/runs/task-run/{task_run}", name)
