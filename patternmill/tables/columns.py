"""Which column of a sheet is which column of a catalog: by its own name, or by what a mapping says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patternmill.errors import InputRefused
from patternmill.tables.mapping import NEEDED, NOTE, OPTION, OURS, SELECTIONS, ColumnsRefused, SheetMapping
from patternmill.text import key, shown

#: Columns for what the interface does not show. Nothing is built on a guess, and a create that may not be repeated.
_UNPROMISED = frozenset({"model", "reference"})


@dataclass(frozen=True)
class Columns:
    """The columns of a sheet by their positions, from 0."""

    header: tuple[str, ...]
    #: `sku`, `prompt`, `category`, `selections`, each `option:NAME`; `option:` and NUL where its values name it.
    used: Mapping[str, int]
    #: Those that results give back: all but the results of an earlier run.
    carried: tuple[int, ...]
    #: Carried ones that nobody said are remarks: an option must not hide there.
    unsaid: tuple[int, ...] = ()
    #: Our column `run`, in a file that is the results of a run; and that of the cells beyond its header.
    run: int | None = None
    beyond: int | None = None

    @property
    def choices(self) -> dict[str, int]:
        """Return the positions of the columns that choose options."""
        choices = dict(self.used)
        for name in NEEDED:
            choices.pop(name, None)
        return choices

    def title(self, name: str) -> str:
        return self.header[self.used[name]]


def read_columns(header: Sequence[str], name: str, mapping: SheetMapping) -> Columns:
    """Return what each column of a sheet is. Raises InputRefused where one is missing, double or contradictory."""
    meanings = list(map(mapping.meaning, header))
    results = _results(meanings)
    ours = set(results.values())
    used: dict[str, int] = {}
    carried, unsaid = list[int](), list[int]()
    for at, meaning in enumerate(meanings):
        if at in ours:
            continue
        carried.append(at)
        if meaning in (*NEEDED, SELECTIONS) or meaning.startswith(OPTION):
            meaning = f"{OPTION}\0{at}" if meaning == OPTION else meaning
            if meaning in used:
                twice = f"{shown(header[used[meaning]])} and {shown(header[at])}"
                message = f"{name} has the column {shown(meaning)} twice: {twice}."
                raise InputRefused("duplicate_header", message, "Rename or delete one of them.")
            used[meaning] = at
        elif meaning in _UNPROMISED or meaning.startswith("refine:"):
            message = (
                f"{name} has the column {shown(header[at])}, for which the service does not promise repeats."
            )
            raise InputRefused(
                "not_promised", message, f'Delete it, or carry it along: "{header[at]}" = "note".'
            )
        elif meaning not in ("", NOTE):
            unsaid.append(at)
    _refuse_missing(header, name, mapping, used)
    ours_at = results.get("run"), results.get("surplus")
    return Columns(tuple(header), used, tuple(carried), tuple(unsaid), *ours_at)


def _results(meanings: Sequence[str]) -> dict[str, int]:
    """Return the columns that a run added: the last ones of their names, where there are both `run` and `status`."""
    if "run" not in meanings or "status" not in meanings:
        return {}
    return {name: at for at, name in enumerate(meanings) if name in OURS}


def _refuse_missing(header: Sequence[str], name: str, mapping: SheetMapping, used: Mapping[str, int]) -> None:
    """Refuse a sheet without a needed column, without one that was confirmed, or with two that mean the same."""
    if not used.keys() >= set(NEEDED):
        raise ColumnsRefused(name, header, [one for one in NEEDED if one not in used])
    keys = set(map(key, header))
    for written, meant in mapping.columns.items():
        if key(written) not in keys and mapping.named[key(written)] not in (*used, NOTE):
            message = f"{name} has no column {shown(written)}, which its mapping says is {shown(meant)}."
            raise InputRefused("mapping_changed", message, "Add it; or take its line out of the mapping.")
    if SELECTIONS in used and any(one.startswith(OPTION) for one in used):
        message = f"{name} has both `selections` and `option:` columns, which mean the same."
        raise InputRefused("conflicting_columns", message, "Keep one of them.")
