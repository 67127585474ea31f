"""The mark beside results: an older, another or an empty ledger is noticed before money is spent."""

import json
import shutil

import pytest

from patternmill.errors import Refusal
from patternmill.ledger.database import Database
from patternmill.mark import check_marks, write_marks
from tests.spine import of, play, taken


async def buy(database, *prompts, catalog="spring"):
    lease, purchases = await taken(database, catalog)
    for prompt in prompts:
        await purchases.begin(of(prompt), None)
    await lease.give_back("Completed", "")


def test_the_ledger_that_made_them_is_well(database, tmp_path):
    play(buy(database, "a"))
    write_marks([tmp_path], database, "production")
    play(buy(database, "b"))
    check_marks([tmp_path], database, "production")


def test_another_ledger_is_refused_with_the_count(database, tmp_path):
    play(buy(database, "a", "b"))
    write_marks([tmp_path], database, "production")
    other = Database(str(tmp_path / "other.sqlite3"))
    with pytest.raises(Refusal, match="knows of 2 changes") as refused:
        check_marks([tmp_path], other, "production")
    assert "--confirm ledger" in refused.value.remedy
    play(other.close())


def test_a_restored_copy_is_noticed_even_if_it_has_gone_on(database, tmp_path):
    play(buy(database, "a"))
    shutil.copy(tmp_path / "ledger.sqlite3", tmp_path / "backup")
    shutil.copy(tmp_path / "ledger.sqlite3-wal", tmp_path / "backup-wal")
    play(buy(database, "b"))
    write_marks([tmp_path], database, "production")
    restored = Database(str(tmp_path / "backup"))
    with pytest.raises(Refusal, match="knows of 1 change"):
        check_marks([tmp_path], restored, "production")
    play(buy(restored, "c", "d"))  # as many events, and other ones
    with pytest.raises(Refusal):
        check_marks([tmp_path], restored, "production")
    play(restored.close())


def test_the_marks_of_environments_lie_side_by_side(database, tmp_path):
    play(buy(database, "a"))
    write_marks([tmp_path], database, "production")
    write_marks([tmp_path], database, "staging")
    assert set(json.loads((tmp_path / "ledger.json").read_text())) == {"production", "staging"}


def test_what_cannot_be_written_is_said_before_money(database, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="cannot be written"):
        write_marks([tmp_path / "file" / "out"], database, "production")
