"""A source is followed: what has changed in it counts, and everything else stays as it is answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from patternmill.catalog.catalog_file import CatalogFile, Texts
from patternmill.catalog.rows import Content, sku_key
from patternmill.catalog.source_rows import (
    SHAPE,
    SourceRow,
    are_same,
    column_indexes,
    difference,
    followed,
    keys_of,
    texts_of,
    with_texts,
)
from patternmill.errors import InputRefused, PatternmillError
from patternmill.identifiers import RunId
from patternmill.ledger.ledger import Ledger, ledger_if_any
from patternmill.parameters import MAPPING_CHANGE
from patternmill.planning.plan import Plan
from patternmill.results.row_results import parsed_input
from patternmill.runs.spec import RunSpec
from patternmill.text import plural, shown

_MOST_NAMED = 3


#: A row of a file that was there before: its line, what the catalog keeps of it, what the file said before and says
#: now, and what counts.
_Followed = tuple[int, SourceRow, Texts, Texts, Texts]


def follow(spec: RunSpec, file: CatalogFile) -> tuple[CatalogFile, tuple[str, ...]]:
    """The input as its rows count, and what a person should know of that, in sentences."""
    if spec.is_of_rows:
        return file, ()
    with ledger_if_any(spec.settings) as ledger:
        if ledger is None:
            return file, ()
        kept = ledger.catalogs.source_rows(spec.scope.environment, spec.scope.catalog)
        rows = list(_followed(ledger, spec, file, texts_of(file), kept))
        waiting = _waiting(ledger, spec, file, rows)
    counted = {line: wanted for line, _, _, now, wanted in rows if not are_same(now, wanted)}
    read = with_texts(file, counted | {line: row.answered for line, row in waiting.items()})
    # As if the mapping had not changed.
    own = {line: row.said for line, row in waiting.items()}
    return replace(read, own_texts={**read.own_texts, **own}), tuple(_notes(spec, rows, waiting))


def _followed(
    ledger: Ledger, spec: RunSpec, file: CatalogFile, texts: Sequence[Texts], kept: Mapping[str, SourceRow]
) -> Iterator[_Followed]:
    """The rows that the catalog has: those of a results file by what has changed since its run.

    `texts`: what the file itself says, row by row.
    """
    origin = spec.origin
    of_run = dict(ledger.runs.texts_of(origin.run_id).values()) if origin is not None else {}
    for record, key, now in zip(file.records, keys_of(file), texts, strict=True):
        row = kept.get(key)
        before = of_run.get(key) if origin is not None or row is None else row.said
        if row is None or before is None:
            continue
        # Results do not show what is wrong with a row as a whole.
        is_same = origin is not None and difference(before, now).keys() == {SHAPE}
        wanted = row.answered if is_same else followed(row.answered, before, now)
        yield record.line, row, before, now, wanted


def refuse_stale(ledger: Ledger, spec: RunSpec, file: CatalogFile, kept: Mapping[str, SourceRow]) -> None:
    """Raise PatternmillError when another run changed what counts since the file was read."""
    if spec.is_of_rows:
        return
    texts, columns = texts_of(file), {SHAPE, *column_indexes(file)}
    own = [file.own_texts.get(row.line, said) for row, said in zip(file.records, texts, strict=True)]
    read = {row.line: said for row, said in zip(file.records, texts, strict=True)}
    for line, row, _, _, wanted in _followed(ledger, spec, file, own, kept):
        if difference(wanted, read[line]).keys() & columns:
            raise PatternmillError(
                f"The catalog {spec.catalog!r} was changed by another run while this one was prepared: {row.sku}.",
                code="catalog_changed",
                remedy="Run the same command again. Nothing was bought.",
            )


def source_rows_of(
    run_id: RunId, plan: Plan, file: CatalogFile, kept: Mapping[str, SourceRow], *, is_source: bool = True
) -> Iterator[SourceRow]:
    """What the catalog keeps from now on of the rows of a run.

    A results file says nothing of the source: it changes what answers it, where its row is accepted.
    """
    for row, key, texts in zip(plan.rows, keys_of(file), texts_of(file), strict=True):
        before, product = kept.get(key), row.product
        if not key or (not is_source and (before is None or product is None)):
            continue
        said = (
            file.own_texts.get(row.entry.record.line, texts) if is_source or before is None else before.said
        )
        now = before if before is not None and are_same(before.answered, texts) else None
        if now is None:
            now = SourceRow(before.sku if before is not None else row.known_sku, said, {}, None, None, run_id)
        if product is not None and row.entry.row is not None:
            now = replace(now, product_key=product, content=Content.of(row.entry.row))
        source = run_id if is_source or before is None else before.run_id
        yield replace(now, said=said, corrected=difference(said, texts), run_id=source)


def _waiting(
    ledger: Ledger, spec: RunSpec, file: CatalogFile, rows: Iterable[_Followed]
) -> dict[int, SourceRow]:
    """Rows with an item that changed only because columns are read otherwise than before, until that is confirmed; by
    their line.
    """
    if spec.origin is not None or spec.settings.confirms(MAPPING_CHANGE):
        return {}
    of_run: dict[RunId, list[tuple[int, SourceRow, Texts]]] = defaultdict(list)
    for line, row, before, now, _ in rows:
        if row.product_key is not None and not are_same(before, now):
            of_run[row.run_id].append((line, row, now))
    found: dict[int, SourceRow] = {}
    for run_id, changed in of_run.items():
        read_now = _read_now(ledger, run_id, file)
        found |= {
            line: row for line, row, now in changed if are_same(read_now.get(sku_key(row.sku), {}), now)
        }
    return found


def _read_now(ledger: Ledger, run_id: RunId, file: CatalogFile) -> Mapping[str, Texts]:
    """What the input of an earlier run says by the mapping of now, by the key of the sku."""
    record = ledger.runs.get(run_id)
    assert record is not None, "a source row names its run"
    try:
        before = parsed_input(ledger, record, file.mapping)
    except InputRefused:
        return {}
    return dict(zip(keys_of(before), texts_of(before), strict=True))


def _notes(spec: RunSpec, rows: Iterable[_Followed], waiting: Mapping[int, SourceRow]) -> Iterator[str]:
    followed_now = [row[1:] for row in rows if row[0] not in waiting]
    corrected = [row.sku for row, _, now, wanted in followed_now if not are_same(now, wanted)]
    if corrected:
        yield f"{plural(len(corrected), 'row')} as corrected, not as the file has it: {_named(corrected)}."
    overtaken = [text for row, before, now, _ in followed_now for text in _overtaken(row, before, now)]
    if overtaken and spec.origin is None:
        yield f"The source has changed where it had been corrected, and counts: {_named(overtaken)}."
    if waiting:
        yield (
            f"{plural(len(waiting), 'row')} read otherwise than before, because the mapping of the columns has "
            f"changed: {_named([row.sku for row in waiting.values()])}. What they have stays until "
            f"`--confirm {MAPPING_CHANGE}`."
        )


def _overtaken(row: SourceRow, before: Texts, now: Texts) -> Iterator[str]:
    """The cells that a person had corrected and whose source has a third text now: old, corrected and new."""
    for name in sorted(difference(before, now).keys() & row.corrected.keys()):
        old, corrected, new = before.get(name, ""), row.corrected[name], now.get(name, "")
        if not are_same({name: corrected}, {name: new}):
            yield f"{row.sku}, {name} {_cell(old)}, corrected {_cell(corrected)}, now {_cell(new)}"


def _cell(text: str) -> str:
    return shown(text) if text else "empty"


def _named(found: Sequence[str]) -> str:
    rest = len(found) - _MOST_NAMED
    return "; ".join([*found[:_MOST_NAMED], *([f"and {rest:,} more"] if rest > 0 else [])])
