"""Proposes what headers and words of a sheet probably mean, by the vocabulary and by nearness. Decides nothing."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from patternmill.tables.cells import Fault
from patternmill.tables.mapping import NOTE, OPTION, Proposal, Section, either, meaning
from patternmill.tables.sheet import Sheet
from patternmill.text import counted, nearest
from patternmill.vocabulary import FEW, columns_called, things

#: For how many words there are proposals: a sheet with more is wrong as a whole.
_MOST = 100


def column_proposals(sheet: Sheet, open_at: Sequence[int], missing: Sequence[str]) -> list[Proposal]:
    """Return which of the open columns each missing one may be; no header is the first choice for two of them.

    Certain is one that is called so and nothing else, beside no other that may be meant.
    """
    left = {at: sheet.header[at].strip() for at in open_at if sheet.header[at].strip()}
    sure = {name: [at for at in left if things(left[at], "column") == {name}] for name in missing}
    found: dict[str, Proposal] = {}
    for name in sorted(missing, key=lambda name: not sure[name]):
        near = nearest(name, left.values())
        fit = [at for at in left if name in columns_called(left[at]) and at not in sure[name]]
        fit = [*sure[name], *fit] or [at for at in left if left[at] == near]
        lines = [Proposal("columns", left[at], name, sheet.sample(at)) for at in fit[:FEW]]
        if lines:
            found[name] = either(lines, is_certain=len(fit) == len(sure[name]) == 1)
            del left[fit[0]]
    return [found[name] for name in missing if name in found]


def row_proposals(
    found: Iterable[tuple[int, Fault]], used: Collection[str], known: Collection[str]
) -> Iterator[Proposal]:
    """Yield lines that would mend faults: what columns choose, then what words mean.

    `used` are the sheet's columns by their meanings; `known` what a mapping says: another line would not mend that.
    """
    groups = defaultdict[tuple[Section, str], Counter[Fault]](Counter)
    for _, fault in found:
        column = (fault.column or "").strip()
        if fault.code in ("unknown_category", "unknown_value") and fault.written not in known:
            groups["values", fault.written][fault] += 1
        elif fault.code == "option_column" or (
            fault.code == "unknown_option" and column.casefold().startswith(OPTION)
        ):
            groups["columns", column][fault] += 1
    every = (_line(section, written, faults) for (section, written), faults in islice(groups.items(), _MOST))
    lines = [one for one in every if one and (one.section == "values" or meaning(one.meant) not in used)]
    rivals, said = Counter(one.meant for one in lines if one.section == "columns"), set[str]()
    for one in sorted(lines, key=attrgetter("section")):
        if one.section == "values" or one.meant not in said:
            yield replace(one, is_certain=one.is_certain and rivals[one.meant] < 2)
        said.add(one.meant)


def _line(section: Section, written: str, faults: Counter[Fault]) -> Proposal | None:
    """Return the line that would mend these faults of one word or header, if anything is likely."""
    fault = next(iter(faults))
    about = f"{fault.column}, " * (section == "values") + counted(faults.total(), "row")
    prefix = OPTION * (fault.code == "unknown_option")
    names = [*dict.fromkeys(prefix + name for one in faults for name in one.likely.names)][:FEW]
    is_certain = len(names) == 1 and all(one.likely.is_certain for one in faults)
    names += [NOTE] * (fault.code == "option_column")
    lines = [Proposal(section, written, name, about) for name in names]
    return either(lines, is_certain=is_certain) if lines else None
