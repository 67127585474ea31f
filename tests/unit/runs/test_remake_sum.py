"""What the page says that a remake would buy is what the command says, and what it then buys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.main import run
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.plan_text import plan_remake
from patternmill.settings import load_settings
from patternmill.states import Decided

from .shop import Shop
from .shop import shop as shop

ROWS = {
    "a": {"prompt": "herons"},
    "b": {"prompt": "owls"},
    "c": {"prompt": "foxes"},
    "d": {"prompt": "ferns"},
    "e": {"prompt": "ferns"},
}


def three_takes(shop: Shop) -> None:
    shop.load_source(ROWS, takes=3)


def one_take(shop: Shop) -> None:
    shop.refresh(ROWS)


#: What was made before, what was decided about it, and what a remake of that buys.
CASES: dict[str, tuple[Callable[[Shop], None], str, str]] = {
    "three picked and one rejected, with their products": (
        one_take,
        "pick herons 1, pick owls 1, pick foxes 1, reject ferns 1",
        "",
    ),
    "three picked of several, and one rejected": (
        three_takes,
        "pick herons 2, pick owls 1, pick foxes 3, reject ferns 1, reject ferns 2, reject ferns 3",
        "3 products",
    ),
    "another one of a pattern that two rows share": (one_take, "again ferns 1", "1 pattern and 2 products"),
    "another one of three": (three_takes, "again herons 3", "1 pattern and 1 product"),
    "again, and picked since": (three_takes, "again herons 3, pick herons 2", "1 product"),
    "undecided": (three_takes, "later herons 1, undecided owls 2", ""),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_page_command_and_run_agree(
    shop: Shop, case: tuple[Callable[[Shop], None], str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    before, decisions, expected = case
    before(shop)
    for decision in decisions.split(", "):
        verdict, prompt, take = decision.split()
        shop.decide(Decided(verdict), prompt, int(take))
    planned = plan_remake(load_settings(), "spring", "staging")
    code, shown = run(("remake", "--catalog", "spring", "--plan-only")), capsys.readouterr()
    had = len(shop.service.bought)
    has_work = shop.remake()
    bought = shop.service.bought[had:]
    patterns = len([name for name in bought if name not in ROWS])
    if not expected:
        assert (planned, code, has_work, bought) == (None, 2, False, [])
        assert "Nothing to remake" in shown.err
        return
    assert planned is not None and code == 0
    products = len(bought) - patterns
    counts = [f"{n} {what}{'s' * (n > 1)}" for n, what in ((patterns, "pattern"), (products, "product")) if n]
    assert " and ".join(counts) == expected
    assert planned.sum == expected
    assert all(line in shown.out for line in planned.lines)
    assert f"Digest of this plan: {planned.digest[:LEAST_DIGEST]}" in shown.out
