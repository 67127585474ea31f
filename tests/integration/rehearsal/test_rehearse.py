"""Rehearsals: clean for this program, not clean for a broken one, and far from the person's own service and ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from cli.commands.rehearse import write_certificate
from cli.file_rehearsal import FileRehearsal
from cli.killed_imports import IMPORT_COMMAND
from patternmill.results.certificate import CERTIFICATE_JSON, CERTIFICATE_PAGE, Certificate
from patternmill.runs.input_mapping import read_input
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import import_spec

ROOT = Path(__file__).resolve().parents[3]
KEY = "sk_canary_of_the_person"
#: A service that nobody serves: whoever asks it fails.
NOBODY = "http://127.0.0.1:9/v1"
_GOODS = ("Cushion,50x50,linen,,", "Mug,11oz,,matte,", "Poster,A3,,,satin")


def catalog(folder: Path, rows: int, *more: str, name: str = "spring.csv") -> Path:
    """Rows of which two have one prompt, and the first two differ in nothing but their sku."""
    lines = [f"S-{number},herons {number // 2},{_GOODS[number // 2 % 3]}" for number in range(rows)]
    header = "sku,prompt,category,option:size,option:fabric,option:finish,option:paper"
    path = folder / name
    path.write_text("\n".join((header, *lines, *more)) + "\n", encoding="utf-8")
    return path


def broken(bug: str) -> Sequence[str]:
    """An import with a bug put into it on purpose."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.acceptance import seeded_bugs; "
        f"seeded_bugs.SEEDED[{bug!r}](); from cli.rehearsed_import import main; sys.exit(main(sys.argv[1:]))"
    )
    return (sys.executable, "-c", program)


Rehearse = Callable[..., Certificate]


@pytest.fixture
def rehearse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearse:
    monkeypatch.chdir(tmp_path)

    def run(
        file: Path,
        *,
        kills: int,
        seed: int = 3,
        rows: int | None = None,
        import_command: Sequence[str] = IMPORT_COMMAND,
    ) -> Certificate:
        spec = import_spec(ImportRequest(file=file))
        rehearsal = FileRehearsal(
            spec,
            read_input(spec),
            kills=kills,
            rows=rows,
            seed=seed,
            report=print,
            import_command=import_command,
        )
        return rehearsal.run()

    return run


