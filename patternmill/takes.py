"""Which take of its pattern a row wants, what its product is built on, and which take a remake makes."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from patternmill.contract import Contract
from patternmill.errors import Refusal
from patternmill.items import Item
from patternmill.ledger.decisions import Decision, Verdict


class Base(NamedTuple):
    """The item that rows which ask for the same build their products on. `pattern` is the first take of its pattern."""

    pattern: str
    take: int
    item: Item
    decided: bool = False
    is_rejected: bool = False


def base_of(
    environment: str, prompt: str, extras: str, decisions: Mapping[str, Decision], contract: Contract
) -> Base:
    """Return what a row's product is built on. `extras`: what its content has beside, as JSON, or empty.

    Its own take counts first, then the one that is decided. `kept_take` is of results, and counts where nothing is.
    """
    asked: dict[str, str] = json.loads(extras) if extras else {}
    first = contract.pattern(environment, prompt, asked, 1)
    decision = decisions.get(first.id)
    written, kept = asked.get("take"), asked.get("kept_take")
    take = int(written or (decision.take if decision else kept or 1))
    pattern = contract.pattern(environment, prompt, asked, take) if take > 1 else first
    is_about = decision is not None and decision.take == take
    is_rejected = is_about and decision.verdict is Verdict.REJECT  # type: ignore[union-attr]
    return Base(first.id, take, contract.refined(pattern, asked), is_about and not written, is_rejected)


def next_take(decision: Decision, *, is_made: bool, asked: int | None) -> int:
    """Return the take that a remake makes, of a pattern whose wanted take is made or not.

    What was not made, and what nobody has looked at since it was decided, is gone on with: so the same command twice,
    or after a crash, buys one take. Raises Refusal for an `asked` one that would leave a gap.
    """
    if asked is not None:
        if asked > decision.newest + 1:
            message = f"There is no take {asked}: the newest is {decision.newest}."
            raise Refusal("no_take", message, f"--take {decision.newest + 1} makes another one.")
        return asked
    is_undecided = decision.at > 0 and decision.verdict is Verdict.NONE
    goes_on = decision.verdict is not Verdict.AGAIN and (not is_made or is_undecided)
    return decision.take if goes_on else decision.newest + 1
