"""A whole import, step by step, and its own files sent in again: they cost nothing for what is there."""

from __future__ import annotations

import asyncio
import csv
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from patternmill.errors import ConfigurationError, Overlap, PatternmillError
from patternmill.ledger.ledger import open_ledger
from patternmill.runs.input import read_input
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import catalog_name, run_spec
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome, Stage
from tests.hostile.in_process import InProcessApi, Service

from .workshop import Workshop, rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))


@dataclass
class Imports:
    """Imports files into one home, each as the command would."""

    shop: Workshop
    folder: Path

    def __call__(self, source: Path, out: str, **changes: Any) -> Run:
        spec = replace(self.shop.spec(), source=str(source), out=self.folder / out, **changes)

        async def main() -> Run:
            async with Run(spec) as work:
                await work.run_through()
            return work

        return asyncio.run(asyncio.wait_for(main(), 30))

    def file(self, text: str, name: str = "spring.csv") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def imports(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imports:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(shop.service))
    return Imports(shop, tmp_path)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_results_are_copied_to_a_store(imports: Imports, tmp_path: Path) -> None:
    """To CATALOG/RUN, the manifest last, beside what is there: nothing is deleted. The folder keeps them."""
    store = fsspec.filesystem("memory")
    store.pipe_file("/shop/mill/spring/kept.txt", b"kept")
    work = imports(imports.file(FOUR), "out", copy_below="memory://shop/mill")
    there = f"/shop/mill/spring/{work.record.run_id}"
    copied = {path.rpartition("/")[2]: store.cat_file(path) for path in store.ls(there, detail=False)}
    assert copied == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert work.published.copied_to == f"memory:/{there}"
    assert store.cat_file("/shop/mill/spring/kept.txt") == b"kept"
    made = {name: store.info(f"{there}/{name}")["created"] for name in copied}
    assert max(made, key=made.__getitem__) == "manifest.json"


def test_results_that_cannot_be_copied_are_not_lost(
    imports: Imports, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended, its files are there, and the error says so, without the store's own words."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("key canary may not write")

    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)
    with pytest.raises(PatternmillError) as refused:
        imports(imports.file(FOUR), "out", copy_below="memory://shop/mill")
    assert refused.value.code == "results_not_copied" and "canary" not in str(refused.value)
    assert f"PermissionError. Nothing is lost: they are in {tmp_path / 'out'}." in str(refused.value)
    assert (tmp_path / "out/manifest.json").is_file()
    with open_ledger(imports.shop.settings) as ledger:
        assert [record.outcome for record in ledger.runs.find()] == [Outcome.COMPLETED]


async def test_catalog_with_a_run_is_skipped(
    imports: Imports, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run is on record as an overlap, and buys nothing."""
    spec = replace(imports.shop.spec(), source=str(imports.file(FOUR)))
    first, second = Run(spec), Run(spec)
    for work in (first, second):
        await work.read()
        await work.check()
    await first.begin()
    with pytest.raises(Overlap, match=first.record.run_id):
        await second.begin()
    assert service.creates == []
    await first.end()
    for work in (first, second):
        await work.__aexit__(None, None, None)
    with imports.shop.ledger() as ledger:
        assert Outcome.SKIPPED_OVERLAP in {record.outcome for record in ledger.runs.find()}


def test_preview_writes_nothing(imports: Imports, service: Service) -> None:
    """Not even a ledger; and it is the plan that the run would begin with."""

    async def main() -> tuple[int, int]:
        async with Run(replace(imports.shop.spec(), source=str(imports.file(FOUR)))) as work:
            await work.read()
            await work.check()
            bought = (await work.preview()).plan.purchases()
            return bought[Stage.PATTERN], bought[Stage.PRODUCT]

    assert asyncio.run(main()) == (3, 4)
    assert not imports.shop.home.exists()
    imports(imports.file(FOUR), "out")
    assert asyncio.run(main()) == (0, 0)


def test_file_is_read_once(imports: Imports, tmp_path: Path) -> None:
    """What was read before the run begins is made and kept, whatever happens to the file meanwhile."""
    source = imports.file(FOUR)
    file = read_input(replace(imports.shop.spec(), source=str(source)))
    source.write_text(rows(("X-1", "foxes")), encoding="utf-8")
    work = imports(source, "out", file=file)
    assert len(table(tmp_path / "out/results.csv")) == 4
    with imports.shop.ledger() as ledger:
        assert ledger.runs.input_of(work.ended.record) == FOUR.encode()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Spring Catalog 2027.csv", "spring-catalog-2027"),
        ("Весна 2027.csv", "vesna-2027"),
        ("X" * 99, "x" * 63),
        ("—…—.csv", ""),
    ],
)
def test_catalog_is_named_after_its_file(tmp_path: Path, file: str, name: str) -> None:
    """In lower case and dashes, in the letters of the alphabet: no two files become one for a letter left out."""
    with nullcontext() if name else pytest.raises(ConfigurationError, match="--catalog"):
        assert catalog_name(tmp_path / file) == name
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        run_spec(ImportRequest(file=tmp_path / "spring.csv", catalog="../x"))
