"""The rows of a sheet as the catalog keeps them."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from patternmill.changes import NO_SKU
from patternmill.items import Row, likeness_of
from patternmill.plan import Plan
from patternmill.text import sku_key

if TYPE_CHECKING:
    from patternmill.tables.checks import Checked

_EMPTY = {"content": "", "likeness": "", "pattern": "", "take": 1, "refusal": "", "wants": "", "built_on": ""}
#: What of a row makes it another one in the catalog.
_SAME = ("position", "number", "cells", "corrects", "refusal", "wants")


@dataclass(frozen=True)
class Stored:
    """The rows of a catalog by key, the headers of their runs by ID, and the keys of rows that need a person."""

    rows: Mapping[str, Any]
    headers: Mapping[str, str]
    unwell: Collection[str] = ()


def content_of(checked: "Checked", number: int) -> str:
    """Return what a row that is fit says, as JSON."""
    row: Any = checked.rows.loc[number]
    return _content(row["prompt"], row["category_id"], row["category"], row["selections"], row["extras"])


def _content(prompt: str, category_id: str, category: str, selections: str, extras: str) -> str:
    said: dict[str, Any] = {"prompt": prompt, "category_id": category_id, "category": category}
    more: dict[str, Any] = json.loads(extras) if extras else {}
    more.pop("kept_take", None)  # it counts where nothing is decided, and is a decision from then on
    said |= {"extras": more} if more else {}
    return json.dumps({**said, "selections": json.loads(selections)}, ensure_ascii=False)


def records(
    checked: "Checked", plan: Plan, stored: Stored, run_id: str, is_part: bool
) -> list[dict[str, Any]]:
    """Return a record for each row of a sheet; `differs` says whether the catalog has it otherwise, or not at all.

    A part of a catalog leaves the positions of rows as they are; its new rows come last. `replaces` is the key of the
    row without a usable sku that a row of a part was before.
    """
    from patternmill.tables.kept import header_of, kept_cells

    fit = checked.rows[["prompt", "category_id", "category", "selections", "extras"]]
    contents = dict(zip(fit.index.tolist(), fit.itertuples(index=False, name=None), strict=True))
    wanted = dict(zip(map(attrgetter("number"), plan.rows), plan.rows, strict=True))
    refusals = refusals_of(checked) if len(checked.problems) else {}
    after = max(map(attrgetter("position"), stored.rows.values()), default=-1) + 1
    skus, header = skus_of(checked), header_of(checked.columns)
    earlier = _Earlier(checked.columns.title("sku"), stored) if is_part else None
    keys = dict(zip(contents, map(sku_key, map(skus.__getitem__, contents)), strict=True))
    taken, made = set(keys.values()), list[dict[str, Any]]()
    for place, (number, cells) in enumerate(kept_cells(checked.sheet, checked.columns).items()):
        sku = skus[number]
        record: dict[str, Any] = {**_EMPTY, "number": number, "cells": cells, "run": run_id, "sku": sku}
        record["key"] = keys.get(number) or sku_key(sku)
        if number in contents:
            record["content"] = _content(*contents[number])
        if row := wanted.get(number):
            record |= wanted_by(row)
        else:
            refusal = refusals.get(number) or _renamed(plan.changes.renamed[number])
            record["refusal"] = json.dumps(refusal, ensure_ascii=False)
            if number not in keys and (refusal["is_of_sku"] or record["key"] in taken):
                record["key"] = f"{NO_SKU}{number}" + (f"/{checked.sheet.name}" if is_part else "")
            taken.add(record["key"])
        record |= {"position": place, "corrects": checked.sheet.corrected.get(number, ""), "replaces": ""}
        if earlier:
            record |= {"position": after + place, **earlier.of(record, header)}
        known = stored.rows.get(record["key"])
        record["differs"] = known is None or known.retired is not None or any(
            getattr(known, name) != record[name] for name in _SAME
        ) or stored.headers.get(known.run) != header  # fmt: skip
        made.append(record)
    return made


def wanted_by(row: Row) -> dict[str, Any]:
    """Return what the catalog keeps of the item that a row wants."""
    built_on = row.product.parent.id if row.product.parent else ""
    wants = {"wants": row.product.id, "built_on": built_on, "likeness": likeness_of(row.product)}
    return {**wants, "pattern": row.pattern, "take": row.take}


class _Earlier:
    """What the rows of a part were before: by their key, or by their other cells where that had no usable sku."""

    def __init__(self, sku: str, stored: Stored) -> None:
        self._sku, self._stored, self._nameless = sku, stored, defaultdict[Any, list[Any]](list)
        for name, row in stored.rows.items():
            if name.startswith(NO_SKU):
                self._nameless[self._texts(stored.headers[row.run], row.cells)].append(row)

    def of(self, record: Mapping[str, Any], header: str) -> dict[str, Any]:
        """Return what of a record follows from the row that it was."""
        key, texts, replaces = record["key"], self._texts(header, record["cells"]), ""
        row = self._stored.rows.get(key)
        if row is None and (same := self._nameless.get(texts)):
            row = same.pop(0)
            key, replaces = (row.key, "") if key.startswith(NO_SKU) else (key, row.key)
        if row is None:
            return {}
        is_other = bool(row.refusal) != bool(record["refusal"])
        is_other |= texts != self._texts(self._stored.headers[row.run], row.cells)
        corrects = row.corrects or (row.cells if is_other and row.key in self._stored.unwell else "")
        return {"key": key, "replaces": replaces, "position": row.position, "corrects": corrects}

    def _texts(self, header: str, cells: str) -> Any:
        pairs = zip_longest(json.loads(header), json.loads(cells), fillvalue="")
        texts = ((name, text[0] if isinstance(text, list) else text) for name, text in pairs)
        return tuple(sorted(one for one in texts if one[1] and one[0] != self._sku))


def skus_of(checked: "Checked") -> dict[int, str]:
    """Return the sku of each row, as it is written."""
    problems = zip(checked.problems["row"], checked.problems["sku"], strict=True)
    return {**dict(problems), **dict(zip(checked.rows.index, checked.rows["sku"], strict=True))}


def refusals_of(checked: "Checked") -> dict[int, dict[str, Any]]:
    """Return the refusal of each row with a problem: its first one, and the others after it."""
    found: dict[int, dict[str, Any]] = {}
    title = checked.columns.title("sku") if checked.columns.used else "sku"
    columns = (checked.problems[name] for name in ("row", "column", "code", "message", "remedy"))
    for row, column, code, message, remedy in zip(*columns, strict=True):
        column = column if isinstance(column, str) else ""
        if row in found:
            found[row]["remedy"] += (
                f"{'' if found[row]['remedy'].endswith('?') else '.'} Also: {message}; {remedy}"
            )
        else:
            said = {"code": code, "message": message, "remedy": remedy, "column": column}
            found[row] = {**said, "is_of_sku": False}
        found[row]["is_of_sku"] |= column == title
    return found


def _renamed(sku: str) -> dict[str, Any]:
    """Return the refusal of a row whose content an unnamed product of another sku has."""
    message = (
        f"the sku is new, and {sku}, which this sheet does not name, has just this content: it looks renamed"
    )
    remedy = "write the old sku again, or allow it with --rename, which buys it anew"
    return {"code": "rename", "message": message, "remedy": remedy, "column": "sku", "is_of_sku": False}
