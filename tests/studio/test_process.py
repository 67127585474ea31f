"""The studio as a process: what survives its death, how it ends, its faults over a real socket, and its control."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image

from studio.server import main, read_keys, read_options
from studio.testing import KEY, Studio, StudioFailed, post_json

from .in_process import InProcess

README = Path(__file__).resolve().parents[2] / "studio" / "README.md"
MUG = {"categoryId": "cat_stg_mug", "selections": {"size": "11oz", "finish": "matte"}}
BODY = {"requestId": "1", "prompt": "ferns"}


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


def result(studio: Studio, operation: str, **body: object) -> dict[str, str]:
    """Return the result of the job that this create starts."""
    _, job = studio.ask(operation, **body)
    wait_for(lambda: studio.ask("jobs/get", jobId=job["jobId"])[1]["status"] != "running", "the job ends")
    made = studio.ask("jobs/get", jobId=job["jobId"])[1]["result"]
    assert isinstance(made, dict)
    return made


def raw(studio: Studio, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
    sent = {"Authorization": f"Bearer {studio.key}", **headers}
    address = studio.base_url.removesuffix("/v1") + path
    return httpx.request(method, address, json=body, headers=sent, timeout=20)


# -- its life


def test_everything_survives_a_kill() -> None:
    """From the prompt to the order, killed after each thing that is paid for, at the same address."""
    with Studio() as studio:
        address = studio.base_url

        def restart() -> None:
            studio.kill()
            studio.start()
            assert studio.base_url == address

        pattern = result(studio, "patterns/create", requestId="1", prompt="ferns")["patternId"]
        restart()
        assert result(studio, "patterns/create", requestId="1", prompt="ferns")["patternId"] == pattern
        palette = ["#203040", "#f0e0d0"]
        recolored = result(studio, "refine/recolor", requestId="2", patternId=pattern, palette=palette)[
            "patternId"
        ]
        restart()
        product = result(studio, "products/create", requestId="3", patternId=recolored, **MUG)["productId"]
        order = {"requestId": "4", "lines": [{"productId": product, "quantity": 2}]}
        _, checkout = studio.ask("checkouts/create", **order)
        restart()
        assert studio.ask("checkouts/create", **order)[1] == checkout
        order_id = studio.pay(checkout["checkoutId"])
        restart()

        _, paid = studio.ask("orders/get", checkoutId=checkout["checkoutId"])
        assert (paid["orderId"], paid["total"]) == (order_id, checkout["total"])
        _, lineage = studio.ask("patterns/get", patternId=recolored)
        assert lineage["parentPatternId"] == pattern
        assert lineage["change"] == {"operation": "recolor", "palette": palette}


def test_studio_ends_with_its_parent(tmp_path: Path) -> None:
    """When its parent is killed, the studio ends too, and its drawing process with it."""
    starter = (
        "import os, subprocess, sys, time\ncommand = [sys.executable, '-m', 'studio', '--parent', str(os.getpid())]\n"
        "subprocess.Popen(command + sys.argv[1:])\ntime.sleep(600)\n"
    )
    files = ["--home", str(tmp_path), "--ready-file", str(tmp_path / "ready.json")]
    parent = subprocess.Popen([sys.executable, "-c", starter, *files])
    try:
        wait_for((tmp_path / "ready.json").exists, "the studio listens")
        ready = json.loads((tmp_path / "ready.json").read_text())
        post_json(f"{ready['base_url']}/patterns/create", (tmp_path / "api-key").read_text().strip(), BODY)
        pictures = tmp_path / "pictures"
        # Of patterns that have succeeded: a page that shows them does not stay blank.
        wait_for(lambda: list(pictures.glob("*-256.png")), "the picture is drawn before anybody looks")
        pid = ready["pid"]
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        assert children
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: not any(map(_is_alive, (pid, *children))), "studio and drawing process are gone")


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_home_is_private_and_of_one_studio(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the umask of the process that starts it; a list of processes shows no key."""
    before = os.umask(0o022)
    try:
        with Studio() as studio:
            result(studio, "patterns/create", **BODY)
            written = [path for path in studio.home.rglob("*") if path.name != "test-key"]
            assert [path for path in written if path.stat().st_mode & 0o077] == []
            assert any(path.name == "studio.db" for path in written)
            assert main(["--home", str(studio.home)]) == 2
            assert "another studio runs in" in capsys.readouterr().err
            assert studio._process is not None
            assert KEY.encode() not in Path(f"/proc/{studio._process.pid}/cmdline").read_bytes()
        assert not studio.home.exists()
        with pytest.raises(OSError):
            studio.ask("jobs/list")
    finally:
        os.umask(before)


