"""A whole import, step by step: what is read once, what a look at the plan writes, and where its results go."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped]

from cli.launcher import Launch
from patternmill.errors import ConfigurationError, Overlap, PatternmillError
from patternmill.ledger.brake import Pause
from patternmill.runs.input import read_input
from patternmill.runs.lease import pause, unpause
from patternmill.runs.request import ImportRequest, RetryRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec, name_after, run_spec
from patternmill.settings import load_settings
from patternmill.states import Outcome, Stage
from tests.hostile.in_process import failed

from .test_origin import FOUR
from .workshop import Workshop, read_rows, rows


def spec(shop: Workshop, **asked: object) -> RunSpec:
    request = ImportRequest(file=shop.file(FOUR), out=shop.folder / "out")
    return replace(run_spec(request), **asked)


def test_retry_that_was_agreed_to_leaves_out_what_was_requested_since(shop: Workshop) -> None:
    """Without a Prefect server, too: between the plan and the answer to it a refresh asked for other content."""
    shop.service.on_follow["ferns"] = [failed()]
    shop.refresh({"a": {"prompt": "ferns"}})
    request = RetryRequest(catalog="spring")
    launch = Launch(request, run_spec(request))
    shop.refresh({"a": {"prompt": "moss"}})
    before = shop.service.bought
    asyncio.run(launch._run_alone())
    assert (shop.service.bought, shop.has()) == (before, {"a": "moss"})


def test_pause_that_is_lifted_before_the_run_begins_buys_nothing_unasked(shop: Workshop) -> None:
    """What is paused asks nobody: nothing would be bought of it."""
    shop.load_source({"a": {"prompt": "ferns"}})
    request = ImportRequest(file=shop.file(FOUR))
    launch, bought = Launch(request, run_spec(request)), shop.service.bought
    pause(load_settings(), Pause("", "", "a look", "anna"))
    launch.preview = asyncio.run(Run(launch.spec).preview())
    launch.limit_to_the_plan()
    asyncio.run(launch._run_alone())
    unpause(load_settings(), "", "", "anna")
    with pytest.raises(ConfigurationError, match="changed since you agreed"):
        asyncio.run(launch._run_alone())
    assert shop.service.bought == bought


def test_results_are_copied_to_a_store(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """To CATALOG/RUN, the manifest last, beside what is there. Where that fails they are here, and the run is over."""
    store = fsspec.filesystem("memory")
    store.pipe_file("/shop/mill/spring/kept.txt", b"kept")
    shop.through(Run(spec(shop, copy_below="memory://shop/mill")))
    there = f"/shop/mill/spring/{shop.last}"
    copied = {path.rpartition("/")[2]: store.cat_file(path) for path in store.ls(there, detail=False)}
    assert copied == {path.name: path.read_bytes() for path in (shop.folder / "out").iterdir()}
    assert shop.work.published.copied_to == f"memory:/{there}"
    assert store.cat_file("/shop/mill/spring/kept.txt") == b"kept"
    made = {name: store.info(f"{there}/{name}")["created"] for name in copied}
    assert max(made, key=made.__getitem__) == "manifest.json"

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("key canary may not write")

    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)
    (shop.folder / "out/manifest.json").unlink()
    with pytest.raises(PatternmillError) as refused:
        shop.through(Run(spec(shop, copy_below="memory://shop/mill")))
    assert refused.value.code == "results_not_copied" and "canary" not in str(refused.value)
    assert f"PermissionError. Nothing is lost: they are in {shop.folder / 'out'}." in str(refused.value)
    assert (shop.folder / "out/manifest.json").is_file()
    with shop.ledger() as ledger:
        assert {record.outcome for record in ledger.runs.find()} == {Outcome.COMPLETED}


async def test_catalog_with_a_run_is_skipped(shop: Workshop) -> None:
    """The second run is recorded as an overlap, and buys nothing."""
    async with Run(spec(shop)) as first, Run(spec(shop)) as second:
        for work in (first, second):
            await work.preview()
        await first.begin()
        with pytest.raises(Overlap, match=first.record.run_id):
            await second.begin()
        assert shop.service.creates == []
        await first.end()
    with shop.ledger() as ledger:
        assert Outcome.SKIPPED_OVERLAP in {record.outcome for record in ledger.runs.find()}


def test_preview_writes_nothing(shop: Workshop, home: Path) -> None:
    """Not even a ledger. What is read is made, whatever happens to the file meanwhile."""

    async def bought() -> tuple[int, int]:
        async with Run(spec(shop)) as work:
            bought = (await work.preview()).plan.purchases()
            return bought[Stage.PATTERN], bought[Stage.PRODUCT]

    assert asyncio.run(bought()) == (3, 4)
    assert not home.exists()
    was_read = spec(shop)
    was_read = replace(was_read, file=read_input(was_read))
    shop.file(rows(("X-1", "foxes")))
    shop.through(Run(was_read))
    assert len(read_rows(shop.folder / "out/results.csv")) == 4
    with shop.ledger() as ledger:
        assert ledger.runs.input_of(shop.work.record) == FOUR.encode()
    assert asyncio.run(bought()) == (0, 0)


def test_catalog_is_named_after_its_file(tmp_path: Path) -> None:
    """In lower case and dashes, in the letters of the alphabet: no two files become one for a letter left out."""
    names = {
        "Spring Catalog 2027.csv": "spring-catalog-2027",
        "Весна 2027.csv": "vesna-2027",
        "X" * 99: "x" * 63,
    }
    assert {file: name_after(file) for file in names} == names
    for file, catalog, reason in (
        ("—…—.csv", None, "--catalog"),
        ("spring.csv", "../x", "cannot be the name"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            run_spec(ImportRequest(file=tmp_path / file, catalog=catalog))
