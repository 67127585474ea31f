"""What never gets out or in: the key, modules and settings of others, texts that command a terminal."""

import asyncio
import csv
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from openpyxl import Workbook
from prefect.context import refresh_global_settings_context

import tests.double.server
from cli.main import run as command
from patternmill.errors import Refusal
from patternmill.settings import read_settings
from tests.double import Double, Weather, serving
from tests.double.service import Reply
from tests.test_runs import HEADER, row, sheet

ROOT = Path(__file__).parent.parent
KEY, WRONG = "sk-canary-5e1f7c0a9b", "sk-wrong-canary-77d1"
FAULTS = {"reset": 0.05, "lost": 0.05, "failed": 0.05, "half": 0.05, "busy": 0.03}


class Telling(Double):
    """A service that says things in its refusals, in why jobs fail, and in its IDs."""

    said, mark = "", ""

    def _refused(self, field, text):
        return super()._refused(field, f"{text} {self.said}")

    def _begin(self, operation, body):
        job = super()._begin(operation, body)
        job.reason += f" {self.said}" if job.reason else ""
        job.result += "\x1b[31m" if "[held]" in str(body) else self.mark
        return job


def environment(address, folder, key=KEY, **more):
    clean = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("PATTERNMILL_", "PREFECT_", "PYTHON"))
    }
    about = {"STUDIO_URL": address, "API_KEY": key, "HOME": str(folder / "home"), "REQUEST_TIMEOUT": "PT5S"}
    return (
        clean
        | {f"PATTERNMILL_{name}": text for name, text in about.items() if text}
        | {"PREFECT_HOME": str(folder / "none"), "PYTHONPATH": str(ROOT), **more}
    )


#: The installed command; a failed job is asked about once more after a second, not after a minute.
COMMAND = "import patternmill.engine as engine; engine._ERRING = 1.0; from cli.main import main; main()"


def called(*arguments, env, code=COMMAND, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip


def others_know(word, until, found):
    """Note which processes show a word on their command line, and which of our servers in their environment."""
    while not until.wait(0.05):
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                line = (process / "cmdline").read_bytes()
                if word in line or (b".shared" in line and word in (process / "environ").read_bytes()):
                    found.append(line)


@pytest.mark.slow
def test_after_faults_and_a_wrong_key_the_key_is_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tests.double.server, "KEY", KEY)
    monkeypatch.chdir(tmp_path)
    double = Telling(Weather(faults=FAULTS, latency=0.001, pattern_time=0.2, product_time=0.2))
    double.said = f"The key {KEY} may not."
    sheet(*map(row, range(6)), row(7, "herons [refused]"), row(8, "herons [unsafe]"))
    found, over = [], threading.Event()
    watching = threading.Thread(target=others_know, args=(KEY.encode(), over, found))
    watching.start()
    try:
        with serving(double) as address:
            ends = [
                called("import", "spring.csv", env=environment(address, tmp_path, key), cwd=tmp_path)
                for key in (KEY, WRONG)
            ]
    finally:
        over.set()
        watching.join()
    assert [end.returncode for end in ends] == [3, 2]
    assert "The key *** may not" in ends[0].stdout
    assert double.fired.total() > 2
    assert (tmp_path / "home/prefect/prefect.db").stat().st_size > 100_000
    leaks = [
        path for path in tmp_path.rglob("*") if path.is_file()
        and any(key.encode() in path.read_bytes() for key in (KEY, WRONG))
    ]  # fmt: skip
    assert (leaks, found) == ([], [])
    assert not [end for end in ends for key in (KEY, WRONG) if key in end.stdout + end.stderr]


BROKEN = """
import patternmill.engine as engine
async def broken(self, attempt):
    raise RuntimeError(f"broken with {self.client!r} and {self.purchases!r}")
engine.Engine._poll = broken
from cli.main import main
main()
"""


