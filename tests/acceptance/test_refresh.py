"""The refresh as a person runs it: the command over an address, night after night, and what the catalog has then."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from prefect_host.own_server import OwnServer
from studio.store import read_record
from tests.acceptance.harness import COMMAND, clean_environment
from tests.acceptance.prefect_servers import run_process, settle_at
from tests.unit.service.sites import Site, answer, site

HEADER = "sku,prompt,category,option:size,option:fabric\n"
A1 = "A-1,Blue herons,Cushion,50x50,linen\n"
A2 = "A-2,Lemon branches,Cushion,40x40,cotton\n"
A3 = "A-3,Lemon branches,Cushion,60x40,velvet\n"


@pytest.fixture
def shop() -> Iterator[Site]:
    with site() as served:
        yield served


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_process([str(COMMAND), *arguments], cwd=folder, env=clean_environment(), timeout=240)


def test_refreshes_of_an_address(tmp_path: Path, shop: Site, joint_server: OwnServer) -> None:
    """The source is made, edited and emptied: exit codes, calls and changes.csv; its password is in no file."""
    settle_at(joint_server, tmp_path / ".patternmill")
    address = shop.at("ann:goldfinch@127.0.0.1")

    def offer(*rows: str) -> None:
        shop.pages["/spring.csv"] = answer(body="".join((HEADER, *rows)).encode())

    refresh = partial(run, tmp_path, "refresh", address, "--catalog", "spring")
    offer(A1, A2, A3)
    first = refresh()
    assert first.returncode == 0, first.stderr
    assert "3 added" in first.stdout
    creates = _creates(tmp_path)

    offer(A3, A1.replace("linen", "velvet"))
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

    offer()
    emptied = refresh()
    assert emptied.returncode == 3
    assert "The source is empty" in emptied.stdout
    assert "2 withheld" in emptied.stdout
    assert _creates(tmp_path) == creates + 1
    for file in filter(Path.is_file, (*tmp_path.rglob("*"), *joint_server.directory.rglob("*"))):
        assert b"goldfinch" not in file.read_bytes(), file


def _creates(folder: Path) -> int:
    return len(read_record(folder / ".patternmill" / "studio" / "studio.db"))
