"""Remakes: rows of a catalog as it is now, each on another take of its pattern; which rows, and which takes."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from patternmill.catalog.catalog_file import CatalogFile, Record, Texts
from patternmill.catalog.rows import REFINE_PREFIX, Content, Row, sku_key, tidy
from patternmill.catalog.source_rows import REFINEMENT_ORDER, SHAPE, SourceRow, are_same, texts_of
from patternmill.errors import ConfigurationError, InputRefused
from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import last_decisions
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.reports.run_lookup import LATEST, find_run
from patternmill.planning.items import Scope
from patternmill.planning.recognition import EXISTING, Memory, RowTakes, WantedTake, row_of
from patternmill.planning.takes import built_on, picked, wanted_takes
from patternmill.results.picks import skus_picked
from patternmill.runs.request import RemakeRequest
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.states import UNWANTED, AttemptState, Decided
from patternmill.text import more, plural, shortened

_MOST_ROWS = 40
_MOST_NAMED = 5


@dataclass(frozen=True)
class Remake:
    """The rows that a remake works on, with what it is to make of each."""

    environment: str
    catalog: str
    #: The rows as the catalog has them, as a sheet.
    file: CatalogFile = field(repr=False)
    #: By the key of the sku.
    wanted: Mapping[str, WantedTake]
    #: By the key of the sku, the take that its row has now; 0: none.
    replaced: Mapping[str, int]
    #: By sku, why nothing is made for it.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: Rows that were not named, and share the pattern of one that was: they go with it.
    sharing: tuple[str, ...] = ()
    #: The SHA-256 of pictures that guide their patterns.
    references: frozenset[str] = frozenset()

    def lines(self) -> Iterator[str]:
        """Each row with its take, and the one that it is to have."""
        yield f"Remake in catalog {self.catalog} ({self.environment})"
        if self.sharing:
            named = ", ".join(self.sharing[:_MOST_NAMED]) + (" …" if len(self.sharing) > _MOST_NAMED else "")
            yield f"  Remade too, as the same patterns are theirs: {plural(len(self.sharing), 'row')}: {named}"
        for sku, why in list(self.left_out.items())[:_MOST_ROWS]:
            yield f"  {sku}: left out: {why}"
        yield from more(len(self.left_out), _MOST_ROWS)
        rows = [(sku_key(row.cells[0]), row.cells) for row in self.file.records]
        for key, (sku, prompt, *_) in rows[:_MOST_ROWS]:
            yield f"  {sku}: {_said(self.wanted[key], self.replaced[key])}  {shortened(prompt, 60)}"
        yield from more(len(rows), _MOST_ROWS)


def _said(wanted: WantedTake, replaced: int) -> str:
    numbers = [str(number) for number in ((wanted.take,) if wanted.take else wanted.candidates)]
    takes = f"take{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
    if wanted.take == replaced:
        return f"{takes}, as it has"
    return f"{takes} {'after' if wanted.candidates else 'in place of'} take {replaced}" if replaced else takes


def requested_remake(ledger: Ledger, request: RemakeRequest, home: Path) -> Remake:
    """What a request comes to; the decisions of its file are recorded first, each once. `home`: of its pictures.

    Raises as `select_remake`, and InputRefused for a file that cannot be read.
    """
    if request.picks is None:
        return select_remake(ledger, request)
    # What reads pictures takes a while to load.
    from patternmill.looking.decision_files import decided_run, keep_decisions, read_decisions
    from patternmill.looking.pictures import Pictures

    run_id = decided_run(request.picks)
    if run_id is None:
        return select_remake(ledger, request, skus_picked(request.picks))
    record = find_run(ledger, run_id)
    file = read_decisions(ledger, record, request.picks, Pictures(home))
    keep_decisions(ledger, record, file)
    where = {"catalog": record.catalog, "environment": record.environment}
    skus = file.decided(*UNWANTED, Decided.PICK)
    request = request.model_copy(update=where)
    return select_remake(ledger, request, skus, decided=True)


def select_remake(
    ledger: Ledger, request: RemakeRequest, skus: Collection[str] = (), *, decided: bool = False
) -> Remake:
    """What a request comes to, by the catalog as it is now. Writes nothing.

    `skus`: those of its picks; `decided`: of these, the ones whose decision asks for another take. Without any, the
    rows that a person decided about since they were built. Raises ConfigurationError, also where nothing is left to
    remake.
    """
    record = find_run(ledger, LATEST, catalog=request.catalog, environment=request.environment)
    catalog = _Catalog(ledger, Scope(record.environment, record.catalog))
    named = {sku_key(tidy(sku)): sku for sku in (*request.sku, *skus)}
    _refuse_unknown(catalog, named)
    chosen = dict.fromkeys(named)
    if decided or not named:
        chosen = dict.fromkeys(key for key in catalog.decided() if not decided or key in chosen)
    sharing = catalog.sharing(chosen) if named else []
    found = {key: catalog.wanted(key, request) for key in (*chosen, *sharing)}
    wanted = {key: take for key, take in found.items() if isinstance(take, WantedTake)}
    left_out = {catalog.rows[key].sku: take for key, take in found.items() if isinstance(take, str)}
    if not wanted:
        raise ConfigurationError(
            f"Nothing to remake in {record.catalog}: "
            + ("; ".join(f"{sku}: {why}" for sku, why in list(left_out.items())[:_MOST_NAMED]) or _NOTHING),
            code="nothing_to_remake",
            remedy="Name rows with --sku, or decide about them with `patternmill look`.",
        )
    return Remake(
        record.environment,
        record.catalog,
        _as_sheet(record.catalog, {key: catalog.rows[key] for key in wanted}),
        wanted,
        {key: catalog.own(key) for key in wanted},
        left_out,
        tuple(catalog.rows[key].sku for key in sharing if key in wanted),
        frozenset(filter(None, (_content(catalog.rows[key]).reference for key in wanted))),
    )


_NOTHING = "no row waits for another take, and each has the one that was picked."


def _refuse_unknown(catalog: _Catalog, named: Mapping[str, str]) -> None:
    if unknown := [sku for key, sku in named.items() if key not in catalog.rows]:
        raise ConfigurationError(
            f"There is no row {', '.join(unknown[:_MOST_NAMED])} to remake in catalog {catalog.scope.catalog}.",
            remedy="Write the sku as its file does; a row that was refused is corrected first.",
        )


class _Catalog:
    """The rows that a catalog has, with their takes and what was decided about these."""

    def __init__(self, ledger: Ledger, scope: Scope) -> None:
        self.scope = scope
        kept = ledger.catalogs.source_rows(scope.environment, scope.catalog)
        self.rows: dict[str, SourceRow] = {
            key: row for key, row in kept.items() if row.content is not None and not row.is_gone
        }
        last = {one.item_key: one for one in ledger.purchases.last_attempts(scope.environment, scope.catalog)}
        decisions = last_decisions(ledger, scope.environment, scope.catalog)
        verdicts = {item: decision.verdict for item, decision in decisions.items()}
        self._memory = Memory(last, verdicts=verdicts)
        self._takes = RowTakes(scope, self._memory)

    def decided(self) -> Iterator[str]:
        """The rows whose pattern a person decided against, that have another take than was picked, or whose remake was
        cut short.
        """
        for key, row in self.rows.items():
            if self.own(key) > 1 and self._state(row.product_key) not in (*EXISTING, AttemptState.FAILED):
                yield key
                continue
            if not self._memory.verdicts:
                continue
            known, own = self._takes.known(row_of(row, _NO_RECORD)), self.own(key)
            verdicts = {take.number: take.verdict for take in known}
            choice = picked(known)
            if verdicts.get(own or 1) in UNWANTED or (choice is not None and choice != own):
                yield key

    def sharing(self, keys: Collection[str]) -> list[str]:
        """Return the other rows that share a pattern with some, whichever take each of them has."""
        patterns = {self._pattern(self.rows[key]) for key in keys}
        return [key for key, row in self.rows.items() if key not in keys and self._pattern(row) in patterns]

    def own(self, key: str) -> int:
        """The take that a row is built on, or is to be; 0: none yet."""
        row = self.rows[key]
        return _content(row).take or (1 if self._state(row.product_key) is not None else 0)

    def wanted(self, key: str, request: RemakeRequest) -> WantedTake | str:
        """What is to be made of a row, or why nothing is."""
        row, own = row_of(self.rows[key], _NO_RECORD), self.own(key)
        known = self._takes.known(row)
        wanted = [take.number for take in known if take.is_wanted]
        if request.take is not None:
            if not any(take.exists and take.number == request.take for take in known):
                return f"there is no take {request.take} of its pattern"
            if request.take not in wanted and not self._is_made(row, request.take):
                return f"take {request.take} was decided against: pick it first"
            return WantedTake(request.take)
        choice = picked(known)
        is_one = request.takes == 1
        if is_one and not request.again and choice is not None and choice != own:
            return WantedTake(choice)
        others = [number for number in wanted if number > own]
        if is_one and not request.again and len(others) > 1 and built_on(None, known) is None:
            return f"takes {', '.join(map(str, others))} wait for a decision: pick one, or reject them"
        is_open = any(self._takes.is_open(row, take.number) for take in known)
        numbers = wanted_takes(own, known, request.takes, again=request.again and not is_open)
        if is_one or numbers == [own]:
            return WantedTake(numbers[0])
        return WantedTake(candidates=tuple(numbers))

    def _is_made(self, row: Row, take: int) -> bool:
        return self._state(self._takes.chain(replace(row, take=take)).product.key) in EXISTING

    def _pattern(self, row: SourceRow) -> ItemKey:
        """Return the first take of a row's pattern, which stands for all of its takes."""
        return self._takes.pattern(row_of(row, _NO_RECORD), 1).key

    def _state(self, key: ItemKey | None) -> AttemptState | None:
        last = self._memory.last_attempts.get(key) if key is not None else None
        return last.state if last is not None else None