def test_rehearsal_is_clean_and_leaves_the_persons_own_alone(
    rehearse: Rehearse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No import knows the service, key, home and limits that are set; a category of the service has a stand-in."""
    home = tmp_path / "home"
    for name, value in {
        "STUDIO_URL": NOBODY,
        "API_KEY": KEY,
        "HOME": str(home),
        "MAX_IN_FLIGHT": "7",
        "PATTERN_PRICE": "40",
        "PRODUCT_PRICE": "10",
        "DAY_BUDGET": "1",
        "APPROVE_ABOVE_ITEMS": "1",
    }.items():
        monkeypatch.setenv(f"PATTERNMILL_{name}", value)
    (tmp_path / ".env").write_text("PATTERNMILL_LEDGER_URL=postgresql://nobody@127.0.0.1:9/none\n")
    seen = tmp_path / "seen.jsonl"
    noting = (
        f"import json, os, sys; open({str(seen)!r}, 'a').write(json.dumps(dict(os.environ)) + '\\n'); "
        "from cli.rehearsed_import import main; sys.exit(main(sys.argv[1:]))"
    )
    file = catalog(tmp_path, 18, "T-1,ferns,Surfboard,,,,", "T-2,,Mug,11oz,,matte,")
    monkeypatch.setenv("PATTERNMILL_LEDGER_URL", f"sqlite:///{home}/none.sqlite3")
    certificate = rehearse(file, kills=2, import_command=(sys.executable, "-c", noting))
    assert certificate.findings == ()
    assert (certificate.bought_twice, certificate.lost) == (0, 0)
    assert certificate.rows == {"succeeded": 19, "refused": 1}
    assert [(row.line, row.code) for row in certificate.refused] == [(21, "empty_prompt")]
    assert certificate.file.stand_ins == 1
    assert len(certificate.kills.imports) == 2 and len(certificate.kills.studio) == 1
    assert sum(fault.fired for fault in certificate.faults) >= 5
    assert certificate.calls["products/create"] >= 19
    bought = certificate.bought
    assert bought.amount == 40 * bought.patterns + 10 * bought.products
    imports = [json.loads(line) for line in seen.read_text().splitlines()]
    assert len(imports) == certificate.kills.starts
    for environment in imports:
        assert environment["PATTERNMILL_STUDIO_URL"] != NOBODY
        assert environment["PATTERNMILL_MAX_IN_FLIGHT"] == "7"
        assert {"PATTERNMILL_DAY_BUDGET", "PATTERNMILL_LEDGER_URL"} & set(environment) == set()
        assert KEY not in environment.values()
    assert os.environ["PATTERNMILL_API_KEY"] == KEY
    write_certificate(certificate, tmp_path / "out")
    assert KEY not in (tmp_path / "out" / CERTIFICATE_PAGE).read_text("utf-8")
    assert {path.name for path in tmp_path.iterdir()} <= {"home", ".env", "seen.jsonl", "spring.csv", "out"}
    assert not (tmp_path / "results").exists()


def test_broken_program_is_not_clean(rehearse: Rehearse, tmp_path: Path) -> None:
    """Request IDs that are not derived from what is bought: lost answers are paid for again."""
    certificate = rehearse(catalog(tmp_path, 20), kills=0, import_command=broken("new_id_per_try"))
    assert not certificate.is_clean
    assert certificate.bought_twice > 0
    write_certificate(certificate, tmp_path)
    assert json.loads((tmp_path / CERTIFICATE_JSON).read_text("utf-8"))["clean"] is False
    assert "Not clean" in (tmp_path / CERTIFICATE_PAGE).read_text("utf-8")


@pytest.mark.soak
@pytest.mark.parametrize("bug", ["post_before_intent", "result_not_kept", "next_attempt_in_doubt"])
def test_other_broken_programs_are_not_clean(rehearse: Rehearse, tmp_path: Path, bug: str) -> None:
    certificate = rehearse(catalog(tmp_path, 60), kills=8, import_command=broken(bug))
    assert not certificate.is_clean


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_larger_rehearsals_are_clean(rehearse: Rehearse, tmp_path: Path, seed: int) -> None:
    """300 rows of 1,000, with twenty kills, fewer where the file is done before."""
    certificate = rehearse(catalog(tmp_path, 1000), kills=20, seed=seed, rows=300)
    assert certificate.findings == ()
    assert certificate.file.rehearsed == 300
    assert len(certificate.kills.imports) >= 12


def studio_and_import(rehearsal: psutil.Process) -> list[psutil.Process]:
    """Both: after a kill the next one takes a moment."""
    until = time.monotonic() + 20
    while len(children := rehearsal.children(recursive=True)) < 2:
        assert time.monotonic() < until, "there are no two processes"
        time.sleep(0.01)
    return children


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.soak)])
def test_interrupted_rehearsal_leaves_nothing_running(tmp_path: Path, how: signal.Signals) -> None:
    """Neither its studio nor its imports, and after Ctrl-C no folder either."""
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [
            Path(sys.executable).with_name("patternmill"),
            "rehearse",
            str(catalog(tmp_path, 200)),
            "--kills",
            "9",
        ],
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp"), "PATTERNMILL_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Rehearsing 200 rows")
    assert "killed" in process.stdout.readline()
    children = studio_and_import(psutil.Process(process.pid))
    process.send_signal(how)
    process.communicate(timeout=20)
    assert process.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)
    until = time.monotonic() + 10
    while any(child.is_running() for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert [child for child in children if child.is_running()] == []
    if how is signal.SIGINT:
        assert list((tmp_path / "tmp").iterdir()) == []
        assert not (tmp_path / CERTIFICATE_JSON).exists()
