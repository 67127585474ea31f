"""Which column of a sheet is which column of a catalog: by its own name, or by what a mapping says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patternmill.contract import NO_CONTRACT, Contract
from patternmill.errors import InputRefused
from patternmill.tables.mapping import BEYOND, NEEDED, NOTE, OPTION, OURS, SELECTIONS, SheetMapping, Unsaid
from patternmill.tables.proposals import column_proposals
from patternmill.tables.sheet import Sheet
from patternmill.text import key, shown

#: Columns of what a pattern is made by, beside its prompt. All but the first need a promise of the service.
_EXTRAS = ("take", "model", "reference", "refine:", "field:")


@dataclass(frozen=True)
class Columns:
    """The columns of a sheet by their positions, from 0."""

    header: tuple[str, ...]
    #: `sku`, `prompt`, `category`, `selections`, each `option:NAME`; `option:` and NUL where its values name it.
    used: Mapping[str, int]
    #: Those that results give back: all but the results of an earlier run.
    carried: tuple[int, ...]
    #: Of the used ones: those that choose options, and those that say by what a pattern is made beside its prompt.
    choices: Mapping[str, int] = field(default_factory=dict)
    extras: Mapping[str, int] = field(default_factory=dict)
    #: Carried ones that nobody said are remarks: an option must not hide there.
    unsaid: tuple[int, ...] = ()
    #: Why the sheet is refused as a whole, once it is checked as it may be meant.
    doubts: tuple[Unsaid, ...] = ()
    #: In a file that is the results of a run: our columns, and that of the cells beyond its header.
    run: int | None = None
    beyond: int | None = None
    error: int | None = None

    @property
    def titles(self) -> list[str]:
        """Return the titles of the carried columns."""
        return list(map(self.header.__getitem__, self.carried))

    def title(self, name: str) -> str:
        return self.header[self.used[name]]


def read_columns(sheet: Sheet, mapping: SheetMapping, contract: Contract = NO_CONTRACT) -> Columns:
    """Return what each column of a sheet is. Raises InputRefused where one is missing, double or contradictory.

    Where missing ones are probably there under other names, they are read as such, and doubted.
    """
    columns, doubts = _read(sheet.header, sheet.name, mapping, contract), sheet.doubts
    if missing := [name for name in NEEDED if name not in columns.used]:
        proposals = column_proposals(sheet, columns.unsaid, missing)
        message = f"{sheet.name} has no column {' or '.join(map(shown, missing))}."
        remedy = "The header names sku, prompt, category, and `option:NAME` for each option, or `selections`."
        doubts = (*doubts, Unsaid("missing_column", message, remedy, proposals))
        if len(proposals) < len(missing):
            raise Unsaid.of(doubts, ())
        columns = _read(sheet.header, sheet.name, mapping.plus(proposals), contract)
    return replace(columns, doubts=doubts)


def _read(header: Sequence[str], name: str, mapping: SheetMapping, contract: Contract) -> Columns:
    meanings = list(map(mapping.meaning, header))
    results = _results(meanings)
    ours = set(results.values())
    used, choices, extras = dict[str, int](), dict[str, int](), dict[str, int]()
    carried, unsaid = list[int](), list[int]()
    for at, meaning in enumerate(meanings):
        if at in ours:
            continue
        carried.append(at)
        is_extra = meaning in _EXTRAS or meaning.startswith(("refine:", "field:"))
        if is_extra and meaning != "take" and not contract.promises(meaning):
            raise _not_promised(name, header[at])
        if meaning in (*NEEDED, SELECTIONS) or meaning.startswith(OPTION) or is_extra:
            meaning = f"{OPTION}\0{at}" if meaning == OPTION else meaning
            if meaning in used:
                twice = f"{shown(header[used[meaning]])} and {shown(header[at])}"
                message = f"{name} has the column {shown(meaning)} twice: {twice}."
                raise InputRefused("duplicate_header", message, "Rename or delete one of them.")
            used[meaning] = at
            if meaning not in NEEDED:
                (extras if is_extra else choices)[meaning] = at
        elif meaning not in ("", NOTE):
            unsaid.append(at)
    _refuse_gone(header, name, mapping, used)
    if "take" in results:
        extras["kept_take"] = results["take"]
    ours_at = map(results.get, ("run", BEYOND, "error"))
    return Columns(tuple(header), used, tuple(carried), choices, extras, tuple(unsaid), (), *ours_at)


def run_column(header: Sequence[str], mapping: SheetMapping) -> int | None:
    """Return the position of our column `run`, in a file that is the results of a run."""
    return _results(list(map(mapping.meaning, header))).get("run")


def _not_promised(name: str, title: str) -> InputRefused:
    message = (
        f"{name} has the column {shown(title)}, which the service's file does not promise to take repeatedly."
    )
    remedy = (
        f'Delete it; carry it along ("{title}" = "note" in the mapping); or see PATTERNMILL_SERVICE_FILE.'
    )
    return InputRefused("not_promised", message, remedy)


def _results(meanings: Sequence[str]) -> dict[str, int]:
    """Return the columns that a run added: the last ones of their names, where there are both `run` and `status`."""
    if "run" not in meanings or "status" not in meanings:
        return {}
    return {name: at for at, name in enumerate(meanings) if name in OURS}


def _refuse_gone(header: Sequence[str], name: str, mapping: SheetMapping, used: Mapping[str, int]) -> None:
    """Refuse a sheet without a column that was confirmed, or with two that mean the same."""
    keys = set(map(key, header))
    for written, meant in mapping.columns.items():
        if key(written) not in keys and mapping.named[key(written)] not in (*used, NOTE):
            message = f"{name} has no column {shown(written)}, which its mapping says is {shown(meant)}."
            raise InputRefused("mapping_changed", message, "Add it; or take its line out of the mapping.")
    if SELECTIONS in used and any(one.startswith(OPTION) for one in used):
        message = f"{name} has both `selections` and `option:` columns, which mean the same."
        raise InputRefused("conflicting_columns", message, "Keep one of them.")
