"""Which patterns a remake makes again, and with them which rows."""

import json
from collections.abc import Mapping, Sequence

from patternmill.errors import Refusal
from patternmill.ledger.decisions import Decision, Verdict
from patternmill.request import Request
from patternmill.states import CatalogRow, Status


def rows_to_remake(
    rows: Sequence[CatalogRow], decisions: Mapping[str, Decision], request: Request
) -> tuple[list[CatalogRow], list[tuple[Decision, int]]]:
    """Return the rows that share the patterns to be remade, and the take that each of these moves to, if it does.

    They are the patterns of the named rows; without names, those marked `again`, and those whose later take was not
    made to its end. Raises Refusal where nothing would come of it.
    """
    chooses = request.chooses if request.names_rows else is_due
    named = [row for row in rows if row.pattern and chooses(row)]
    if request.take is not None and not request.names_rows:
        raise Refusal("no_rows", "--take goes to a take of named rows.", "Name them with --sku.")
    if fixed := [row.sku for row in named if "take" in json.loads(row.content).get("extras", {})]:
        message = f"The sheet itself names the take of {', '.join(fixed[:5])}."
        raise Refusal("take_in_sheet", message, "Change it there.")
    patterns = {row.pattern: row for row in named}
    moves, undecided = list[tuple[Decision, int]](), list[str]()
    for pattern, row in patterns.items():
        seen = decisions.get(pattern, Decision(pattern))
        take = seen.take
        if request.names_rows or seen.verdict is Verdict.AGAIN:
            take = next_take(seen, is_made=bool(row.pattern_id), asked=request.take)
        if take != seen.take:
            moves.append((seen, take))
        elif row.status == Status.SUCCEEDED and request.take is None:
            undecided.append(f"{row.sku}: --take {seen.newest + 1}")
    if undecided and not moves and len(undecided) == len(patterns):
        message = f"The last takes are there, and nobody has decided about them: {'; '.join(undecided[:5])}."
        raise Refusal("undecided_take", message, "Mark those `again` that are not wanted; or name the take.")
    return [row for row in rows if row.pattern in patterns], moves


def is_due(row: CatalogRow) -> bool:
    """Return whether a row's pattern is marked, or its product on a later take is still to be made.

    A refusal of its content is final: only a `retry`, or the row's name, goes beyond it.
    """
    is_refused = row.code in ("content_refused", "invalid_request")
    is_open = row.status != Status.SUCCEEDED and row.verdict != Verdict.REJECT and not is_refused
    return row.verdict == Verdict.AGAIN or (row.take > 1 and is_open)


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
