"""Every fault of every row in one pass, and the rows that are fit to be made."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd

from patternmill.offer import Offer
from patternmill.tables.cells import IS_PLAIN, Fault, fault_of
from patternmill.tables.choices import MISSING, Chooser, Chosen, missing_cell
from patternmill.tables.columns import Columns
from patternmill.tables.delimited import restored
from patternmill.tables.extras import NO_EXTRAS, Extras
from patternmill.tables.mapping import NEEDED, Proposal, Unsaid
from patternmill.tables.proposals import row_proposals
from patternmill.tables.sheet import SURPLUS, Sheet
from patternmill.tables.workbook import number_as_shown
from patternmill.text import UNSAFE, counted, key, shown, sku_key

PROBLEM = ("row", "sku", "column", "code", "message", "remedy", "suggestion")
ROW = ("sku", "prompt", "category_id", "category", "selections", "extras")
_MARKUP = re.compile(r"</?[a-z]+[^>]*>|&[a-z]+;", re.IGNORECASE)
_NAMED = 6
_SHOWN = 'if {} is the sku, write `numbers = "as shown"` under [reading] of its mapping'
_SAVE = "open the workbook in its program, save it again, and look whether the cell has a result"
_AS_TEXT = "make the column texts (in Excel: Data > Text to Columns > Text), or save the sheet as CSV"
#: A row's number and what is wrong with it.
Found = tuple[int, Fault]


@dataclass(frozen=True)
class Checked:
    """A sheet after its check. `rows` are those that are fit; `unsold` those that were refused for their sku alone."""

    sheet: Sheet
    columns: Columns
    rows: pd.DataFrame = field(repr=False)
    problems: pd.DataFrame = field(repr=False)
    unsold: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...] = ()
    #: Lines of a mapping that would mend unknown words and columns, if a person confirms them.
    proposals: tuple[Proposal, ...] = ()

    @property
    def refused(self) -> int:
        return len(self.sheet.rows) - len(self.rows)


def check_rows(
    sheet: Sheet, columns: Columns, offer: Offer, words: Mapping[str, str], extras: Extras = NO_EXTRAS
) -> Checked:
    """Return the sheet with all its problems. `words` says what a word of the sheet means, by the word's key."""
    sheet = sheet if columns.run is None else _as_written(sheet, columns)
    found = [*_misshapen(sheet, columns)]
    whole = sheet.rows[~sheet.rows.index.isin([*dict(found)])] if found else sheet.rows
    numbers, sku = whole.index.tolist(), columns.title("sku")
    skus = list(map(str.strip, whole[columns.used["sku"]].tolist()))
    prompts = list(map(str.strip, whole[columns.used["prompt"]].tolist()))
    of_sku = [*_text_faults("sku", numbers, skus, sku), *_repeated(numbers, skus, sku)]
    for row, meant in sheet.doubtful.items():
        of_sku.append((row, _doubtful(sku, meant)))
    found += _text_faults("prompt", numbers, prompts, columns.title("prompt"))
    for row, fault in _no_text(sheet, columns) if sheet.kinds else ():
        (of_sku if fault.column == sku else found).append((row, fault))
    chosen = _chosen(whole, Chooser(columns, offer, words))
    ids, categories, selections, faults = zip(*chosen, strict=True) if chosen else ((), (), (), ())
    if any(faults):
        found += [(row, fault) for row, those in zip(numbers, faults, strict=True) for fault in those]
    beside, faults_beside = extras.of(whole, columns) if columns.extras else ([""] * len(whole), ())
    found += faults_beside
    cells = zip(ROW, (skus, prompts, ids, categories, selections, beside), strict=True)
    rows = pd.DataFrame(dict(cells), whole.index, dtype="str")
    bad, unsellable = dict(found), dict(of_sku)
    fit = rows[~rows.index.isin([*bad, *unsellable])] if bad or unsellable else rows
    unsold = rows[rows.index.isin(unsellable.keys() - bad.keys())]
    problems = _problems(found + of_sku, sheet.rows[columns.used["sku"]])
    notes, known = tuple(_notes(sheet, prompts, offer)), set(words.values())
    proposals = sheet.proposals + (tuple(row_proposals(found, columns.used, known)) if found else ())
    checked = Checked(sheet, columns, fit, problems, unsold, notes, proposals)
    if columns.doubts:
        raise Unsaid.of(columns.doubts, report_lines(checked), proposals)
    return checked


