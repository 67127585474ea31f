"""The Prefect server of commands: the configured one, or one that they share and that ends with the last of them."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from cli.server import Server, prefect_server
from cli.shared import shared_process
from patternmill.errors import Refusal

pytestmark = [
    pytest.mark.slow,
    # Sockets that Prefect leaves open.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: A command that uses the server of a home until its standard input ends.
_COMMAND = """
import asyncio, sys
from pathlib import Path
from cli.server import prefect_server

async def use():
    async with prefect_server(Path(sys.argv[1]), lambda line: print(line, file=sys.stderr)) as server:
        from prefect import get_client

        async with get_client() as client:
            print(server.address if await client.api_version() else "", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(use())
"""


@contextmanager
def command(home: Path, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    own = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
    using = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, str(home)],
        env={**own, "PREFECT_HOME": str(home / "none"), **variables},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with using:
        try:
            yield using
        finally:
            using.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", trust_env=False, timeout=5).is_success
    except httpx.HTTPError:
        return False


def servers_of(home: Path) -> list[int]:
    """Return the processes of our Prefect servers on a home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if b"cli.shared" in words and str(home).encode() in words and b"cli.server" in words:
                found.append(int(process.name))
    return found


def comes_true(condition: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


def test_commands_share_a_server_that_ends_with_the_last_one_though_all_are_killed(tmp_path: Path) -> None:
    with command(tmp_path) as first, command(tmp_path) as second:
        address = said(first)
        assert said(second) == address
        first.kill()
        first.wait()
        time.sleep(1.5)
        assert answers(address)
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert comes_true(lambda: not answers(address))
    with command(tmp_path) as third:  # the record of the others is there
        assert answers(said(third))


def test_it_is_bound_to_this_machine_and_its_pages_ask_its_own_port(server: Server) -> None:
    settings = httpx.get(f"{server.ui}/ui-settings", trust_env=False).json()
    assert server.address.startswith("http://127.0.0.1:")
    assert settings["api_url"] == server.address
    foreign = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = httpx.options(f"{server.address}/flow_runs/filter", headers=foreign, trust_env=False)
    assert "access-control-allow-origin" not in preflight.headers


def test_it_rests_while_nobody_asks_it(server: Server) -> None:
    (process,) = servers_of(Path(os.environ["PREFECT_HOME"]))

    def ticks() -> int:
        return sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))

    time.sleep(1.0)  # it has just begun
    before = ticks()
    time.sleep(2.0)
    assert ticks() - before < 0.25 * 2.0 * os.sysconf("SC_CLK_TCK")


def test_proxies_and_settings_of_others_do_not_reach_it(tmp_path: Path) -> None:
    nowhere = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    database = {"PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:////nowhere/prefect.db"}
    with command(tmp_path, **nowhere, **database) as using:
        assert answers(said(using))


def test_a_run_is_on_record_when_it_has_settled(server: Server) -> None:
    from prefect import flow, get_client, task

    @task(retries=0)
    async def one(number: int) -> None:
        await asyncio.sleep(0.05)

    @flow(retries=0)
    async def many() -> None:
        await asyncio.gather(*[one(number) for number in range(150)])

    async def recorded() -> list[str]:
        state: Any = await many(return_state=True)
        assert await server.settled(state.state_details.flow_run_id)
        from prefect.client.schemas.filters import FlowRunFilter

        async with get_client() as client:
            this = FlowRunFilter.model_validate({"id": {"any_": [state.state_details.flow_run_id]}})
            runs = await client.read_task_runs(flow_run_filter=this)
        return [run.state_name or "" for run in runs]

    assert asyncio.run(recorded()) == ["Completed"] * 150


def entered(home: Path) -> tuple[Server, list[str]]:
    lines: list[str] = []

    async def use() -> Server:
        async with prefect_server(home, lines.append) as server:
            return server

    return asyncio.run(use()), lines


@contextmanager
def answering(status: int, version: str = "3.9.1") -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(f'"{version}"'.encode())

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/api"
        http.shutdown()


@pytest.mark.parametrize(
    ("status", "version", "word"),
    [(401, "", "password"), (403, "", "password"), (404, "", "404"), (200, "2.20.1", "version")],
)
def test_a_server_that_refuses_us_ends_the_command(
    status: int, version: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(status, version) as address:
        monkeypatch.setenv("PREFECT_API_URL", address)
        with pytest.raises(Refusal, match=word) as refusal:
            entered(tmp_path)
    assert refusal.value.exit_code == 2


def test_a_configured_server_that_does_not_answer_leaves_the_run_unshown_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    assert not entered(tmp_path)[0].answers
    with answering(503) as address:
        monkeypatch.setenv("PREFECT_API_URL", address)
        assert not entered(tmp_path)[0].answers
    assert time.monotonic() - began < 60  # and not for the two minutes that our own may take


def test_the_server_of_prefects_own_profile_is_the_configured_one(server: Server, tmp_path: Path) -> None:
    profile = tmp_path / "none" / "profiles.toml"
    profile.parent.mkdir()
    profile.write_text(f'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "{server.address}"\n')
    with command(tmp_path) as using:
        assert said(using) == server.address
    assert not (tmp_path / "prefect").exists()


def test_a_home_without_room_for_a_server_leaves_the_run_unshown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "none"))
    (tmp_path / "prefect").write_text("a file")
    server, lines = entered(tmp_path)
    assert not server.answers
    assert "cannot be started" in lines[0]


def test_the_settings_of_this_process_are_as_before_afterwards(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(os.environ)
    entered(tmp_path)
    assert dict(os.environ) == before


def test_a_port_that_is_taken_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with (
        answering(200) as address,
        pytest.raises(Refusal, match="--port"),
        shared_process(tmp_path, lambda port: ([], {}), int(address.split(":")[2].split("/")[0])),
    ):
        pass
