"""A process that the commands on a home share, shown with the embedded studio, which starts soon: never left behind."""

from __future__ import annotations

import json
import signal
import stat
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from urllib.parse import urlsplit

import pytest

from cli.services import EmbeddedStudio
from patternmill.errors import ConfigurationError, PatternmillError
from prefect_host.shared_process import bound_socket
from tests.acceptance.prefect_servers import eventually

HOLD_FOR_EVER = """
    import sys, time
    from pathlib import Path
    from cli.services import EmbeddedStudio
    with EmbeddedStudio(Path(sys.argv[1])) as studio:
        print(studio.url, flush=True)
        time.sleep(600)
"""


def status(url: str, key: str = "another") -> int:
    """Return the status of an answer, or 0 if there is none."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "User-Agent": "test"}
    request = urllib.request.Request(f"{url}/categories/list", data=json.dumps({}).encode(), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def test_two_commands_share_one_process(tmp_path: Path) -> None:
    """It answers with its own key alone, for one environment, and ends with its last user, not before."""
    with EmbeddedStudio(tmp_path, pace="instant") as first:
        with EmbeddedStudio(tmp_path, pace="instant") as second:
            assert (second.url, second.child) == (first.url, None)
        with pytest.raises(ConfigurationError, match="staging"):
            EmbeddedStudio(tmp_path, environment="production").__enter__()
        assert status(first.url, first.key.get_secret_value()) == 200
        assert status(first.url) == 401
    assert not first.is_alive()


def test_port_of_a_killed_process_stays_taken(tmp_path: Path) -> None:
    """Nobody else gets what is sent there; and the next one has another key, which only its owner can read."""
    with EmbeddedStudio(tmp_path, pace="instant") as first:
        child, port, earlier = first.child, urlsplit(first.url).port, first.key
        assert child is not None and port is not None
        child.kill()
        child.wait()
        with pytest.raises(PatternmillError, match=f"Port {port} .*in use"):
            bound_socket(port)
    bound_socket(port).close()
    with EmbeddedStudio(tmp_path, pace="instant") as second:
        assert second.key != earlier
    assert stat.S_IMODE((tmp_path / "studio" / "api-key").stat().st_mode) == 0o600


def test_frozen_process_is_killed(tmp_path: Path) -> None:
    """It would not end by itself."""
    with EmbeddedStudio(tmp_path, pace="instant") as studio:
        child = studio.child
        assert child is not None
        child.send_signal(signal.SIGSTOP)
    assert child.poll() is not None


@pytest.mark.usefixtures("unforked")
def test_killed_user_leaves_no_process_behind(tmp_path: Path, script: Callable[..., Popen[str]]) -> None:
    """After SIGKILL of its only user it ends by itself."""
    user = script(HOLD_FOR_EVER, str(tmp_path))
    assert user.stdout is not None
    url = user.stdout.readline().strip()
    assert status(url) == 401
    user.kill()
    user.communicate()
    eventually(lambda: not EmbeddedStudio(tmp_path).is_alive(), 30)
    assert status(url) == 0
