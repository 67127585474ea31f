"""The pictures of a deployment's run are drawn after its end, and do not hold it up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pydantic import SecretStr

from patternmill.profiles import EmbeddedProfile
from patternmill.settings import Settings
from tasks.run_steps import draw_pictures


def test_pictures_do_not_hold_up_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They outlast it in a thread that the process waits for."""
    drawn, asked = threading.Event(), []

    def keep_pictures(out: Path, home: Path, studio_url: str) -> None:
        asked.append((out, home, studio_url))
        drawn.wait(10)

    monkeypatch.setattr("tasks.run_steps.keep_pictures", keep_pictures)
    studio = EmbeddedProfile(url="http://127.0.0.1:9/v1", key=SecretStr("studio_key"))
    draw_pictures(tmp_path, Settings(home=tmp_path).at(studio))
    threads = [thread for thread in threading.enumerate() if thread.name == "pictures"]
    drawn.set()
    assert [thread.daemon for thread in threads] == [False]
    for thread in threads:
        thread.join(10)
    assert asked == [(tmp_path, tmp_path, studio.url)]