def category_words(sheet: Sheet, columns: Columns, words: Mapping[str, str]) -> set[str]:
    """Return the words that name the categories of the rows."""
    cells = list(map(str.strip, sheet.rows[columns.used["category"]].dropna().unique()))
    return set(map(words.get, map(key, cells), cells))


def _as_written(sheet: Sheet, columns: Columns) -> Sheet:
    """Return a results file with its cells as they were in the sheet: CSV alone has apostrophes before formulas.

    A cell that was missing is empty in results; it is missing until something is in it, or the error is taken away.
    """
    rows = sheet.rows if sheet.is_workbook else sheet.rows.apply(restored)
    rows = rows.copy()
    for at in columns.used.values() if columns.error is not None else ():
        said = missing_cell(columns.header[at]).message
        was_missing = rows[columns.error].str.contains(said, regex=False).fillna(False).astype(bool)
        rows[at] = rows[at].mask(was_missing & rows[at].eq(""))
    if columns.beyond is not None:
        rows[SURPLUS] = rows[SURPLUS].fillna(rows[columns.beyond].replace("", None))
    return replace(sheet, rows=rows)


def _misshapen(sheet: Sheet, columns: Columns) -> Iterator[Found]:
    """Yield the rows with more cells than the header, and those that end before a cell that every row needs."""
    surplus = sheet.rows[SURPLUS].dropna()
    for row, text in zip(surplus.index.tolist(), surplus, strict=True):
        message = f"the row has more cells than the header's {len(columns.header)}: {shown(text)}"
        yield row, Fault(None, "surplus_cells", message, "put text that holds the separator within quotes")
    for at in sorted(map(columns.used.__getitem__, NEEDED)):
        for row in sheet.rows.index[sheet.rows[at].isna()].tolist():
            yield row, missing_cell(columns.header[at])


def _text_faults(name: str, numbers: Sequence[int], texts: Sequence[str], column: str) -> Iterator[Found]:
    is_plain = IS_PLAIN[name]
    for row, text in zip(numbers, texts, strict=True):
        if not is_plain(text) and (fault := fault_of(name, column, text)):
            yield row, fault


def _repeated(numbers: Sequence[int], skus: Sequence[str], column: str) -> Iterator[Found]:
    keys = list(map(sku_key, skus))
    rows_of: dict[str, list[int]] = {}
    for row, name in zip(numbers, keys, strict=True) if len(set(keys)) < len(keys) else ():
        rows_of.setdefault(name, []).append(row)
    for name, rows in rows_of.items():
        if name and len(rows) > 1:
            more = " ..." if len(rows) > _NAMED else ""
            message = f"the sku is in rows {', '.join(map(str, rows[:_NAMED]))}{more}"
            remedy = "give each row a sku of its own; case and spaces do not distinguish skus"
            yield from ((row, Fault(column, "duplicate_sku", message, remedy)) for row in rows)


def _doubtful(column: str, skus: Sequence[str]) -> Fault:
    message = f"a spreadsheet took leading zeros from the sku: {' or '.join(map(shown, skus[:_NAMED]))}"
    return Fault(column, "number_as_shown", message, "format the column as Text and type it again")


