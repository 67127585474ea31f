"""The record of a run on a Prefect server: reaching it quietly, handing it over, and waiting until it is whole."""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from patternmill.private_files import lasting_secret, private_folder

#: The user's part of what opens our own server; the rest of it is secret.
USER = "patternmill"
#: The page of our own server that logs a browser in.
LOGIN_PATH = "/patternmill-login"
#: The states of a task run that may still change.
OPEN_STATES = ("SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING")
#: States of a flow run that a process stands behind; what is scheduled or paused waits for one.
DRIVEN_STATES = ("PENDING", "RUNNING", "CANCELLING")
PAGE = 200
POLL_SECONDS = 0.3
REQUEST_SECONDS = 20
#: So many questions may go unanswered while the record settles: SQLite under load was silent for half a minute.
SILENCES = 2


@dataclass(frozen=True)
class PrefectApi:
    """A Prefect API: its address, ending with `/api`, and the headers that open it."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Any) -> None:
        self._ask("PATCH", path, body)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the address of the Prefect server in use
            f"{self.url.rstrip('/')}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **self.headers},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:  # noqa: S310
            return json.loads(answer.read() or b"null")


@dataclass(frozen=True)
class FinalState:
    """What a task run or flow run is to read."""

    type: str
    name: str
    message: str = ""


@dataclass(frozen=True)
class RecordState:
    """How the record of one flow run stands on the server."""

    #: Task runs there, without those that stand for nested flow runs.
    recorded: int
    #: Those not in a final state.
    open: int
    #: Every expected task run is there and in a final state.
    whole: bool


LOST = FinalState("CRASHED", "Crashed", "The process that ran this ended before it could say how it went.")


def prefect_environment(api_url: str, home: Path | None = None) -> dict[str, str]:
    """What the environment must say before Prefect is imported, for a client of the server at `api_url`.

    With `home` (our own server) Prefect's files and profiles stay there too; without it (a server of the
    user's) their Prefect home and profile hold, which may carry the key to that server.
    """
    quiet = {
        "PREFECT_API_URL": api_url,
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
        # The terminal is ours; the server still gets every log, with its traceback.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_HANDLERS_DEBUG_LEVEL": "CRITICAL",
        # One "Finished in state" log a task run says nothing that its state does not.
        "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        # 2, 4 and 8 seconds: a server that restarts is waited for, one that is gone holds nobody up for long.
        "PREFECT_CLIENT_MAX_RETRIES": "3",
        "PREFECT_API_REQUEST_TIMEOUT": "10",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    }
    if home is None:
        return quiet
    directory = home.resolve() / "prefect"
    return quiet | {
        "PREFECT_API_AUTH_STRING": own_password(home),
        "PREFECT_HOME": str(directory),
        "PREFECT_PROFILES_PATH": str(directory / "profiles.toml"),
        "PREFECT_PROFILE": "ephemeral",
    }


def own_password(home: Path) -> str:
    """What opens our own server on this home, as `user:password`; made once."""
    directory = private_folder(home.resolve() / "prefect")
    return lasting_secret(directory / "credential", f"{USER}:")


def api_with_password(url: str, password: str) -> PrefectApi:
    return PrefectApi(url, {"Authorization": f"Basic {base64.b64encode(password.encode()).decode()}"})


def prefect_api() -> PrefectApi:
    """The API that Prefect's client in this process talks to, with the password or key that it uses, in its order."""
    from prefect.settings import get_current_settings

    settings = get_current_settings().api
    url = settings.url or ""
    if settings.auth_string is not None:
        return api_with_password(url, settings.auth_string.get_secret_value())
    if settings.key is not None:
        return PrefectApi(url, {"Authorization": f"Bearer {settings.key.get_secret_value()}"})
    return PrefectApi(url)


def hand_over(patience: timedelta = timedelta(seconds=15)) -> bool:
    """Send what Prefect's client in this process still holds; whether all of it was sent.

    To be called outside of an event loop, once the flow has returned. A server that takes events is waited for;
    one that takes none for `patience` is gone, and then only `os._exit` ends the process soon: sending goes on
    for a while at the interpreter's end.
    """
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    from prefect_host.event_batches import EventsBatch

    left: set[Future[bool]] = set()
    for worker in (EventsWorker, APILogWorker):
        outcome = worker.drain_all(timeout=0)
        assert isinstance(outcome, tuple), "not to be called on an event loop"
        left |= outcome[1]
    taken, until = EventsBatch.taken, time.monotonic() + patience.total_seconds()
    while left and time.monotonic() < until:
        left = wait(left, timeout=0.2).not_done
        if EventsBatch.taken != taken:
            taken, until = EventsBatch.taken, time.monotonic() + patience.total_seconds()
    return not left