def test_studio_without_keys_makes_a_private_one(tmp_path: Path) -> None:
    """Started by hand, it needs no preparation."""
    options = read_options(["--home", str(tmp_path)])

    assert read_keys(options) == read_keys(options)
    assert os.stat(tmp_path / "api-key").st_mode & 0o077 == 0


def test_studio_that_cannot_start_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.json").write_text('{"faults": [{"on": "x", "effect": {"kind": "close"}}]}')
    with pytest.raises(StudioFailed), Studio("--faults", str(tmp_path / "plan.json")):
        pass
    assert "'on' names no operation: 'x'" in capfd.readouterr().err


def test_pictures_are_served_without_a_key_to_who_asks_by_the_own_name(instruments: Studio) -> None:
    """PNGs in the offered widths. To a browser, a page of another name that leads here would be the studio's own."""
    _, job = instruments.ask("patterns/create", **BODY)
    instruments.clock.advance(120)
    address = urlsplit(instruments.ask("jobs/get", jobId=job["jobId"])[1]["result"]["imageUrl"]).path

    answer = raw(instruments, "GET", f"{address}?width=128", Authorization="")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(answer.content)).size == (128, 128)
    assert raw(instruments, "GET", f"{address}?width=9999").status_code == 400
    assert raw(instruments, "GET", address, Host="rebound.example").status_code == 400
    assert raw(instruments, "GET", f"{address}?width=128", Host="localhost:1").status_code == 200


# -- its faults


def test_refused_call_is_not_accepted(instruments: Studio) -> None:
    """In the studio's own shape, with Retry-After; the next call is accepted. The key is looked at before."""
    refuse = {"kind": "refuse", "status": 503, "retryAfter": 7}
    instruments.faults.use(
        {"on": "patterns/create", "nth": [1], "effect": refuse},
        {"on": "patterns/create", "nth": [2], "effect": {**refuse, "status": 429}},
        {"on": "jobs/get", "effect": {"kind": "refuse", "status": 404, "message": "gone"}},
        {"on": "feedback/create", "effect": {**refuse, "code": "feedback_unavailable"}},
    )
    first = raw(instruments, "POST", "/v1/patterns/create", BODY)
    assert (first.status_code, first.headers["Retry-After"]) == (503, "7")
    assert first.json()["error"]["code"] == "unavailable"
    status, answer = instruments.ask("patterns/create", **BODY)
    assert (status, answer["error"]["code"]) == (429, "rate_limited")
    assert instruments.meter.read()["purchases"] == []

    assert instruments.ask("patterns/create", **BODY)[0] == 200
    assert instruments.ask("jobs/get", jobId="x")[1] == {"error": {"code": "unknown_job", "message": "gone"}}
    report = {"requestId": "f", "text": "t"}
    assert post_json(f"{instruments.base_url}/feedback/create", "wrong", report)[0] == 401
    status, answer = instruments.ask("feedback/create", **report)
    assert (status, answer["error"]["code"]) == (503, "feedback_unavailable")
    assert instruments.faults.unfired == []


@pytest.mark.parametrize(
    ("effect", "error", "accepted"),
    [
        ({"kind": "close", "when": "before"}, http.client.RemoteDisconnected, 0),
        ({"kind": "close", "when": "after"}, http.client.RemoteDisconnected, 1),
        ({"kind": "body", "form": "truncated"}, http.client.IncompleteRead, 1),
        ({"kind": "body", "form": "malformed"}, ValueError, 1),
        ({"kind": "body", "form": "html"}, ValueError, 1),
        ({"kind": "body", "form": "empty"}, ValueError, 1),
    ],
)
def test_lost_or_unreadable_answer(
    instruments: Studio, effect: dict[str, Any], error: type[Exception], accepted: int
) -> None:
    """The request, sent again, is the same job."""
    instruments.faults.use({"on": "creates", "nth": [1], "effect": effect})

    with pytest.raises(error):
        instruments.ask("patterns/create", **BODY)
    assert len(instruments.meter.read()["purchases"]) == accepted
    assert instruments.ask("patterns/create", **BODY)[0] == 200
    assert len(instruments.meter.read()["purchases"]) == 1


