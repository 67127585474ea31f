"""A whole import, step by step, and its own files sent in again: they cost nothing for what is there."""

from __future__ import annotations

import asyncio
import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from patternmill.catalog.offer import Category, Offer, Option
from patternmill.errors import ConfigurationError, Overlap
from patternmill.runs.input_mapping import read_input
from patternmill.runs.pipeline import Pipeline
from patternmill.runs.request import ImportRequest
from patternmill.runs.spec import catalog_name, run_spec
from patternmill.service.studio_api import StudioApi
from patternmill.states import Outcome, RowStatus, Stage

from .fake_studio import FakeStudioApi, Service, failed
from .workshop import Workshop, rows

FOUR = rows(("H-1", "herons"), ("H-2", "herons"), ("F-1", "ferns"), ("O-1", "owls"))
UNREADABLE = Offer(None, note="The categories could not be read.")


@dataclass
class Imports:
    """Imports files into one home, each as the command would."""

    shop: Workshop
    folder: Path

    def __call__(self, source: Path, out: str, **changes: Any) -> Pipeline:
        spec = replace(self.shop.spec(), source=source, out=self.folder / out, **changes)

        async def main() -> Pipeline:
            async with Pipeline(spec) as work:
                await work.run_through()
            return work

        return asyncio.run(asyncio.wait_for(main(), 30))

    def file(self, text: str, name: str = "spring.csv") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def imports(shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imports:
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: FakeStudioApi(shop.service))
    return Imports(shop, tmp_path)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_import_ends_with_its_files(imports: Imports, service: Service, tmp_path: Path) -> None:
    """The same rows, with their products and failures."""
    service.on_follow["ferns"] = [failed(), failed()]
    work = imports(imports.file(FOUR), "out")
    assert work.ended.outcome is Outcome.COMPLETED_WITH_FAILURES
    assert [
        (row["sku"], row["status"], row["product_id"]) for row in table(tmp_path / "out/results.csv")
    ] == [
        ("H-1", "succeeded", "product-of-H-1"),
        ("H-2", "succeeded", "product-of-H-2"),
        ("F-1", "failed", ""),
        ("O-1", "succeeded", "product-of-O-1"),
    ]
    assert [row["sku"] for row in table(tmp_path / "out/failures.csv")] == ["F-1"]


def test_unreadable_offer_changes_no_identity(imports: Imports, service: Service) -> None:
    """The last one that was read is used, with a message; nothing is bought again."""
    source = imports.file(FOUR)
    imports(source, "out-0")
    bought = list(service.bought)
    service.offer = UNREADABLE
    work = imports(source, "out-1")
    assert service.bought == bought
    assert any("those read on" in note for note in work.checked.notes)


def remembered(imports: Imports) -> Offer:
    with imports.shop.ledger() as ledger:
        last = ledger.catalogs.last_offer("staging")
    assert last is not None
    return last


def test_unreadable_list_leaves_the_remembered_offer(imports: Imports, service: Service) -> None:
    """The last one that was read, whatever was remembered before it."""
    imports(imports.file(FOUR), "out-0")
    service.offer = Offer((Category("cat_other", "Other", None),), None)
    imports(imports.file("sku,prompt,category,option:name\nX-1,foxes,Other,X-1\n", "other.csv"), "out-1")
    assert [one.name for one in remembered(imports).categories or ()] == ["Other"]
    before = remembered(imports).categories
    service.offer = UNREADABLE
    imports(imports.file(FOUR), "out-2")
    assert remembered(imports).categories == before


def test_unreadable_options_change_no_identity(imports: Imports, service: Service) -> None:
    """The offered spelling still counts, whatever the file's; nothing is bought again."""
    names = Option("name", ("h-1", "h-2", "f-1", "o-1"))
    service.offer = Offer((Category("cat_tote", "Tote", (names,)),), None)
    source = imports.file(FOUR)
    imports(source, "out-0")
    bought = list(service.bought)
    service.offer = Offer((Category("cat_tote", "Tote", None),), "Options were not checked for Tote.")
    work = imports(source, "out-1")
    assert service.bought == bought
    assert work.ended.rows[RowStatus.SUCCEEDED] == 4
    assert any("The options of Tote" in note for note in work.checked.notes)
    assert remembered(imports).categories[0].checkable  # type: ignore[index]


def test_category_missing_in_a_whole_list_is_gone(imports: Imports, service: Service) -> None:
    """Memory replaces what cannot be read, not what is no longer offered; what exists stays."""
    imports(imports.file(FOUR), "out-0")
    service.offer = Offer((Category("cat_other", "Other", None),), None)
    work = imports(imports.file(FOUR + "N-1,newts,Tote,N-1\n"), "out-1")
    assert work.ended.rows == {RowStatus.SUCCEEDED: 4, RowStatus.REFUSED: 1}
    assert [one.name for one in remembered(imports).categories or ()] == ["Other"]


async def test_catalog_with_a_run_is_skipped(
    imports: Imports, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run is on record as an overlap, and buys nothing."""
    spec = replace(imports.shop.spec(), source=imports.file(FOUR))
    first, second = Pipeline(spec), Pipeline(spec)
    for work in (first, second):
        await work.read()
        await work.check()
    run = await first.plan()
    with pytest.raises(Overlap, match=run.record.run_id):
        await second.plan()
    assert service.creates == []
    await run.end()
    for work in (first, second):
        await work.__aexit__(None, None, None)
    with imports.shop.ledger() as ledger:
        assert Outcome.SKIPPED_OVERLAP in {record.outcome for record in ledger.runs.find()}


def test_preview_writes_nothing(imports: Imports, service: Service) -> None:
    """Not even a ledger; and it is the plan that the run would begin with."""

    async def main() -> tuple[int, int]:
        async with Pipeline(replace(imports.shop.spec(), source=imports.file(FOUR))) as work:
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
    file = read_input(replace(imports.shop.spec(), source=source))
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
    ],
)
def test_catalog_is_named_after_its_file(tmp_path: Path, file: str, name: str) -> None:
    """In lower case and dashes, in the letters of the alphabet: no two files become one for a letter left out."""
    assert catalog_name(tmp_path / file) == name


def test_file_name_without_usable_characters_is_refused(tmp_path: Path) -> None:
    """The person has to name the catalog."""
    with pytest.raises(ConfigurationError, match="--catalog"):
        catalog_name(tmp_path / "—…—.csv")


@pytest.mark.parametrize("name", ["../x", "", "a" * 64])
def test_catalog_name_cannot_be_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It names a folder."""
    monkeypatch.chdir(tmp_path)
    if not name:
        assert run_spec(ImportRequest(file=tmp_path / "spring.csv", catalog=name)).catalog == "spring"
        return
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        run_spec(ImportRequest(file=tmp_path / "spring.csv", catalog=name))