def _content(row: SourceRow) -> Content:
    assert row.content is not None, "a row of the catalog has content"
    return row.content


_NO_RECORD = Record(0, ())


def _as_sheet(catalog: str, rows: Mapping[str, SourceRow]) -> CatalogFile:
    """Rows as the catalog has them, in the columns of the contract. Raises ConfigurationError: no sheet can say it."""
    texts = [row.answered for row in rows.values()]
    columns = dict.fromkeys(("sku", "prompt", "category", *(name for row in texts for name in _names(row))))
    text = io.StringIO()
    lines = csv.DictWriter(text, list(columns), restval="", extrasaction="ignore")
    lines.writeheader()
    for row, said in zip(rows.values(), texts, strict=True):
        lines.writerow({"sku": row.sku, **said})
    try:
        file = parse_catalog(text.getvalue().encode("utf-8"), name=f"remake of {catalog}.csv")
        differing = [
            row.sku
            for row, said, read in zip(rows.values(), texts, texts_of(file), strict=True)
            if not are_same(said, read)
        ]
    except InputRefused as refused:
        raise _apart(str(refused.message)) from None
    if differing:
        raise _apart(f"One sheet cannot say it of {', '.join(differing[:_MOST_NAMED])}.")
    return file


def _names(texts: Texts) -> list[str]:
    """The columns of a row, its refinements in their order."""
    order = texts.get(REFINEMENT_ORDER, "").split(", ")
    return [
        *(
            name
            for name in texts
            if name not in (SHAPE, REFINEMENT_ORDER) and not name.startswith(REFINE_PREFIX)
        ),
        *(name for name in order if name),
        *(name for name in texts if name.startswith(REFINE_PREFIX)),
    ]


def _apart(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"These rows cannot be remade in one run. {why}",
        code="remake_apart",
        remedy="Remake them one by one with --sku. Nothing was bought.",
    )
