"""The studio as a process: what survives its death, how it ends, and what it refuses to start with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from studio.server import main, read_keys, read_options

from .conftest import KEY, StudioProcess, wait_for


def test_studio_ends_with_its_parent(tmp_path: Path) -> None:
    """When its parent is killed, the studio ends too, and its drawing process with it."""
    home = tmp_path / "studio"
    starter = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-m', 'studio', '--home', {str(home)!r}, '--parent', str(os.getpid()),"
        f" '--ready-file', {str(home / 'ready.json')!r}])\n"
        "time.sleep(60)\n"
    )
    home.mkdir()
    (home / "api-key").write_text(f"{KEY}\n")
    parent = subprocess.Popen([sys.executable, "-c", starter])
    wait_for((home / "ready.json").exists, "the studio listens")
    studio = StudioProcess(home)
    text = (home / "ready.json").read_text()
    pid = int(text.split('"pid": ')[1].split("}")[0])
    studio.base_url = text.split('"base_url": "')[1].split('"')[0]
    job = studio.ended(studio.ask("patterns/create", {"requestId": "r", "prompt": "ferns"}).body)
    result = job["result"]
    assert isinstance(result, dict)
    assert studio.request("GET", f"{result['imageUrl']}?width=128").status == 200
    children = _children(pid)
    assert children

    parent.kill()
    parent.wait()
    wait_for(
        lambda: not any(_is_alive(one) for one in (pid, *children)), "studio and drawing process are gone"
    )


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_two_studios_do_not_share_a_home(studio: StudioProcess, capsys: pytest.CaptureFixture[str]) -> None:
    """The second exits with a message; the first continues."""
    assert main(["--home", str(studio.home)]) == 2
    assert "another studio runs in" in capsys.readouterr().err
    assert studio.ask("categories/list", {}).status == 200


def test_keys_are_never_in_the_arguments(studio: StudioProcess) -> None:
    """A list of processes shows no key."""
    assert studio.process is not None

    arguments = Path(f"/proc/{studio.process.pid}/cmdline").read_bytes()
    assert KEY.encode() not in arguments


def test_studio_without_keys_makes_a_private_one(tmp_path: Path) -> None:
    """Started by hand, it needs no preparation."""
    options = read_options(["--home", str(tmp_path)])

    assert read_keys(options) == read_keys(options)
    assert os.stat(tmp_path / "api-key").st_mode & 0o077 == 0


def test_request_for_another_host_name_is_refused(studio: StudioProcess) -> None:
    """DNS rebinding: to a browser, a page of that name would be the studio's own. It gets no answer and no picture."""
    body = b"{}"
    assert studio.ask("categories/list", body).status == 200
    assert studio.ask("categories/list", body, Host="rebound.example").status == 400
    assert studio.ask("categories/list", body, Host="localhost:1").status == 200


def test_files_are_private(new_studio: StudioProcess) -> None:
    """Whatever the umask of the process that starts it."""
    before = os.umask(0o022)
    try:
        new_studio.start()
        job = new_studio.ask("patterns/create", {"requestId": "r", "prompt": "ferns"}).body
        assert new_studio.ended(job)["status"] == "succeeded"
    finally:
        os.umask(before)
    written = [path for path in new_studio.home.rglob("*") if path.name != "keys"]
    assert [path for path in written if path.stat().st_mode & 0o077] == []
    assert any(path.name == "studio.db" for path in written)


def test_newest_pictures_are_drawn_before_anybody_looks(new_studio: StudioProcess) -> None:
    """Of patterns that have succeeded: a page that shows them does not stay blank."""
    new_studio.start()
    job = new_studio.ask("patterns/create", {"requestId": "r", "prompt": "ferns"}).body
    assert new_studio.ended(job)["status"] == "succeeded"

    pictures = new_studio.home / "pictures"
    wait_for(lambda: list(pictures.glob("*-256.png")), "the picture is drawn")
