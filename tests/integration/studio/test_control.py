"""The control interface: who may use it, and the state that is taken, put back and emptied while the studio runs."""

from __future__ import annotations

import base64
import http.client
import io
import json
import sqlite3
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from studio.instruments.control_client import ControlFailed, post_json
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


def picture() -> str:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "#336699").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def test_control_has_a_key_of_its_own(studio: Studio) -> None:
    """A key of the service does not open it; what cannot be read sets nothing."""
    url = studio.base_url.removesuffix("/v1") + "/control"
    assert post_json(f"{url}/reset", studio.key, {})[0] == 401
    own = json.loads((studio.home / "control.json").read_text())["key"]
    assert post_json(f"{studio.base_url}/jobs/list", own, {})[0] == 401
    assert post_json(f"{url}/resett", own, {})[0] == 404
    assert post_json(f"{url}/shapes/set", own, {"error": "html"})[0] == 400
    assert (studio.home / "control.json").stat().st_mode & 0o077 == 0


def test_without_the_option_there_is_no_control(tmp_path: Path) -> None:
    """Whatever the key."""
    with InProcess.open(tmp_path) as plain:
        assert plain.request("../control/reset", {}).status_code == 404


def test_reset_leaves_nothing_but_keys(studio: Studio) -> None:
    """Instruments are as at the start; the same requestId is a new request."""
    create(studio, "1")
    studio.use_shapes(errors="html")
    studio.faults.use({"on": "all", "effect": {"kind": "close"}})
    studio.control("feedback/set", on=False)

    studio.reset()
    assert jobs(studio) == []
    assert studio.meter.total == 0
    state = studio.control("state")
    assert (state["faults"], state["shapes"]["errors"]) == ([], "native")
    assert studio.ask("feedback/create", requestId="1", text="x")[0] == 200
    create(studio, "1")


def test_restored_state_is_the_whole_state(studio: Studio) -> None:
    """Objects, request IDs, faults with their counts, and uploaded pictures, even deleted ones."""
    create(studio, "1")
    reference = studio.ask("references/create", requestId="2", data=picture(), name="blue")[1]
    studio.faults.use({"name": "second", "on": "categories/list", "nth": [2], "effect": {"kind": "close"}})
    studio.ask("categories/list")
    studio.snapshot("before")

    with pytest.raises(http.client.RemoteDisconnected):
        studio.ask("categories/list")
    create(studio, "3")
    studio.ask("references/delete", referenceId=reference["referenceId"])
    kept = list((studio.home / "references").glob("*.png"))
    assert kept == []

    studio.restore("before")
    assert jobs(studio) == ["1"]
    assert studio.faults.unfired == ["second"]
    assert studio.ask("references/get", referenceId=reference["referenceId"])[1] == reference
    assert [path.stem for path in (studio.home / "references").glob("*.png")] == [reference["sha256"]]


@pytest.mark.parametrize("content", [b"", b"no archive", "empty", "newer"])
def test_what_is_no_snapshot_changes_nothing(studio: Studio, tmp_path: Path, content: bytes | str) -> None:
    create(studio, "1")
    file = tmp_path / "state.zip"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("../studio.db" if content == "empty" else "studio.db", _newer(tmp_path))

    with pytest.raises(ControlFailed, match="is no snapshot"):
        studio.control("restore", file=str(file))
    assert jobs(studio) == ["1"]
    assert list(studio.home.glob(".restore-*")) == []


def _newer(place: Path) -> bytes:
    """A database of a studio that is to come."""
    connection = sqlite3.connect(place / "newer.db")
    connection.executescript("CREATE TABLE record (seq INTEGER); PRAGMA user_version = 99")
    connection.close()
    return (place / "newer.db").read_bytes()


def test_calls_are_answered_from_the_one_state_or_the_other(studio: Studio) -> None:
    """While states come and go, every create and poll is answered, and a job is either wholly there or not at all."""
    create(studio, "always")
    studio.snapshot("one")
    stop = threading.Event()
    answers: list[tuple[int, int]] = []

    def work(worker: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            status, job = studio.ask("patterns/create", requestId=f"{worker}-{number}", prompt="ferns")
            answers.append((status, studio.ask("jobs/get", jobId=job["jobId"])[0]))

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(8):
        studio.restore("one")
    stop.set()
    for worker in workers:
        worker.join()

    assert {status for status, _ in answers} == {200}
    assert {status for _, status in answers} <= {200, 404}
    studio.restore("one")
    assert jobs(studio) == ["always"]
    assert len(studio.meter.read()["purchases"]) == 1