def _no_text(sheet: Sheet, columns: Columns) -> Iterator[Found]:
    """Yield the cells of a workbook that are no text. A number is one, but not as a sku: of `00012` it keeps 12."""
    there = set(sheet.rows.index)
    for (row, at), kind in sheet.kinds.items():
        is_fine = kind.what == "a number" and at != columns.used["sku"]
        if row in there and at in columns.used.values() and not is_fine:
            text = number_as_shown(str(sheet.rows.at[row, at]), kind)
            remedy = f"{_SHOWN.format(shown(text))}; or {_AS_TEXT}" if text else _AS_TEXT
            remedy = _SAVE if "formula" in kind.what else remedy
            yield row, Fault(columns.header[at], "not_text", f"the cell is {kind.what}, not text", remedy)


def _chosen(whole: pd.DataFrame, chooser: Chooser) -> list[Chosen]:
    """Return what each row chooses. Each distinct combination of cells is resolved once."""
    cells = whole[list(chooser.positions)].fillna(MISSING).itertuples(index=False, name=None)
    known: dict[tuple[str, ...], Chosen] = {}
    chosen = []
    for combination in cells:
        if combination not in known:
            known[combination] = chooser.choose(combination)
        chosen.append(known[combination])
    return chosen


def _problems(found: Sequence[Found], skus: pd.Series) -> pd.DataFrame:
    """Return the faults as a frame, in the order of the rows."""
    if not found:
        return pd.DataFrame([], columns=list(PROBLEM), dtype=object)
    # What is no text is not told to be empty, unknown or a placeholder too.
    unread = {(row, fault.column) for row, fault in found if fault.code == "not_text"}
    found = [one for one in found if one[1].code == "not_text" or (one[0], one[1].column) not in unread]
    lines = [(row, "", *fault[:5]) for row, fault in found]
    problems = pd.DataFrame(lines, columns=list(PROBLEM), dtype=object)
    problems["sku"] = skus.fillna("").str.strip().reindex(problems["row"]).to_numpy(dtype=object)
    problems = problems.drop_duplicates(["row", "column", "code", "message"])
    return problems.sort_values("row", kind="stable", ignore_index=True)


def _notes(sheet: Sheet, prompts: Sequence[str], offer: Offer) -> Iterator[str]:
    """Yield what is no fault, and should be seen before money is spent."""
    if sheet.layout != "CSV, commas, UTF-8":
        yield f"Read as {sheet.layout}."
    yield from sheet.notes
    together = "\n".join(prompts)
    if ("<" in together or "&" in together) and (marked := sum(map(bool, map(_MARKUP.search, prompts)))):
        yield f"{counted(marked, 'prompt')} with HTML such as <p> or &amp;, which is sent as written."
    yield from offer.notes


def report_lines(checked: Checked, most: int = 40) -> Iterator[str]:
    """Yield the report of a check: notes, each problem, and the count of rows."""
    for note in checked.notes:
        yield f"Note: {note}"
    for row, sku, column, code, message, remedy, _ in checked.problems.head(most).to_numpy().tolist():
        place = ", ".join(UNSAFE.sub("?", part)[:60] for part in (sku, column) if part).replace("\n", " ")
        yield f"  row {row} ({place}): {message}; {remedy} [{code}]"
    if len(checked.problems) > most:
        yield f"  and {len(checked.problems) - most:,} more; `--json`, or failures.csv of an import, has them all"
    sheet, accepted = checked.sheet, len(checked.rows)
    counts = f"{accepted:,} accepted, {checked.refused:,} refused" if checked.refused else "all accepted"
    blank = f", {counted(sheet.blank_rows, 'blank row')}" if sheet.blank_rows else ""
    yield f"{sheet.name}: {counted(len(sheet.rows), 'row')}, {counts}{blank}."


def report_json(checked: Checked) -> dict[str, Any]:
    """Return the report of a check for programs."""
    counts = {"rows": len(checked.sheet.rows), "accepted": len(checked.rows), "refused": checked.refused}
    problems = checked.problems.to_dict("records")
    proposals = [asdict(one) for one in checked.proposals]
    found = {"notes": list(checked.notes), "problems": problems, "proposals": proposals}
    return {"file": checked.sheet.name, **counts, **found}
