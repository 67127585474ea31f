"""A real studio, and commands that run against it."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from patternmill.runs.run import Run
from studio.testing import Studio
from tests.hostile.in_process import InProcessApi, Service
from tests.integrity import problems
from tests.quick_writer import quick_writer as quick_writer
from tests.unit.runs.workshop import Ended, Workshop

#: A picture of one colour.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKklEQVR42mOQt4+nKW"
    "IYtWDUglELRi0YtWDUglELRi0YtWDUglELhooFAFip9B8cm1XHAAAAAElFTkSuQmCC"
)


@dataclass
class Chains(Workshop):
    """One catalog at a real studio, in place of the service in memory, which is never asked."""

    studio: Studio = field(kw_only=True)

    def make(self, text: str) -> Ended:
        """Run the same command once more."""
        self.load(self.file(text))
        with self.ledger() as ledger:
            assert not list(problems(ledger))
        return Ended(self.work.ended, self.results(self.work.ended), self.work)

    async def _dies(self, run: Run, work: Coroutine[Any, Any, object], *_: InProcessApi) -> bool:
        """Return False: no process of these tests dies."""
        async with run:
            await work
        return False

    def know(self, **operations: object) -> None:
        """What a person says about the operations of the service."""
        self.file(json.dumps({"staging": operations}), "operations.json")

    @property
    def bought(self) -> Counter[str]:
        """Return what the studio's meter says was bought, by operation."""
        purchases = self.studio.meter.read()["purchases"]
        return Counter(str(purchase["operation"]) for purchase in purchases)


@pytest.fixture(scope="session")
def one_studio() -> Iterator[Studio]:
    with Studio() as studio:
        yield studio


@pytest.fixture
def chains(one_studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chains:
    one_studio.reset()
    (tmp_path / "heron.png").write_bytes(PNG)
    profile = {"url": one_studio.base_url, "key": one_studio.key}
    monkeypatch.setenv("PATTERNMILL_PROFILES", json.dumps({"staging": profile}))
    monkeypatch.setenv("PATTERNMILL_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATTERNMILL_OPERATIONS_FILE", str(tmp_path / "operations.json"))
    monkeypatch.chdir(tmp_path)
    chains = Chains(tmp_path / "state", Service(), folder=tmp_path, studio=one_studio)
    chains.know()
    return chains
