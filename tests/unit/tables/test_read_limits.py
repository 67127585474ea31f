"""Bombs: small or strange files that would take hours or all memory are refused soon, with a remedy."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from patternmill.errors import InputRefused
from patternmill.reading import Reading
from patternmill.runs.input import read_source
from patternmill.tables.catalog import Catalog

pytestmark = pytest.mark.slow

HEAD = b"sku,prompt,category\n"
ROW = b"A-1,blue herons,Cushion\n"
CELL = b'A-1,"'
#: Made when they are needed.
BOMBS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "blank lines": (lambda: HEAD + b"\n" * 1_100_000 + ROW, "file_too_large", "Delete the blank rows"),
    "columns in a shorter header": (lambda: HEAD[:-1] + b"," * 20_000 + b"\n", "file_too_large", "columns"),
    "columns of another kind of file": (
        lambda: b",".join(b"c%d" % i for i in range(200_000)),
        "file_too_large",
        "",
    ),
    "a quote never closed": (lambda: HEAD + CELL + b"x\n" * 2_500_000, "cell_too_long", "not closed"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bomb_is_refused_quickly(bomb: str, tmp_path: Path) -> None:
    """Each in seconds, with what is wrong and what to do."""
    make, code, remedy = BOMBS[bomb]
    content = make()
    file = tmp_path / "spring.csv"
    file.write_bytes(content)
    begun = time.process_time()
    with pytest.raises(InputRefused) as refused:
        read_source(str(file))
    assert time.process_time() - begun < 10
    assert refused.value.code == code
    assert remedy in str(refused.value)


def test_hole_of_a_file_is_not_even_read(tmp_path: Path) -> None:
    file = tmp_path / "spring.csv"
    with file.open("wb") as hole:
        hole.truncate(200 << 30)
    with pytest.raises(InputRefused, match="256 MiB"):
        read_source(str(file))


def test_catalog_at_the_limits_is_read(tmp_path: Path) -> None:
    """As many rows, columns and characters as there may be; one more of each is refused."""
    reading = Reading("catalog.csv", rows=3, columns=4, size=110)
    file = tmp_path / "spring.csv"

    def read(content: bytes) -> Catalog:
        file.write_bytes(content)
        return read_source(str(file), reading=reading)

    wide = HEAD[:-1] + b",x\n"
    assert len(read(wide + ROW * 3).sheet.rows) == 3
    assert read(wide + ROW + b"\n\n").sheet.blank_rows == 2
    for more in (wide + ROW * 4, wide + ROW + b"\n\n\n", wide[:-1] + b",\n" + ROW, wide + b"x" * 90):
        with pytest.raises(InputRefused) as refused:
            read(more)
        assert refused.value.code == "file_too_large", more


def test_reading_has_a_deadline(tmp_path: Path) -> None:
    """A file that takes long to understand."""
    reading = Reading("catalog.csv", time=timedelta(seconds=0.2))
    file = tmp_path / "spring.csv"
    file.write_bytes(HEAD + ROW * 1_000_000)
    begun = time.process_time()
    with pytest.raises(InputRefused) as refused:
        read_source(str(file), reading=reading)
    assert refused.value.code == "file_too_slow"
    assert time.process_time() - begun < 10


def test_file_that_is_no_catalog_is_not_quoted(tmp_path: Path) -> None:
    """Whoever starts a deployment's run may not be allowed to read it."""
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0,canary,/root\ndaemon\n")
    with pytest.raises(InputRefused) as refused:
        read_source(str(file))
    assert "canary" not in str(refused.value) and "3 cells" in str(refused.value)
