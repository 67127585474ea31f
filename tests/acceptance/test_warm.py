"""What is forked from the warm process is a process like any other: otherwise the tests that use it prove nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.prefect_servers import clean_environment, shared_folder
from tests.acceptance.warm import Warm

SHOW = """
import atexit, json, os, sys
atexit.register(lambda: print("at exit", flush=True))
print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), os.getsid(0) == os.getpid(), sys.stdin.read()]))
print("error", file=sys.stderr)
sys.exit(7)
"""
SETTINGS = """
import sys
from pathlib import Path
from prefect_host.own_server import use_server
use_server(sys.argv[1], Path(sys.argv[2]))
from prefect.settings import get_current_settings
print(get_current_settings().api.url, get_current_settings().home)
"""


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The run's own."""
    user = Warm(shared_folder(tmp_path_factory.getbasetemp()))
    yield user
    user.close()


def forked(warmed: Warm, script: str, *arguments: str, cwd: Path) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [sys.executable, "-c", script, *arguments]
    return warmed.start(words, cwd=cwd, env={**clean_environment(), "NAME": "herons"}, text=True, **pipes)


def test_it_has_what_it_was_started_with(warmed: Warm, tmp_path: Path) -> None:
    """Arguments, directory, environment, streams, a session of its own; and it ends as it wants to."""
    with forked(warmed, SHOW, "one", "two", cwd=tmp_path) as process:
        out, err = process.communicate("said", timeout=60)
    shown, last = out.splitlines()
    assert json.loads(shown) == [
        ["-c", "one", "two"], str(tmp_path), {**clean_environment(), "NAME": "herons"}, True, "said"
    ]  # fmt: skip
    assert (last, err, process.returncode) == ("at exit", "error\n", 7)


def test_prefect_has_the_settings_of_the_server_that_is_named(warmed: Warm, tmp_path: Path) -> None:
    """As if it had been imported after that; one process knows nothing of another."""
    for port in (1, 2):
        home = tmp_path / str(port)
        with forked(warmed, SETTINGS, f"http://127.0.0.1:{port}/api", str(home), cwd=tmp_path) as process:
            out, err = process.communicate(timeout=60)
        assert out.split() == [f"http://127.0.0.1:{port}/api", str(home / "prefect")], err


def test_traceback_is_an_exit_code_of_1(warmed: Warm, tmp_path: Path) -> None:
    with forked(warmed, "raise ValueError('herons')", cwd=tmp_path) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1]) == (1, "ValueError: herons")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signal_ends_it_and_every_waiting_thread_hears_of_it(
    warmed: Warm, tmp_path: Path, number: signal.Signals
) -> None:
    with forked(warmed, "import time; print(1, flush=True); time.sleep(600)", cwd=tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline() == "1\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        ends: list[int] = []
        waiting = [threading.Thread(target=lambda: ends.append(process.wait())) for _ in range(2)]
        for thread in waiting:
            thread.start()
        process.send_signal(number)
        for thread in waiting:
            thread.join(60)
    assert ends == [-number, -number]
    assert process.poll() == -number


@pytest.mark.soak
def test_the_last_user_ends_it(tmp_path: Path) -> None:
    """And with it what was forked from it and still runs."""
    (tmp_path / "shared").mkdir()
    one, other = Warm(tmp_path / "shared"), Warm(tmp_path / "shared")
    lasting = forked(one, "import time; print(1, flush=True); time.sleep(600)", cwd=tmp_path)
    with lasting, forked(other, "print(2)", cwd=tmp_path) as short:
        assert lasting.args[0] == sys.executable and short.wait(60) == 0
        assert one._address == other._address
        one.close()
        time.sleep(0.2)
        assert lasting.poll() is None and Path(other._address).exists()
        other.close()
        assert lasting.wait(60) == -signal.SIGKILL
    assert not Path(other._address).exists()
