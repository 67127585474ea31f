"""The refresh as a person runs it: the command over an address, night after night, and what the catalog has then."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prefect_host.own_server import OwnServer
from studio.store import read_record
from tests.acceptance.prefect_servers import run_process, settle_at

PATTERNMILL = Path(sys.executable).with_name("patternmill")
HEADER = "sku,prompt,category,option:size,option:fabric\n"
A1 = "A-1,Blue herons,Cushion,50x50,linen\n"
A2 = "A-2,Lemon branches,Cushion,40x40,cotton\n"
A3 = "A-3,Lemon branches,Cushion,60x40,velvet\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """No access log."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The address of a folder `sheets`."""
    (tmp_path / "sheets").mkdir()
    handler = partial(_Quiet, directory=str(tmp_path / "sheets"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PATTERNMILL_", "PREFECT_"))
    }
    return run_process([str(PATTERNMILL), *arguments], cwd=folder, env=clean, timeout=240)


def test_refreshes_of_an_address(tmp_path: Path, site: str, joint_server: OwnServer) -> None:
    """Made, edited, emptied: exit codes, calls, changes.csv; and the address's password is in no file."""
    settle_at(joint_server, tmp_path / ".patternmill")
    sheet = tmp_path / "sheets" / "spring.csv"
    address = site.replace("//", "//ann:goldfinch@") + "/spring.csv"
    refresh = partial(run, tmp_path, "refresh", address, "--catalog", "spring")
    sheet.write_text(HEADER + A1 + A2 + A3)
    first = refresh()
    assert first.returncode == 0, first.stderr
    assert "3 added" in first.stdout
    creates = _creates(tmp_path)

    sheet.write_text(HEADER + A3 + A1.replace("linen", "velvet"))
    looked = refresh("--plan-only")
    assert "1 changed, 1 unchanged, 1 retired" in looked.stdout
    assert _creates(tmp_path) == creates
    second = refresh()
    assert second.returncode == 0, second.stderr
    assert _creates(tmp_path) == creates + 1
    text = (tmp_path / "results/spring/latest/changes.csv").read_text("utf-8-sig")
    changes = list(csv.DictReader(io.StringIO(text)))
    assert [(line["sku"], line["change"], line["fields"]) for line in changes] == [
        ("A-1", "changed", "option:fabric"),
        ("A-2", "removed", ""),
    ]

    sheet.write_text(HEADER)
    emptied = refresh()
    assert emptied.returncode == 3
    assert "The source is empty" in emptied.stdout
    assert "2 withheld" in emptied.stdout
    assert _creates(tmp_path) == creates + 1
    for file in filter(Path.is_file, (*tmp_path.rglob("*"), *joint_server.directory.rglob("*"))):
        assert b"goldfinch" not in file.read_bytes(), file


def _creates(folder: Path) -> int:
    return len(read_record(folder / ".patternmill" / "studio" / "studio.db"))