def settle(
    api: PrefectApi,
    flow_run_id: str,
    *,
    expected: int = 0,
    patience: timedelta = timedelta(seconds=20),
) -> RecordState:
    """Wait until the flow run, with its nested ones, has `expected` task runs and all are in final states.

    A server with a long queue is waited for as long as it gets on; one on which nothing changes for `patience`
    has no more to come. Returns how far it came. Raises OSError when the server does not answer; one that takes
    questions and is silent may be busy with its database, and is asked again.
    """
    before, changed, silences = None, time.monotonic(), 0
    while True:
        try:
            settled = _look(api, _family(api, flow_run_id), expected)
        except TimeoutError:
            silences += 1
            if silences > SILENCES:
                raise
            changed = time.monotonic()
            continue
        now = time.monotonic()
        if settled != before:
            before, changed = settled, now
        if settled.whole or now - changed > patience.total_seconds():
            return settled
        time.sleep(POLL_SECONDS)


def close_open_task_runs(
    api: PrefectApi, flow_run_id: str, ends: Mapping[str, FinalState], default: FinalState = LOST
) -> int:
    """Force the task runs that stayed open into the final state known for their name; how many were not known.

    For records that lost events on their way; `ends` comes from the run's own knowledge.
    """
    unknown = 0
    for task_run in list(_open_task_runs(api, _family(api, flow_run_id))):
        end = ends.get(task_run["name"])
        unknown += end is None
        _force(api, "task_runs", task_run["id"], end or default)
    return unknown


def correct_flow_runs(
    api: PrefectApi, flow_run_id: str, top: FinalState, nested: Mapping[str, FinalState]
) -> int:
    """Let the flow run read `top`, and its nested ones, by name, what is known of them; how many read otherwise.

    A server that was away as a flow run ended has Prefect's own trouble on record for the run's outcome.
    """
    where = {"flow_runs": {"id": {"any_": _family(api, flow_run_id)}}}
    wrong = 0
    for run in list(_pages(api, "flow_runs/filter", where)):
        end = top if run["id"] == flow_run_id else nested.get(run["name"])
        state = run["state"] or {}
        if end is not None and (state.get("type"), state.get("name")) != (end.type, end.name):
            _force(api, "flow_runs", run["id"], end)
            wrong += 1
    return wrong


def close_abandoned_runs(api: PrefectApi, end: FinalState = LOST) -> int:
    """Close every flow run that is not in a final state, with its task runs; how many there were.

    Only for a server of our own that has just been started, with nobody else on it: whoever ran them is dead.
    """
    where = {"flow_runs": {"state": {"type": {"any_": list(DRIVEN_STATES)}}}}
    abandoned = list(_pages(api, "flow_runs/filter", where))
    for flow_run in abandoned:
        for task_run in list(_open_task_runs(api, [flow_run["id"]])):
            _force(api, "task_runs", task_run["id"], end)
        _force(api, "flow_runs", flow_run["id"], end)
    return len(abandoned)


def _look(api: PrefectApi, family: Sequence[str], expected: int) -> RecordState:
    runs = {"flow_runs": {"id": {"any_": list(family)}}}
    unfinished = {"task_runs": {"state": {"type": {"any_": list(OPEN_STATES)}}}}
    steps_only = {"task_runs": {"subflow_runs": {"exists_": False}}}
    recorded = int(api.post("task_runs/count", runs | steps_only))
    still_open = int(api.post("task_runs/count", runs | unfinished))
    return RecordState(recorded, still_open, whole=still_open == 0 and recorded >= expected)


def _family(api: PrefectApi, flow_run_id: str) -> list[str]:
    """The flow run and all that are nested in it, at whatever depth."""
    family, parents = [flow_run_id], [flow_run_id]
    while parents:
        where = {"flow_runs": {"parent_flow_run_id": {"any_": parents}}}
        parents = [str(run["id"]) for run in _pages(api, "flow_runs/filter", where)]
        family += parents
    return family


def _open_task_runs(api: PrefectApi, family: Sequence[str]) -> Iterator[dict[str, Any]]:
    where = {
        "flow_runs": {"id": {"any_": list(family)}},
        "task_runs": {"state": {"type": {"any_": list(OPEN_STATES)}}},
    }
    return _pages(api, "task_runs/filter", where)


def _pages(api: PrefectApi, path: str, where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    offset = 0
    while True:
        page = api.post(path, {**where, "limit": PAGE, "offset": offset, "sort": "ID_DESC"})
        yield from page
        if len(page) < PAGE:
            return
        offset += PAGE


def _force(api: PrefectApi, kind: str, run_id: str, end: FinalState) -> None:
    state = {"type": end.type, "name": end.name, "message": end.message}
    api.post(f"{kind}/{run_id}/set_state", {"state": state, "force": True})
