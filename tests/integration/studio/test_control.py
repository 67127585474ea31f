"""The control interface: who may use it, and the state that is emptied while the studio runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.instruments.control_client import post_json
from studio.testing import Studio

from .in_process import InProcess


@pytest.fixture(scope="module")
def running() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def studio(running: Studio) -> Studio:
    running.reset()
    return running


def jobs(studio: Studio) -> list[str]:
    return [job["requestId"] for job in studio.ask("jobs/list")[1]["jobs"]]


def create(studio: Studio, request_id: str) -> dict[str, str]:
    job = studio.ask("patterns/create", requestId=request_id, prompt=f"ferns {request_id}")[1]
    result = studio.ask("jobs/get", jobId=job["jobId"])[1]["result"]
    assert isinstance(result, dict)
    return result


def test_control_has_a_key_of_its_own(studio: Studio) -> None:
    """A key of the service does not open it; what cannot be read sets nothing."""
    url = studio.base_url.removesuffix("/v1") + "/control"
    assert post_json(f"{url}/reset", studio.key, {})[0] == 401
    own = json.loads((studio.home / "control.json").read_text())["key"]
    assert post_json(f"{studio.base_url}/jobs/list", own, {})[0] == 401
    assert post_json(f"{url}/resett", own, {})[0] == 404
    assert post_json(f"{url}/clock/advance", own, {"second": 1})[0] == 400
    assert (studio.home / "control.json").stat().st_mode & 0o077 == 0


def test_without_the_option_there_is_no_control(tmp_path: Path) -> None:
    """Whatever the key."""
    with InProcess.open(tmp_path) as plain:
        assert plain.request("../control/reset", {}).status_code == 404


def test_reset_leaves_nothing_but_keys(studio: Studio) -> None:
    """Instruments are as at the start; the same requestId is a new request."""
    create(studio, "1")
    studio.faults.use({"on": "all", "effect": {"kind": "close"}})
    studio.control("feedback/set", on=False)

    studio.reset()
    assert jobs(studio) == []
    assert studio.meter.total == 0
    state = studio.control("state")
    assert state["faults"] == []
    assert studio.ask("feedback/create", requestId="1", text="x")[0] == 200
    create(studio, "1")
