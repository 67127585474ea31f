"""Files that change, are none, or would take hours or all memory are refused soon, with a remedy."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from patternmill.errors import InputRefused
from patternmill.reading import FileCode, Reading, stable_bytes
from patternmill.runs.input import read_source
from patternmill.tables.catalog import Catalog, read_catalog

HEAD = b"sku,prompt,category\n"
ROW = b"A-1,blue herons,Cushion\n"


def catalog_at(path: Path, reading: Reading | None = None) -> Catalog:
    reading = reading or Reading("catalog.csv")
    return read_catalog(read_source(str(path), reading), "catalog.csv", limits=reading)


def refused(path: Path) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        catalog_at(path)
    return caught.value


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The message names the folder that was searched, and for an example its place in the checkout."""
    fault = refused(tmp_path / "nowhere.csv")
    assert fault.code == FileCode.FILE_MISSING
    assert f"nowhere.csv in {tmp_path}. Check" in str(fault)
    example = Path(__file__).resolve().parents[3] / "inputs" / "with_mistakes.csv"
    assert f"The example is {example}." in str(refused(tmp_path / "with_mistakes.csv"))


def test_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    """What can be read only once cannot be checked for changes."""
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path).code == refused(tmp_path / "pipe").code == FileCode.NOT_A_FILE


@pytest.mark.parametrize("change", ["append", "rewrite", "replace", "touch"])
def test_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: str) -> None:
    """Growing, rewriting in place with the old time, replacing and touching are all seen."""
    path = tmp_path / "spring.csv"
    path.write_bytes(HEAD + ROW)
    (tmp_path / "new").write_bytes(HEAD + ROW)
    old = path.stat().st_mtime_ns
    changes = {
        "append": lambda: path.write_bytes(HEAD + ROW + ROW),
        "rewrite": lambda: (path.write_bytes(HEAD + ROW.swapcase()), os.utime(path, ns=(old, old))),
        "replace": lambda: (tmp_path / "new").replace(path),
        "touch": lambda: os.utime(path, ns=(old, old + 1_000_000_000)),
    }

    def read_and_change(this: Path) -> bytes:
        raw = this.read_bytes()
        changes[change]()
        return raw

    with pytest.raises(InputRefused) as caught:
        stable_bytes(path, read=read_and_change)
    assert caught.value.code == FileCode.FILE_CHANGED


def test_hole_of_a_file_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "spring.csv"
    with file.open("wb") as hole:
        hole.truncate(200 << 30)
    assert "256 MiB" in str(refused(file))


def test_catalog_at_the_limits_is_read(tmp_path: Path) -> None:
    """As many rows, columns and characters as there may be; one more of each is refused."""
    file = tmp_path / "spring.csv"

    def read(content: bytes) -> Catalog:
        file.write_bytes(content)
        return catalog_at(file, Reading("catalog.csv", rows=3, columns=4, size=110))

    wide = HEAD[:-1] + b",x\n"
    assert len(read(wide + ROW * 3).sheet.rows) == 3
    assert read(wide + ROW + b"\n\n").sheet.blank_rows == 2
    for more in (wide + ROW * 4, wide + ROW + b"\n\n\n", wide[:-1] + b",\n" + ROW, wide + b"x" * 90):
        with pytest.raises(InputRefused) as caught:
            read(more)
        assert caught.value.code == "file_too_large" and caught.value.remedy, more


def test_reading_has_a_deadline(tmp_path: Path) -> None:
    """A time that is over ends the reading, however far it has come."""
    file = tmp_path / "spring.csv"
    file.write_bytes(HEAD + ROW * 10_000)
    late = Reading("catalog.csv", time=timedelta())
    with pytest.raises(InputRefused, match="not read within"):
        catalog_at(file, late)
    with pytest.raises(InputRefused, match="not read within"):
        read_catalog(file.read_bytes(), "catalog.csv", limits=late)


def test_file_that_is_no_catalog_is_not_quoted(tmp_path: Path) -> None:
    """Whoever starts a deployment's run may not be allowed to read it."""
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0,canary,/root\ndaemon\n")
    fault = refused(file)
    assert "canary" not in str(fault) and "3 cells" in str(fault)
