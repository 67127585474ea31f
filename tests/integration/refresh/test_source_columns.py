"""A supplier's export, night after night, against the real studio: its columns are confirmed once."""

from __future__ import annotations

import pytest

from cli import main
from patternmill.errors import InputRefused
from patternmill.states import Outcome
from tests.integration.refresh.conftest import Desk

THEIRS = "Artikelnummer,Prompt-Text,Produktart,Größe (cm),Stoff,Bemerkung"
ROWS = ("A-1,Blue herons,Cushion,50x50,linen,x", "A-2,Red roses,Cushion,40x40,cotton,")


def test_source_is_confirmed_once_and_bought_once(desk: Desk) -> None:
    """As proposed, then renamed by the supplier, then in the contract's own names: nothing is bought twice."""
    desk.write(*ROWS, header=THEIRS)
    with pytest.raises(InputRefused, match="patternmill check"):
        desk.refresh()
    assert main.run(["check", str(desk.source), "--catalog", desk.catalog, "--yes"]) == 0
    before = desk.creates()
    first = desk.refresh()
    assert (first.counts, first.ending.outcome) == ({"added": 2}, Outcome.COMPLETED)
    assert desk.creates() - before == 4
    assert desk.refresh().counts == {"unchanged": 2}
    desk.write(*ROWS, header=THEIRS.replace("Stoff", "Gewebe"))
    with pytest.raises(InputRefused, match="no longer has the column `stoff`, which was `option:fabric`"):
        desk.refresh()
    assert main.run(["check", str(desk.source), "--catalog", desk.catalog, "--yes"]) == 0
    assert desk.refresh().counts == {"unchanged": 2}
    assert desk.night(*ROWS).counts == {"unchanged": 2}
    assert desk.creates() - before == 4


def test_unknown_word_refuses_its_row_by_name(desk: Desk) -> None:
    """A refresh has nobody to ask; the others go on."""
    refreshed = desk.night(ROWS[0], ROWS[1].replace("cotton", "Seide"))
    assert (refreshed.ending.outcome, refreshed.counts) == (
        Outcome.COMPLETED_WITH_FAILURES,
        {"added": 1, "refused": 1},
    )
    assert "unknown value `Seide`" in (refreshed.out / "failures.csv").read_text("utf-8-sig")
