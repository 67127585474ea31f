"""What headers and words of a sheet were probably meant as, by the vocabulary and by nearness. It decides nothing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from operator import attrgetter

import pandas as pd

from patternmill.tables.cells import Fault
from patternmill.tables.mapping import NOTE, OPTION, Proposal, Section, either
from patternmill.tables.vocabulary import Kind, alike, column_names, columns_called, things, translated
from patternmill.text import counted, key, nearest, shown

#: How many that may be meant are named; and for how many words: a sheet with more of them is wrong as a whole.
_FEW, _MOST = 3, 100
KINDS: Mapping[str, Kind] = {
    "unknown_category": "categories", "unknown_value": "values", "unknown_option": "options"
}  # fmt: skip


def counterparts(text: str, offered: tuple[str, ...], kind: Kind) -> list[str]:
    """Return the offered names of what the trade calls so."""
    by_thing = _by_thing(offered, kind)
    return list(dict.fromkeys(name for one in things(text, kind) for name in by_thing.get(one, ())))


@lru_cache(256)
def _by_thing(offered: tuple[str, ...], kind: Kind) -> Mapping[str, list[str]]:
    found = defaultdict[str, list[str]](list)
    for name in offered:
        for one in things(name, kind):
            found[one].append(name)
    return dict(found)


@lru_cache
def likeliest(text: str, offered: tuple[str, ...], kind: Kind) -> str | None:
    """Return the offered name that was probably meant."""
    return next(iter(counterparts(text, offered, kind)), None) or nearest(text, offered)


def _nearest_few(text: str, offered: tuple[str, ...], kind: Kind) -> list[str]:
    """Return the few offered names that look alike, also as they are called in other languages."""
    called = {
        name: one for one in reversed(offered) for name in (*alike(one, kind), translated(one, kind), one)
    }
    found: list[str] = []
    for written in (text, translated(text, kind)):
        while len(found) < _FEW and (near := nearest(written, called)):
            found.append(called[near])
            called = {name: one for name, one in called.items() if one not in found}
    return found


def column_proposals(
    header: Sequence[str], open_at: Iterable[int], missing: Sequence[str], sample: Callable[[int], str]
) -> list[Proposal]:
    """Return which of the open columns each missing one may be. No header is proposed first for two of them.

    Certain is one that is called so and nothing else, beside no other that may be meant.
    """
    called = {at: columns_called(header[at]) for at in open_at if header[at].strip()}
    found: dict[str, Proposal] = {}
    for name in sorted(missing, key=lambda name: {name} not in called.values()):
        fit = sorted((at for at in called if name in called[at]), key=lambda at: len(called[at]))
        is_certain = len(fit) == 1 and called[fit[0]] == {name}
        names = column_names("columns", name)
        fit = fit or [at for at in called if get_close_matches(key(header[at]), names, 1, 0.8)]
        if lines := [Proposal("columns", header[at].strip(), name, sample(at)) for at in fit[:_FEW]]:
            found[name] = either(lines, is_certain=is_certain)
            del called[fit[0]]
    return [found[name] for name in missing if name in found]


def row_proposals(
    found: Sequence[tuple[int, Fault]], rows: pd.DataFrame, titles: Mapping[int, str], known: Collection[str]
) -> Iterator[Proposal]:
    """Yield lines that would mend faults: what columns choose, then what words mean.

    `titles` are the headers that nobody has said anything about, by their positions. `known` are words that a mapping
    says: another line would not mend them.
    """
    groups = defaultdict[tuple[Section, str], Counter[Fault]](Counter)
    for _, fault in found:
        column = (fault.column or "").casefold()
        if fault.code in ("unknown_category", "unknown_value") and fault.written not in known:
            groups["values", key(fault.written)][fault] += 1
        elif fault.code == "option_column" or (fault.code == "unknown_option" and column.startswith(OPTION)):
            groups["columns", key(column)][fault] += 1
    likely = [_line(section, faults) for (section, _), faults in islice(groups.items(), _MOST)]
    lines = [*_by_value(found, rows, titles), *sorted(filter(None, likely), key=attrgetter("section"))]
    rivals = Counter(one.meant for one in lines if one.section == "columns")
    yield from (replace(one, is_certain=one.is_certain and rivals[one.meant] < 2) for one in lines)


def _line(section: Section, faults: Counter[Fault]) -> Proposal | None:
    """Return the line that would mend these faults of one word or header, if anything is likely."""
    choices, is_certain = dict[str, None](), True
    for fault in faults:
        if fault.code == "option_column":
            choices[fault.suggestion or ""] = None
            continue
        kind, prefix = KINDS[fault.code], OPTION * (fault.code == "unknown_option")
        same = counterparts(fault.written, fault.offered, kind)
        is_certain &= len(same) == 1
        meant = same[:_FEW] or _nearest_few(fault.written, fault.offered, kind)
        choices |= dict.fromkeys(prefix + one for one in meant)
    is_certain &= len(choices) == 1
    choices |= {NOTE: None} if fault.code == "option_column" else {}
    column = (fault.column or "").strip()
    written, about = column, counted(faults.total(), "row")
    if section == "values":
        written, about = fault.written, f"{shown(column)}, {about}"
    lines = [Proposal(section, written, meant, about) for meant in islice(choices, _FEW + 1)]
    return either(lines, is_certain=is_certain) if lines else None


def _by_value(
    found: Iterable[tuple[int, Fault]], rows: pd.DataFrame, titles: Mapping[int, str]
) -> Iterator[Proposal]:
    """Yield which columns may choose an option that is left out: all of their cells are values of it."""
    missing = defaultdict[tuple[str, tuple[str, ...]], list[int]](list)
    for row, fault in found:
        if fault.code == "missing_option" and fault.offered:
            missing[fault.suggestion or "", fault.offered].append(row)
    for (meant, offered), numbers in missing.items():
        lines = []
        for at, header in titles.items():
            cells = [one for one in rows.loc[numbers, at].dropna().str.strip().unique() if one]
            if cells and all(counterparts(cell, offered, "values") for cell in cells[:_MOST]):
                lines.append(Proposal("columns", header.strip(), meant, ", ".join(cells[:_FEW])))
        if lines:
            yield either(lines[:_FEW])
