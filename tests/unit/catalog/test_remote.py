"""Sources and places that are not files here: whole, steady, and without their secrets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from patternmill.catalog import remote
from patternmill.errors import ConfigurationError, InputRefused, PatternmillError
from patternmill.sheets import sheet_reader

CSV = b"sku,prompt,category\nA-1,blue herons,Cushion\n"


@pytest.fixture
def bucket() -> Iterator[str]:
    """A place in memory."""
    name = f"memory://{uuid.uuid4().hex}"
    yield name
    fsspec.filesystem("memory").rm(name, recursive=True)


def put(address: str, content: bytes) -> str:
    fsspec.filesystem("memory").pipe_file(address, content)
    return address


def test_address_is_read_as_a_file_is(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "spring.csv").write_bytes(CSV)
    there = sheet_reader.read_source(put(f"{bucket}/spring.csv", CSV))
    here = sheet_reader.read_source(str(tmp_path / "spring.csv"))
    assert (there.sha256, there.name, there.records) == (here.sha256, here.name, here.records)
    assert there.raw == CSV


class Restless(MemoryFileSystem):  # type: ignore[misc]
    """Has another content for each reader, or another mark."""

    protocol = "restless"
    cachable = False
    reads = 0

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        Restless.reads += 1
        size = len(CSV) + 1
        return {"size": size, "type": "file", "ETag": str(Restless.reads) if "mark" in path else "same"}

    def cat_file(self, path: str, *_: Any, **__: Any) -> bytes:
        Restless.reads += 1
        return CSV + (str(Restless.reads % 10).encode() if "content" in path else b"\n")


@pytest.mark.parametrize("name", ["mark", "content"])
def test_source_that_changes_while_it_is_read_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two readings that differ, or an ETag or time that does."""
    fsspec.register_implementation("restless", Restless, clobber=True)
    monkeypatch.setattr(remote, "_STORES", {"restless"})
    with pytest.raises(InputRefused) as refused:
        remote.source_bytes(f"restless://{name}/spring.csv")
    assert refused.value.code == "file_changed"
    assert remote.source_bytes("restless://steady/spring.csv") == CSV + b"\n"


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("memory://nowhere/spring.csv", InputRefused),
        ("nonsense://somewhere/spring.csv", ConfigurationError),
        ("ftp://somewhere/spring.csv", ConfigurationError),
        ("FILE:///etc/passwd", ConfigurationError),
        ("local:///etc/passwd", ConfigurationError),
        ("data://text/plain,sku", ConfigurationError),
        ("s3://bucket/spring.csv", ConfigurationError),
        ("zip://a.csv::https://user:secret@example.com/a.zip", ConfigurationError),
    ],
)
def test_errors_of_addresses_have_no_secrets(address: str, refusal: type[PatternmillError]) -> None:
    """Every failure is a refusal, and no secret of the address is in it."""
    with pytest.raises(refusal) as refused:
        remote.source_bytes(address)
    error = refused.value
    assert "secret" not in f"{error} {error.__cause__}"
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    ("address", "shown", "name"),
    [
        (
            "https://user:pw@example.com:8443/a/spring.csv?sig=x#y",
            "https://example.com:8443/a/spring.csv",
            "spring.csv",
        ),
        ("s3://bucket/spring%20sheet.csv", "s3://bucket/spring%20sheet.csv", "spring sheet.csv"),
        ("inputs/spring.csv", "inputs/spring.csv", "spring.csv"),
        ("file?name@x.csv", "file?name@x.csv", "file?name@x.csv"),
    ],
)
def test_address_is_shown_without_secrets(address: str, shown: str, name: str) -> None:
    """User, password, query and fragment stay out of what is shown; a path is shown as it is."""
    assert remote.shown_address(address) == shown
    assert remote.source_name(address) == name
