"""Canaries: secrets planted wherever a program may meet one, and searched for wherever it may have written one."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.acceptance.harness import COMMAND, HURRY, QUICK, Room, Zygote, some_rows
from tests.acceptance.prefect_servers import lay_database, migrated_database
from tests.hostile import Hostile, Plan, Rule, Times, audit

#: The canaries. Each is searched for by its middle, so that a part of it is found as well.
KEY = "sk_live_canary00key1234567890abcdef"
PASSWORDS = {
    "DSN": "canary01dsnpassword",
    "PROXY": "canary02proxypassword",
    "STUDIO_URL": "canary03urlpassword",
    "BROKEN_KEY": "canary04key withspace",
    "PREFECT_API_KEY": "canary05prefectkey",
    "QUERY": "canary06querystring",
}
PATTERN, PRODUCT, POLL = "patterns/create", "products/create", "jobs/get"
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)


def pieces(secret: str) -> list[bytes]:
    """Return what to search for: the secret's own part, plain and in base64 at each of the three offsets."""
    core = secret.split("canary")[1]
    plain = f"canary{core}".encode()
    shifted = [base64.b64encode(b"x" * n + plain)[n + 3 : -6] for n in range(3)]
    return [plain[:16], plain[-12:], *shifted]


def found_in(place: str, content: bytes, secrets: Mapping[str, str]) -> list[str]:
    return [
        f"{name} in {place}"
        for name, secret in secrets.items()
        if any(piece in content for piece in pieces(secret))
    ]


def found_under(folder: Path, secrets: Mapping[str, str]) -> list[str]:
    """Return where secrets were found, in every file below a folder, whatever its kind."""
    return [
        hit
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
        for hit in found_in(str(path), path.read_bytes(), secrets)
    ]


def echo(operation: str, number: int, code: int, body: object, **conditions: object) -> Rule:
    return Rule(operation, "status", {"code": code, "body": body}, nth=(number,), **conditions)  # type: ignore[arg-type]


#: The ways in which the service, or a proxy, echoes the key; each occurs once.
ECHOES = (
    echo(PATTERN, 1, 500, {"error": {"message": f"no such tenant for Bearer {KEY}"}}),
    echo(PATTERN, 2, 503, f"Authorization: Bearer {KEY}"),
    echo(PATTERN, 3, 422, {"error": {"message": f"invalid: key={KEY}", "code": KEY}}),
    echo(PATTERN, 4, 429, {"error": KEY, "retry": [KEY, {"key": KEY}]}),
    Rule(PATTERN, "body", {"text": f"<html><pre>{KEY}</pre></html>", "content_type": "text/html"}, nth=(5,)),
    Rule(PATTERN, "body", {"text": '{"error": {"message": "' + ESCAPED + '"}}', "code": 422}, nth=(6,)),
    Rule(PATTERN, "job_fails", {"message": f"the key {KEY} may not weave this"}, matching="no. 6"),
    Rule(POLL, "status", {"code": 500, "body": {"error": {"message": KEY}}}, nth=(2,)),
    Rule(POLL, "edit", {"set": {"status": f"status-{KEY}"}}, nth=(4,)),
    Rule(PRODUCT, "redirect", {"code": 307, "query": f"?api_key={KEY}"}, nth=(3,)),
)


def canary_room(folder: Path, service: Hostile, zygote: Zygote, **settings: str) -> Room:
    return Room(folder / "room", service, some_rows(10, shared=0), zygote, {**settings})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Hostile]:
    service = Hostile(Plan(rules=ECHOES, patterns=Times(median=0.1), products=Times(median=0.1)), tmp_path)
    service.key = KEY
    with service:
        yield service