def test_fates_of_jobs(instruments: Studio) -> None:
    """One fails with its message, one never ends, one takes as long as the plan says."""
    instruments.faults.use(
        {"on": "creates", "requestId": "fails", "effect": {"kind": "job_fails", "message": "no ink"}},
        {"on": "creates", "requestId": "hangs", "effect": {"kind": "job_never_ends"}},
        {"on": "creates", "prompt": "MOSS", "effect": {"kind": "job_takes", "seconds": 3600}},
    )
    jobs = {
        name: instruments.ask("patterns/create", requestId=name, prompt=name)[1]["jobId"]
        for name in ("fails", "hangs", "moss")
    }
    assert instruments.faults.unfired == []

    def poll(name: str) -> dict[str, Any]:
        return instruments.ask("jobs/get", jobId=jobs[name])[1]

    instruments.clock.advance(3599)
    assert (poll("fails")["status"], poll("fails")["error"]) == ("failed", {"message": "no ink"})
    assert poll("moss")["status"] == "running"
    instruments.clock.advance(1)
    assert poll("moss")["status"] == "succeeded"
    assert not instruments.clock.advance_to_next_job_end()
    instruments.clock.advance(1e9)
    assert poll("hangs")["status"] == "running"


# -- its control


def test_instruments_survive_a_kill() -> None:
    """The clock, the faults with their counts, and the meter survive."""
    with Studio(clock="manual", pace="realistic") as studio:
        studio.faults.use({"on": "patterns/create", "nth": [3], "effect": {"kind": "job_fails"}})
        jobs = [studio.ask("patterns/create", **BODY)[1]["jobId"]]
        before = studio.clock.advance(timedelta(seconds=5))
        studio.kill()
        studio.start()
        assert studio.clock.now == before
        for request_id in ("2", "3"):
            jobs.append(studio.ask("patterns/create", requestId=request_id, prompt=request_id)[1]["jobId"])
        studio.clock.advance(120)
        statuses = [studio.ask("jobs/get", jobId=job)[1]["status"] for job in jobs]
        assert statuses == ["succeeded", "succeeded", "failed"]
        assert studio.faults.unfired == studio.meter.double_purchases == []
        assert len(studio.meter.read()["purchases"]) == 3


def test_control_has_a_key_of_its_own(instruments: Studio, tmp_path: Path) -> None:
    """A key of the service does not open it; what cannot be read sets nothing; without the option there is none."""
    url = instruments.base_url.removesuffix("/v1") + "/control"
    assert post_json(f"{url}/reset", instruments.key, {})[0] == 401
    own = json.loads((instruments.home / "control.json").read_text())["key"]
    assert post_json(f"{instruments.base_url}/jobs/list", own, {})[0] == 401
    assert post_json(f"{url}/clock/advance", own, {"second": 1})[0] == 400
    assert (instruments.home / "control.json").stat().st_mode & 0o077 == 0
    with InProcess.open(tmp_path) as plain:
        assert plain.request("../control/reset", {}).status_code == 404


def test_reset_leaves_nothing_but_keys(instruments: Studio) -> None:
    """Instruments are as at the start; the same requestId is a new request."""
    instruments.ask("patterns/create", **BODY)
    instruments.faults.use({"on": "all", "effect": {"kind": "close"}})

    instruments.reset()
    assert instruments.ask("jobs/list")[1]["jobs"] == []
    assert instruments.meter.total == 0
    assert instruments.control("faults")["faults"] == []
    assert instruments.ask("patterns/create", requestId="1", prompt="moons")[0] == 200


def test_readme_works_and_has_every_command(instruments: Studio) -> None:
    """Its test functions as they stand there; every command of the control interface is documented."""
    text = README.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, str(README), "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        instruments.reset()
        test(instruments)
    with pytest.raises(StudioFailed) as refused:
        instruments.control("help")
    commands = str(refused.value).partition("there are: ")[2].removesuffix(".").split(", ")
    assert len(commands) == 8
    assert [command for command in commands if f"`{command}`" not in text] == []
