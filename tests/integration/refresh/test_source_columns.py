"""A supplier's export, night after night, against the real studio: its columns are confirmed once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli import main
from patternmill.errors import InputRefused
from patternmill.states import Outcome
from tests.integration.refresh.conftest import Desk

THEIRS = "Artikelnummer,Prompt-Text,Produktart,Größe (cm),Stoff,Bemerkung"
ROWS = ("A-1,Blue herons,Cushion,50x50,linen,x", "A-2,Red roses,Cushion,40x40,cotton,")


def test_source_is_confirmed_once_and_bought_once(desk: Desk) -> None:
    """By its proposal, then renamed by the supplier, then in the contract's own names: nothing is bought twice."""
    desk.write(*ROWS, header=THEIRS)
    with pytest.raises(InputRefused, match="patternmill map"):
        desk.refresh()
    assert main.run(["map", str(desk.source), "--catalog", desk.catalog, "--yes"]) == 0
    before = desk.creates()
    first = desk.refresh()
    assert (first.counts, first.ending.outcome) == ({"added": 2}, Outcome.COMPLETED)
    assert desk.creates() - before == 4
    assert desk.refresh().counts == {"unchanged": 2}
    desk.write(*ROWS, header=THEIRS.replace("Stoff", "Gewebe"))
    with pytest.raises(InputRefused, match="`stoff`, which was `option:fabric`, is gone; `Gewebe` is new"):
        desk.refresh()
    assert main.run(["map", str(desk.source), "--catalog", desk.catalog, "--yes"]) == 0
    assert desk.refresh().counts == {"unchanged": 2}
    assert desk.night(*ROWS).counts == {"unchanged": 2}
    assert desk.creates() - before == 4


def test_schedule_names_a_mapping_file(desk: Desk, tmp_path: Path) -> None:
    """Nothing needs to be remembered where the schedule runs."""
    desk.write(*ROWS, header=THEIRS)
    mapping = tmp_path / "agreed.toml"
    command = ["map", str(desk.source), "--catalog", "another", "--yes", "--out", str(mapping)]
    assert main.run(command) == 0
    assert desk.refresh(mapping=mapping).counts == {"added": 2}
