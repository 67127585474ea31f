"""The products that a catalog has for picked rows, and why some of them are not ordered."""

from __future__ import annotations

import shlex

from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import patterns_of_products
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import PickedLine
from patternmill.planning.changes import CurrentRow
from patternmill.planning.items import Scope
from patternmill.planning.rows import sku_key
from patternmill.runs.catalog_takes import CatalogTakes
from patternmill.states import Decided, RowStatus
from patternmill.tables.picks import Pick, Picks, picks_refused
from patternmill.text import moment, plain, shown

_WHYS = {
    RowStatus.TO_CHOOSE: "its pattern has several takes, and none is picked: pick one with `patternmill look`",
    RowStatus.DISCARDED: "every take of its pattern was rejected: undo that with `patternmill look`",
}


class OrderableRows:
    """The rows of a catalog as it is now, with the takes that their products show and the decisions about them."""

    def __init__(self, ledger: Ledger, catalog: Scope) -> None:
        self._catalog, scope = catalog.catalog, (catalog.environment, catalog.catalog)
        self._rows = {row.sku: row for row in ledger.catalogs.rows(*scope)}
        self._requested = ledger.catalogs.requested_rows(*scope)
        self._takes, self._patterns = CatalogTakes(ledger, *scope), patterns_of_products(ledger, *scope)

    def is_picked(self, sku: str) -> bool:
        """Return whether the take that the row is built on was picked, of the pattern that its product shows."""
        pattern = self._shown(self._rows[sku])
        choice, takes = self._takes.choice(pattern), self._takes.judged(pattern)
        return any(take.number == choice and take.verdict is Decided.PICK for take in takes)

    def lines(self, picks: Picks) -> tuple[tuple[PickedLine, ...], dict[str, str]]:
        """Return the lines, sorted by sku however a person names them, and why rows are left out, by sku.

        Raises InputRefused, which lists everything that is wrong.
        """
        lines: list[PickedLine] = []
        left_out: dict[str, str] = {}
        problems = list(picks.problems)
        for pick in sorted(picks.picks, key=lambda pick: pick.sku):
            row = self._rows.get(pick.sku)
            # A pick with a take comes from a file of decisions, and is a decision itself.
            if pick.take is None and (why := self._why_left_out(pick.sku, row)) is not None:
                left_out[pick.sku] = why
            elif (fault := self._fault(pick, row)) is not None:
                problems.append(f"{pick.place}: {fault}")
            elif row is not None:
                lines.append(PickedLine(pick.sku, row.product_key, row.product_id, pick.quantity, pick.note))
        if not lines and not problems:
            problems = [f"{sku}: {why}" for sku, why in left_out.items()]
        if problems:
            raise picks_refused(problems, picks.file)
        return tuple(lines), left_out

    def is_outdated(self, line: PickedLine) -> bool:
        """Return whether something else was requested for a row since its product was made."""
        request = self._requested.get(sku_key(line.sku))
        return request is not None and request.product_key != line.product_key

    def _why_left_out(self, sku: str, row: CurrentRow | None) -> str | None:
        """Return the decision that keeps a row from being ordered, as a sentence; None if there is none."""
        requests = (self._requested.get(sku_key(sku)), row)
        for product in [request.product_key for request in requests if request and request.product_key]:
            if isinstance(status := self._takes.choice(self._patterns[product]), RowStatus):
                return _WHYS[status]
        if row is None:
            return None
        choice, takes = self._takes.choice(self._shown(row)), self._takes.of(self._shown(row))
        if any(take.number == choice and take.item == self._shown(row) for take in takes):
            return None
        return f"its product still shows another take than {choice}: `patternmill remake` makes the new one"

    def _fault(self, pick: Pick, row: CurrentRow | None) -> str | None:
        """Return why the catalog's product for a pick cannot be ordered, with what to do; None if it can."""
        sku = shown(pick.sku)
        if row is None:
            why = f"see `patternmill explain {shlex.quote(plain(pick.sku))}`"
            remedy = "name several as --sku A --sku B" if "," in pick.sku else why
            return f"the catalog {self._catalog!r} has no product for {sku}; {remedy}"
        if row.retired_at is not None:
            return f"{sku} was retired on {moment(row.retired_at)}; leave it out"
        if pick.product_id not in (None, row.product_id):
            was = plain(str(pick.product_id))
            remedy = "pick it in the latest results, or empty the cell to order what the catalog has"
            return f"{sku} is picked as product {was}, and the catalog has {row.product_id} by now; {remedy}"
        if pick.take not in (None, self._shown(row)):
            remedy = "look at it and decide again with `patternmill look`"
            return f"the pattern that is picked for {sku} is not the one that its product shows; {remedy}"
        return None

    def _shown(self, row: CurrentRow) -> ItemKey:
        """Return the take that a row's product shows, refined or not."""
        return self._takes.unrefined(self._patterns[row.product_key])
