"""`with Studio() as studio:` killed and started again; and its control interface."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from studio.testing import Studio, StudioFailed, post_json

from .in_process import InProcess

README = Path(__file__).resolve().parents[3] / "studio" / "README.md"


def test_studio_is_there_in_the_block_and_gone_after_it() -> None:
    """With nothing of it left on disk."""
    with Studio(clock="2026-01-31T12:00:00Z", pace="realistic") as studio:
        status, job = studio.ask("patterns/create", requestId="1", prompt="ferns")
        assert (status, job["status"]) == (200, "running")
        assert studio.clock.advance_to_next_job_end()
        assert studio.ask("jobs/get", jobId=job["jobId"])[1]["status"] == "succeeded"
        began = studio.clock.now
        assert studio.clock.advance(timedelta(minutes=1)) == began + timedelta(minutes=1)
        assert (studio.meter.total > 0, studio.meter.double_purchases) == (True, [])

    assert not studio.home.exists()
    with pytest.raises(OSError):
        studio.ask("jobs/list")


def test_studio_that_cannot_start_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In its own words."""
    (tmp_path / "plan.json").write_text('{"faults": [{"on": "x", "effect": {"kind": "close"}}]}')
    with pytest.raises(StudioFailed), Studio("--faults", str(tmp_path / "plan.json")):
        pass
    assert "'on' names no operation: 'x'" in capfd.readouterr().err


def test_instruments_survive_a_kill() -> None:
    """Clock, faults with their counts and the meter, at the same address."""
    with Studio(clock="manual", pace="realistic") as studio:
        studio.faults.use(
            {"name": "third", "on": "patterns/create", "nth": [3], "effect": {"kind": "job_fails"}}
        )
        jobs = [studio.ask("patterns/create", requestId="1", prompt="ferns")[1]["jobId"]]
        before, address = studio.clock.advance(5), studio.base_url
        studio.kill()
        studio.start()

        assert (studio.clock.now, studio.base_url) == (before, address)
        for request_id in ("2", "3"):
            job = studio.ask("patterns/create", requestId=request_id, prompt=request_id)[1]
            jobs.append(job["jobId"])
        studio.clock.advance(120)
        statuses = [studio.ask("jobs/get", jobId=job)[1]["status"] for job in jobs]
        assert statuses == ["succeeded", "succeeded", "failed"]
        assert studio.faults.unfired == []
        assert len(studio.meter.read()["purchases"]) == 3


def test_control_has_a_key_of_its_own(instruments: Studio) -> None:
    """A key of the service does not open it; what cannot be read sets nothing."""
    url = instruments.base_url.removesuffix("/v1") + "/control"
    assert post_json(f"{url}/reset", instruments.key, {})[0] == 401
    own = json.loads((instruments.home / "control.json").read_text())["key"]
    assert post_json(f"{instruments.base_url}/jobs/list", own, {})[0] == 401
    assert post_json(f"{url}/resett", own, {})[0] == 404
    assert post_json(f"{url}/clock/advance", own, {"second": 1})[0] == 400
    assert (instruments.home / "control.json").stat().st_mode & 0o077 == 0


def test_without_the_option_there_is_no_control(tmp_path: Path) -> None:
    """Whatever the key."""
    with InProcess.open(tmp_path) as plain:
        assert plain.request("../control/reset", {}).status_code == 404


def test_reset_leaves_nothing_but_keys(instruments: Studio) -> None:
    """Instruments are as at the start; the same requestId is a new request."""
    instruments.ask("patterns/create", requestId="1", prompt="ferns")
    instruments.faults.use({"on": "all", "effect": {"kind": "close"}})

    instruments.reset()
    assert instruments.ask("jobs/list")[1]["jobs"] == []
    assert instruments.meter.total == 0
    assert instruments.control("faults")["faults"] == []
    assert instruments.ask("feedback/create", requestId="1", text="x")[0] == 200
    assert instruments.ask("patterns/create", requestId="1", prompt="moons")[0] == 200


def test_examples_of_the_readme_work() -> None:
    """Every test function in it, as it stands there."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    with Studio(clock="manual", pace="realistic") as studio:
        for test in tests:
            assert callable(test)
            studio.reset()
            test(studio)


def test_commands_are_documented(instruments: Studio) -> None:
    """Every command of the control interface, in the README."""
    with pytest.raises(StudioFailed) as refused:
        instruments.control("help")
    commands = str(refused.value).partition("there are: ")[2].removesuffix(".").split(", ")

    assert len(commands) == 8
    for command in commands:
        assert f"`{command}`" in README.read_text(encoding="utf-8")