@pytest.mark.slow
def test_the_key_is_in_no_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(tests.double.server, "KEY", KEY)
    monkeypatch.chdir(tmp_path)
    sheet(row(1))
    with serving(Double(Weather(latency=0.001))) as address:
        env = environment(address, tmp_path, PREFECT_API_URL="http://127.0.0.1:9/api")
        end = called("import", "spring.csv", env=env, code=BROKEN, cwd=tmp_path)
        monkeypatch.setenv("PATTERNMILL_API_KEY", KEY)
        settings = read_settings()
    assert "broken with" in end.stdout + end.stderr
    assert end.returncode == 1
    assert KEY not in end.stdout + end.stderr + repr(settings) + str(settings.model_dump())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_the_env_file_of_another_user_is_not_read(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PATTERNMILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("PATTERNMILL_STUDIO_URL=https://evil.example/v1\nPATTERNMILL_API_KEY=k\n")
    assert read_settings().studio_url
    os.chown(".env", 12345, 12345)
    with pytest.raises(Refusal, match="another user"):
        read_settings()
    Path(".env").write_text("NODE_ENV=development\n")
    os.chown(".env", 12345, 12345)
    assert not read_settings().studio_url


OURS = [f"{name}/__init__.py" for name in ("patternmill", "cli", "tasks", "flows", "studio")]
LIBRARIES = "json httpx sqlite3 pandas yaml uvicorn sitecustomize python_calamine prefect"
MODULES = [*OURS, *(f"{name}.py" for name in LIBRARIES.split())]


def of_strangers(folder, of_libraries=True):
    """Write modules named like ours, or like libraries' too, each of which leaves a trace when it is imported."""
    for name in MODULES if of_libraries else OURS:
        (folder / name).parent.mkdir(exist_ok=True)
        trace = folder / f"imported-{name.replace('/', '-')}"
        (folder / name).write_text(f"open({str(trace)!r}, 'w').close()\nraise ImportError('a stranger')\n")


@pytest.mark.slow
def test_the_installed_command_and_what_it_starts_import_nothing_of_the_working_folder(tmp_path):
    book = Workbook()
    header = ("sku", "prompt", "category", "option:size", "option:fabric")
    for cells in (header, ("A-1", "herons", "Cushion", "50x50", "linen")):
        book.active.append(cells)
    book.save(tmp_path / "spring.xlsx")
    of_strangers(tmp_path)
    env = environment("", tmp_path, "")
    del env["PYTHONPATH"]
    done = subprocess.run(
        [Path(sys.executable).parent / "patternmill", "import", "spring.xlsx"], env=env, cwd=tmp_path,
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert list(tmp_path.glob("imported-*")) == []
    assert "In the Prefect UI" in done.stderr, done.stderr
    assert done.returncode in (0, 3), done.stdout


# --- texts of others

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e<script>alert(1)</script> [x](https://evil.example/a) *b*"
COMMANDING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def evil(tmp_path, monkeypatch):
    double = Telling(Weather(latency=0.001, pattern_time=0.1, product_time=0.1))
    double.said, double.mark = EVIL, "-<script>alert(1)</script>"
    with serving(double) as address:
        monkeypatch.chdir(tmp_path)
        for name, text in environment(address, tmp_path, tests.double.server.KEY).items():
            monkeypatch.setenv(name, text)
        monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
        with Path("spring.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([
                (*HEADER, f"remark {EVIL}"), (*row(1, f"herons {EVIL}"), EVIL), (*row(2, f"waves [unsafe] {EVIL}"), ""),
                (*row(3, f"moor [refused] {EVIL}"), ""), (*row(4, sku=f"A{EVIL}"), ""), (*row(5, size=EVIL), ""),
                ("A-6", "reeds", f"Cat{EVIL}", "m", "", ""), (*row(7, label=EVIL), ""),
                (*row(8, f"reeds [held] {EVIL}"), ""),
            ])  # fmt: skip
        yield double
    monkeypatch.undo()
    refresh_global_settings_context()  # a command in this process had Prefect read the address that leads nowhere


def shown(capfd, *arguments):
    command(list(arguments))
    out, err = capfd.readouterr()
    return COMMANDING.findall(re.sub(r"^\ufeff", "", out + err).replace("\r\n", "\n")), out + err


@pytest.mark.slow
def test_texts_of_others_do_not_command_the_terminal_and_are_text_in_the_gallery(evil, capfd):
    for arguments in (["check", "spring.csv"], ["import", "spring.csv"], ["status"]):
        found, said = shown(capfd, *arguments)
        assert (found, "spring" in said) == ([], True), arguments
    page = Path("results/spring/latest/gallery.html").read_text("utf-8")
    assert "evil.example" in page
    (data,) = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)
    assert "evil.example" in data
    assert "<" not in data
    assert "evil.example" not in page.replace(data, "")


@pytest.mark.parametrize("arguments", [["explain", "A-1"], ["settle"]])
def test_what_is_looked_up_does_not_command_the_terminal(evil, capfd, arguments):
    shown(capfd, "import", "spring.csv")
    found, said = shown(capfd, *arguments)
    assert "pattern" in said
    assert found == []


def test_an_offer_does_not_command_the_terminal(evil, capfd, monkeypatch):
    category = {
        "categoryId": "cat_tote",
        "name": f"Tote{EVIL}",
        "options": [{"name": EVIL, "values": [EVIL]}],
    }

    async def arrive(operation, body):
        return Reply(body={"categories": [category]} if operation == "categories/list" else category)

    monkeypatch.setattr(evil, "_arrive", arrive)
    found, said = shown(capfd, "offer", "cat_tote")
    assert "cat_tote" in said
    assert found == []


def test_texts_of_others_are_text_in_the_artifacts_of_a_run(evil, server, monkeypatch):
    from prefect import get_client
    from prefect.client.schemas.filters import ArtifactFilter

    from flows.bulk_import import bulk_import

    monkeypatch.setenv("PREFECT_API_URL", server.address)
    refresh_global_settings_context()

    async def artifacts():
        state = await bulk_import(file="spring.csv", return_state=True)
        of_run = {"flow_run_id": {"any_": [state.state_details.flow_run_id]}}
        async with get_client() as client:
            found = await client.read_artifacts(artifact_filter=ArtifactFilter.model_validate(of_run))
        return state, "\n".join(f"{one.description}\n{one.data}" for one in found)

    state, text = asyncio.run(artifacts())
    assert "evil" in text
    plain = re.sub(r"`[^`\n]*`", "", text.replace(r"\`", ""))
    assert re.findall(r"(?<!\\)[<\[*]|https?://|www\.", plain) == []
    assert COMMANDING.findall(text + state.message) == []