class Onlooker:
    """Reads the command lines of all processes, over and over."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self._over = threading.Event()
        self.hits: set[str] = set()
        self.looks = 0
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.looks += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.hits.update(found_in("a command line", path.read_bytes(), self._secrets))
                except OSError:
                    continue


def test_search_finds_planted_canaries(tmp_path: Path) -> None:
    """They are found plain, cut short and in base64."""
    for content in (KEY.encode(), KEY[4:-5].encode(), base64.b64encode(f"user:{KEY}".encode())):
        (tmp_path / "file").write_bytes(b"x" + content)
        assert found_under(tmp_path, {"KEY": KEY}), content


def test_no_secret_that_the_service_echoes_is_kept(tmp_path: Path, service: Hostile, zygote: Zygote) -> None:
    """The key is in bodies, pages, reasons, status words and a redirect, but not in ledger, results, output or logs."""
    room = canary_room(tmp_path, service, zygote, PATTERNMILL_DEBUG="1")
    with Onlooker({"KEY": KEY}) as onlooker:
        first = room.run(inject=HURRY, log_format="json")
        second = room.run(inject=HURRY)
    assert {first.code, second.code} <= {0, 1, 3}, first.output + second.output
    seen = audit(service.record, room.rows, service.plan)
    assert seen.unfired(service.plan) == []
    assert (seen.strayed, seen.keys_leaked) == (0, 0)
    assert '"event": "accepted"' in first.output and '"event": ' not in second.output
    assert found_under(room.folder, {"KEY": KEY}) == []
    assert found_in("the output", (first.output + second.output).encode(), {"KEY": KEY}) == []
    assert onlooker.hits == set() and onlooker.looks


BAD_SETTINGS = [
    ("DSN", {"PATTERNMILL_LEDGER_URL": f"postgresql://mill:{PASSWORDS['DSN']}@127.0.0.1:9/ledger"}, 1),
    ("DSN", {"PATTERNMILL_LEDGER_URL": f"host=127.0.0.1 port=9 password={PASSWORDS['DSN']}"}, 2),
    (
        "DSN",
        {"PATTERNMILL_LEDGER_URL": f"postgresql://127.0.0.1:9/x?user=mill&password={PASSWORDS['DSN']}"},
        1,
    ),
    ("DSN", {"PATTERNMILL_LEDGER_URL": f"postgresql://127.0.0.1:{PASSWORDS['DSN']}/x"}, 1),
    ("DSN", {"PATTERNMILL_LEDGER_URL": f"sqlite:////dev/null/x?password={PASSWORDS['DSN']}"}, 1),
    ("STUDIO_URL", {"PATTERNMILL_STUDIO_URL": f"http://me:{PASSWORDS['STUDIO_URL']}@127.0.0.1:9/v1"}, 2),
    ("QUERY", {"PATTERNMILL_STUDIO_URL": f"http://127.0.0.1:9/v1?key={PASSWORDS['QUERY']}"}, 2),
    ("BROKEN_KEY", {"PATTERNMILL_API_KEY": f"sk_{PASSWORDS['BROKEN_KEY']}"}, 2),
    ("PROXY", {"HTTP_PROXY": f"http://me:{PASSWORDS['PROXY']}@127.0.0.1:9", "NO_PROXY": ""}, 2),
]


@pytest.mark.parametrize(("name", "settings", "code"), BAD_SETTINGS, ids=range(len(BAD_SETTINGS)))
def test_no_secret_of_a_bad_setting_is_shown(
    name: str, settings: dict[str, str], code: int, tmp_path: Path, zygote: Zygote
) -> None:
    """A setting that cannot be used is named without its value, even with PATTERNMILL_DEBUG."""
    with Hostile(Plan(), tmp_path) as service:
        room = canary_room(
            tmp_path, service, zygote, PATTERNMILL_DEBUG="1", PATTERNMILL_CREATE_TIMEOUT="PT1S"
        )
        room.settings.update(settings)
        if "HTTP_PROXY" in settings:
            room.settings["PATTERNMILL_STUDIO_URL"] = "http://studio.example.invalid/v1"
        ended = room.run(inject=HURRY)
    secrets = {name: PASSWORDS[name]}
    assert found_in("the output", ended.output.encode(), secrets) == []
    assert found_under(room.folder, secrets) == []
    assert ended.code == code, ended.output


def test_no_password_of_the_prefect_server_is_shown(tmp_path: Path) -> None:
    """An address with one is refused before Prefect, which logs it, is started."""
    password = {"PREFECT": "canary07prefectpassword"}
    environment = {**os.environ, "PREFECT_API_URL": f"http://ann:x/{password['PREFECT']}@127.0.0.1:9/api"}
    ended = subprocess.run(
        [str(COMMAND), "up", "--worker"],
        cwd=tmp_path,
        env=environment | {"PATTERNMILL_HOME": str(tmp_path / "home"), "PATTERNMILL_DEBUG": "1"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert b"PREFECT_API_AUTH_STRING" in ended.stderr
    assert found_in("the output", ended.stdout + ended.stderr, password) == []
    assert found_under(tmp_path, password) == []


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
def test_no_secret_of_an_unexpected_error_is_kept(
    debug: str, tmp_path: Path, service: Hostile, zygote: Zygote
) -> None:
    """A traceback, on the terminal or in its file, shows the error and not the key in it."""
    room = canary_room(tmp_path, service, zygote, PATTERNMILL_DEBUG=debug)
    ended = room.run(inject=("--explode",))
    assert ended.code == 1 and "nobody expected this" in ended.output
    assert found_in("the output", ended.output.encode(), {"KEY": KEY}) == []
    assert found_under(room.folder, {"KEY": KEY}) == []


@pytest.mark.timeout(120)
def test_no_secret_reaches_prefect(
    tmp_path: Path, service: Hostile, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The whole command with its own Prefect server: its database, logs, reports and all command lines are clean."""
    room = canary_room(tmp_path, service, zygote)
    lay_database(migrated_database(tmp_path_factory.getbasetemp()), room.folder / room.home)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PATTERNMILL_"))
    }
    environment = {**kept, **room.environment, **QUICK, "PREFECT_API_KEY": PASSWORDS["PREFECT_API_KEY"]}
    secrets = {"KEY": KEY, "PREFECT_API_KEY": PASSWORDS["PREFECT_API_KEY"]}
    command = [str(COMMAND), "import", str(room.file), "--out", str(room.out)]
    with Onlooker(secrets) as onlooker:
        ended = subprocess.run(
            command, cwd=room.folder, env=environment, capture_output=True, timeout=100, check=False
        )
    assert ended.returncode in {0, 1, 3}, ended.stderr.decode()
    assert (room.folder / room.home / "prefect" / "server.log").exists(), "no server ran"
    assert found_under(room.folder, secrets) == []
    assert found_in("the output", ended.stdout + ended.stderr, secrets) == []
    assert onlooker.hits == set() and onlooker.looks
