"""The selections of a row, matched to the offer; columns and cells that only look like selections, or are garbled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.column_mapping import NOTE_PREFIX
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, Option, listed, offer_key
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import OPTION_PREFIX, Columns, column_letter, header_key, is_blank, tidy
from patternmill.catalog.slips import error_finding
from patternmill.text import UNSAFE, contrasted, plain, shown

_EXAMPLE = 'write it as {"size": "large", "fabric": "linen"}'
_AS_UTF_8 = "a spreadsheet has to open and save the file as UTF-8"


@dataclass(frozen=True, slots=True)
class WrittenSelection:
    """One option chosen in a row, as written, and its column."""

    column: str
    option: str
    value: str


def offered(names: Sequence[str]) -> str:
    return f"offered: {listed(names) or 'none'}"


def did_you_mean(nearest: str | None, otherwise: str) -> str:
    return f"did you mean {shown(nearest)}?" if nearest else otherwise


def read_choices(
    cells: Sequence[str], columns: Columns, header: Sequence[str]
) -> tuple[tuple[WrittenSelection, ...], tuple[Finding, ...]]:
    """What the row chooses, and the faults of its JSON. An empty cell chooses nothing."""
    if columns.selections is not None:
        return _from_json(cells[columns.selections], header[columns.selections])
    chosen = (WrittenSelection(header[one.index], one.name, cells[one.index]) for one in columns.options)
    return tuple(one for one in chosen if one.value.strip()), ()


def resolve(
    choices: Iterable[WrittenSelection],
    category: Category | None,
    nearest: Nearest,
    elsewhere: Collection[str] = (),
    *,
    fill_in: Callable[[Option], str] = lambda option: f"fill in `option:{option.name}`",
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """The selections in the offered spelling, sorted by name, and everything that is wrong with them.

    `elsewhere`: the names of options in another column, which is a fault of its own; `fill_in`: the remedy where
    one is missing.
    """
    selections: dict[str, str] = {}
    findings: list[Finding] = []
    for choice in choices:
        unfit = unfit_finding(choice.column, choice.option) or unfit_finding(choice.column, choice.value)
        result = unfit or _matched(choice, category, nearest)
        if isinstance(result, Finding):
            findings.append(result)
        elif result[0] in selections:
            message = f"option {shown(result[0])} is chosen twice"
            findings.append(Finding(choice.column, RowCode.DUPLICATE_OPTION, message, "keep one of the two"))
        else:
            selections[result[0]] = result[1]
    return dict(sorted(selections.items())), (*findings, *_missing(choices, category, elsewhere, fill_in))


def resolved(
    offer: Offer | None, category: str, selections: Mapping[str, str]
) -> tuple[str, Mapping[str, str]] | None:
    """The ID of a category and its selections in the offered spelling; None where the offer has none, or several."""
    found = offer.find(category) if offer is not None else ()
    if len(found) != 1:
        return None
    choices = [WrittenSelection(name, name, value) for name, value in selections.items()]
    values, findings = resolve(choices, found[0], Nearest(0))
    return None if findings else (found[0].id, values)


class _Pairs(list[tuple[str, object]]):
    """A JSON object as its pairs, so that a repeated name is seen."""


def _from_json(cell: str, column: str) -> tuple[tuple[WrittenSelection, ...], tuple[Finding, ...]]:
    if not cell.strip():
        return (), ()
    try:
        value = json.loads(cell, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        return (), (_malformed(column, f"the selections are no JSON ({reason})"),)
    if not isinstance(value, _Pairs):
        return (), (_malformed(column, "the selections are no JSON object"),)
    return _from_pairs(value, column)


def _from_pairs(pairs: _Pairs, column: str) -> tuple[tuple[WrittenSelection, ...], tuple[Finding, ...]]:
    choices: dict[str, WrittenSelection] = {}
    findings: list[Finding] = []
    for name, value in pairs:
        if name in choices:
            findings.append(_malformed(column, f"the selections name {shown(name)} twice"))
        elif not isinstance(value, str):
            findings.append(_malformed(column, f"the value of {shown(name)} in the selections is no text"))
        elif not name.strip():
            findings.append(_malformed(column, "the selections hold a value without a name"))
        elif value.strip():
            choices[name] = WrittenSelection(column, name, value)
    return tuple(choices.values()), tuple(findings)


def _malformed(column: str, message: str) -> Finding:
    return Finding(column, RowCode.MALFORMED_SELECTIONS, message, _EXAMPLE)


def unfit_finding(column: str, cell: str) -> Finding | None:
    """The fault of a cell, or a name, with what is never written on purpose."""
    if found := mojibake_finding(column, cell) or error_finding(column, cell):
        return found
    if not UNSAFE.search(cell.strip(" \t\r\n")):
        return None
    message = f"invisible or control characters in {shown(cell)}"
    remedy = "type it by hand instead of pasting it"
    return Finding(column, RowCode.UNSAFE_CHARACTERS, message, remedy, cell, _visible_only(cell) or None)


def _visible_only(cell: str) -> str:
    """The cell without what cannot be seen; a line break or tab in it is a space."""
    return " ".join(UNSAFE.sub("", re.sub(r"\s", " ", cell)).split())


def mojibake_finding(column: str, cell: str) -> Finding | None:
    """A text that a program read in the wrong encoding and saved again, or in which it lost a character."""
    if cell.isascii():
        return None
    meant = unscrambled(cell) or cell
    if LOST in meant:
        message = f"a character was lost (U+FFFD) in {shown(cell[max(cell.find(LOST) - 20, 0) :])}"
        return Finding(column, RowCode.MOJIBAKE, message, f"write it again; {_AS_UTF_8}", cell)
    if meant == cell:
        return None
    was, suggested = contrasted(cell, tidy(meant))
    message = f"{was} was read in the wrong encoding by some program, and saved like that"
    remedy = f"it was probably {suggested}: write that; {_AS_UTF_8}"
    return Finding(column, RowCode.MOJIBAKE, message, remedy, cell, tidy(meant))


def _matched(
    choice: WrittenSelection, category: Category | None, nearest: Nearest
) -> tuple[str, str] | Finding:
    name, value = tidy(choice.option), tidy(choice.value)
    if category is None or category.options is None:
        return normalised(name), normalised(value)
    found = category.find_option(name)
    if found is None:
        return _unknown_option(choice.column, name, category, nearest)
    spelling, option = found
    offered_value = option.find_value(value)
    if offered_value is None:
        return _unknown_value(choice.column, option, value, nearest)
    return spelling, offered_value if option.values is not None else normalised(value)


def _unknown_option(column: str, name: str, category: Category, nearest: Nearest) -> Finding:
    names = tuple(option.name for option in category.options or ())
    message = f"unknown option {shown(name)} for category {shown(category.name)}; {offered(names)}"
    near = nearest.find(name, names)
    remedy = did_you_mean(near, "leave its cell empty")
    return Finding(column, RowCode.UNKNOWN_OPTION, message, remedy, name, near, names)


def _unknown_value(column: str, option: Option, value: str, nearest: Nearest) -> Finding:
    values = option.values or ()
    message = f"unknown value {shown(value)} for option {shown(option.name)}; {offered(values)}"
    near = nearest.find(value, values)
    remedy = did_you_mean(near, "choose one of them")
    return Finding(column, RowCode.UNKNOWN_VALUE, message, remedy, value, near, values)


def _missing(
    choices: Iterable[WrittenSelection],
    category: Category | None,
    elsewhere: Collection[str],
    fill_in: Callable[[Option], str],
) -> Iterator[Finding]:
    """Required options without a cell. One that was chosen wrongly is not missing as well."""
    written = {offer_key(choice.option) for choice in choices}
    for option in (category.options if category else None) or ():
        spellings = {offer_key(name) for name in (option.name, *option.spellings)}
        if option.required and option.name not in elsewhere and not written & spellings:
            values = option.values or ()
            message = f"option {shown(option.name)} is required; {offered(values)}"
            only = values[0] if len(values) == 1 else None
            yield Finding(None, RowCode.MISSING_OPTION, message, fill_in(option), option.name, only, values)


LOST = "\ufffd"
#: How often a text may have gone through it.
_MOST_TIMES = 3

#: Windows and Latin-1 in one: what cp1252 leaves undefined stays a control character, as in Latin-1.
_WINDOWS = {ord(bytes([byte]).decode("cp1252", "ignore") or chr(byte)): byte for byte in range(0x80, 0xA0)}
#: Every character of Latin-1 is another one in Mac Roman.
_MAC = dict.fromkeys(range(0x80, 0x100), 0xFFFF) | {
    ord(bytes([byte]).decode("mac_roman")): byte for byte in range(0x80, 0x100)
}

_TAIL = "[\x80-\xbf]"
_TWO, _THREE, _EMOJI = (
    f"[\xc2-\xdf]{_TAIL}",
    f"(?:\xe0[\xa0-\xbf]|[\xe1-\xef]{_TAIL}){_TAIL}",
    f"\xf0\x9f{_TAIL}{{2}}",
)
_ANY = re.compile(f"{_TWO}|{_THREE}|{_EMOJI}")
# By which bytes of UTF-8, as an encoding shows them, a text is known to be misread: letters with accents (C2 to C5),
# punctuation and signs (E2), marks (EF), emoji. Other scripts by some characters in a row: one may be `é”…`.
_SIGNS = (
    f"\xe2[\x80\x82\x84\x86\x88\x89\x98\x99\x9c\x9d]{_TAIL}|\xef\xbb\xbf|\xef\xbf\xbd|\xef\xb8\x8f|{_EMOJI}"
)
_SCRIPTS = f"(?:[\xce-\xd1\xd7-\xd9]{_TAIL}){{3,}}|(?:{_THREE}){{2,}}"
_IN_WINDOWS = re.compile(f"[\xc2-\xc5]{_TAIL}|(?<=[A-Za-z])\xcc{_TAIL}|{_SIGNS}|{_SCRIPTS}")
_IN_MAC = re.compile(
    f"\xc3[\x80-\x9f]|(?<=[A-Za-z])\xc3{_TAIL}|\xc3{_TAIL}(?=[A-Za-z])|\xc2[\xa0-\xbf]|{_SIGNS}"
    f"|(?<=[a-z])\xcc[\x80-\x9f]|{_SCRIPTS}"
)
#: Nearly every text is done with by this: what begins a misread character, in either encoding, before another sign.
_LEADS = re.escape(bytes({*range(0xC2, 0xD2), *range(0xD7, 0xDA), *range(0xE0, 0xF1)}).decode("mac_roman"))
_SUSPECT = re.compile(f"[\xc2-\xd1\xd7-\xd9\xe0-\xf0{_LEADS}][^\x00-\x7f]")
#: What may follow a capital letter with an accent at the end of a word: `NIÑO É…`, `«MAÇÃ»`.
_AFTER_A_WORD = frozenset("\x85\x91\x92\x93\x94\x96\x97\x99\xa0\xab\xae\xbb")


def unscrambled(text: str) -> str | None:
    """What the text was before it was misread; None when it does not look misread."""
    found = text
    for _ in range(_MOST_TIMES):
        before = found
        found = _undone(_undone(before, _MAC, _IN_MAC), _WINDOWS, _IN_WINDOWS)
        if found == before:
            break
    return found if found != text else None


def _undone(text: str, shown_as: Mapping[int, int], misread: re.Pattern[str]) -> str:
    if text.isascii() or not _SUSPECT.search(text):
        return text
    read = text.translate(shown_as)
    if all(_is_end_of_word(text, match) for match in misread.finditer(read)):
        return text
    parts, end = [], 0
    for match in _ANY.finditer(read):
        parts += [text[end : match.start()], match.group().encode("latin-1").decode("utf-8", "replace")]
        end = match.end()
    return "".join(parts) + text[end:]


def _is_end_of_word(text: str, match: re.Match[str]) -> bool:
    """A capital letter with an accent, and what may follow a word, rather than one letter misread."""
    lead = text[match.start()]
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return (
        match.end() - match.start() == 2
        and match.group()[1] in _AFTER_A_WORD
        and not after.isalpha()
        and (
            before.isupper()
            or (lead in "\u00c4\u00c5" and (not before or before in " \t\"'(\u201e\u201a\u00ab"))
        )
    )


#: What options are often called, for where the offer is not known.
_COMMON = frozenset({"size", "color", "fabric", "material", "finish"})
#: What a column of selections in JSON may be called by mistake.
_NEAR_SELECTIONS = frozenset({"selection", "option", "choice"})
#: Cells that do not show what their column is.
ANYWHERE = frozenset({"none", "yes", "no", "true", "false", "0", "1", "x", "-", "n/a"})
_SPELLINGS = {"colour": "color", "coloring": "color", "fibre": "fiber", "grey": "gray", "centre": "center"}
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_CALLED_OPTION = re.compile(r"^(options?|opts?)\b[ :.]*|[ :.]*\boptions?$")
_PLURAL = re.compile(r"(?<=sh)es$|(?<=ch)es$|(?<=x)es$|(?<=[^s])s$")
#: No option has more values.
_MOST_VALUES = 500

#: By category ID, and the index of the column.
Place = tuple[str, int]


class OptionColumns:
    """The carried columns of one file, compared with the options of the rows' categories."""

    def __init__(
        self, file: CatalogFile, category_of: Callable[[str], Category | None], nearest: Nearest
    ) -> None:
        self._file, self._category_of, self._nearest = file, category_of, nearest
        names = file.mapping.applied(file.header)
        self._carried = [index for index in file.columns.carried if not is_note(names[index])]
        self._names = {index: option_key(file.header[index]) for index in self._carried}
        self._common = [index for index, name in self._names.items() if name in _COMMON]
        self._near = [index for index, name in self._names.items() if name in _NEAR_SELECTIONS]
        self._by_values = self._found_by_values()
        #: By category ID: the columns that look like options of it, and like which.
        self._by_category: dict[str, Mapping[int, tuple[Option, ...]]] = {}

    def misplaced(
        self, cells: tuple[str, ...], category: Category | None, choices: Iterable[WrittenSelection]
    ) -> list[tuple[str | None, Finding]]:
        """Options in carried columns that the row chooses nowhere else: their names where known, and the findings."""
        if category is None or category.options is None:
            return [(None, self._unknown(index)) for index in self._common if not is_blank(cells[index])]
        columns = self._columns_of(category)
        chosen = _chosen(choices, category) if columns else frozenset()
        found: list[tuple[str | None, Finding]] = []
        for index, options in columns.items():
            option = next((option for option in options if option.name not in chosen), None)
            if option is not None and not is_blank(cells[index]):
                found.append((option.name, self._misplaced(index, cells[index], category, option)))
        for index in self._near:
            if cells[index].lstrip().startswith("{"):
                message = f"the selections in column {shown(self._file.header[index])} choose nothing"
                found.append((None, self._finding(index, message, "selections")))
        return found

    def like_options(self, cells: tuple[str, ...]) -> Iterator[WrittenSelection]:
        """What the row would choose by carried columns that have the name of a common option."""
        for index in self._common:
            if not is_blank(cells[index]):
                yield WrittenSelection(self._file.header[index], self._names[index], cells[index])

    def fill_in(self, category: Category | None, option: Option) -> str:
        """How a row of the category chooses an option that it does not choose yet."""
        place = self._right_place(category, option) if category is not None else None
        if place is not None:
            return f"fill in `option:{plain(option.name)}`" if self._file.columns.options else place
        for index, name in self._names.items():
            if category is not None and option in _named(category, name):
                header = shown(self._file.header[index])
                return f"rename the column {header} to `{OPTION_PREFIX}{plain(option.name)}`, and fill in its cell"
        return f"fill in `{OPTION_PREFIX}{plain(option.name)}`, a column that the file does not have yet"

    def _columns_of(self, category: Category) -> Mapping[int, tuple[Option, ...]]:
        if category.id not in self._by_category:
            both = {
                index: (*_named(category, name), *self._by_values.get((category.id, index), ()))
                for index, name in self._names.items()
            }
            self._by_category[category.id] = {index: options for index, options in both.items() if options}
        return self._by_category[category.id]

    def _misplaced(self, index: int, cell: str, category: Category, option: Option) -> Finding:
        header = self._file.header[index]
        column = shown(header) if header.strip() else column_letter(index)
        message = (
            f"{shown(cell)} in column {column} chooses nothing, but {shown(option.name)} is an option of category"
            f" {shown(category.name)}{self._unless_offered(cell, option)}"
        )
        place = self._right_place(category, option)
        name = f"{OPTION_PREFIX}{option.name}" if place is None else None
        return self._finding(index, message, name, place or "", note=option.name)

    def _unless_offered(self, cell: str, option: Option) -> str:
        """What a cell would have to be in its right place."""
        if option.find_value(tidy(cell)) is not None:
            return ""
        values = option.values or ()
        near = self._nearest.find(tidy(cell), values)
        return f", and is none of its values; {offered(values)}" + (
            f"; did you mean {shown(near)}?" if near else ""
        )

    def _unknown(self, index: int) -> Finding:
        """Of a column that has the name of a common option, where the offered options are unknown."""
        header = self._file.header[index]
        message = f"the options are not known, and column {shown(header)} chooses nothing as it is named"
        return self._finding(index, message, f"{OPTION_PREFIX}{header.strip()}")

    def _finding(
        self, index: int, message: str, name: str | None, place: str = "", *, note: str = ""
    ) -> Finding:
        """`name`: what the column should be called; None where `place` says how its cells belong elsewhere.

        `note`: what a column without a name may be called as a remark.
        """
        header = self._file.header[index]
        remedy = f"rename the column to `{plain(name)}`" if name else place
        rename = "to" if name else "rename the column to"
        remark = f"{rename} `{NOTE_PREFIX}{plain(header.strip() or note)}` if it is only a remark"
        return Finding(header, RowCode.OPTION_COLUMN, message, f"{remedy}, or {remark}", header, name)

    def _right_place(self, category: Category, option: Option) -> str | None:
        """Where the row's choice belongs, in a file that has a place for it; None: in a column of its own."""
        if self._file.columns.selections is not None:
            return f"write {shown(option.name)} into the selections"
        for column in self._file.columns.options:
            found = category.find_option(tidy(column.name))
            if found is not None and found[1].name == option.name:
                return f"write it into the column {shown(self._file.header[column.index])}"
        return None

    def _found_by_values(self) -> dict[Place, tuple[Option, ...]]:
        """The options that have all cells of a column as values, and that no row of the category chooses elsewhere."""
        categories: dict[str, Category] = {}
        values: dict[Place, set[str]] = {}
        for cells, category in self._rows():
            categories[category.id] = category
            for index in self._carried:
                known = values.setdefault((category.id, index), set())
                if len(known) <= _MOST_VALUES and not is_blank(cells[index]):
                    known.add(cells[index])
        found = {place: _options_with(categories[place[0]], known) for place, known in values.items()}
        chosen = self._chosen_by_any_row({category for (category, _), options in found.items() if options})
        return {
            place: tuple(option for option in options if option.name not in chosen[place[0]])
            for place, options in found.items()
            if options
        }

    def _chosen_by_any_row(self, category_ids: set[str]) -> dict[str, frozenset[str]]:
        chosen = dict.fromkeys(category_ids, frozenset[str]())
        for cells, category in self._rows() if category_ids else ():
            if category.id in category_ids:
                choices, _ = read_choices(cells, self._file.columns, self._file.header)
                chosen[category.id] |= _chosen(choices, category)
        return chosen

    def _rows(self) -> Iterator[tuple[tuple[str, ...], Category]]:
        """The cells of the rows whose category has known options."""
        width, index = len(self._file.header), self._file.columns.category
        for record in self._file.records if self._carried else ():
            category = self._category_of(record.cells[index]) if len(record.cells) == width else None
            if category is not None and category.options is not None:
                yield record.cells, category


def is_note(header: str) -> bool:
    before, colon, _ = header_key(header).partition(":")
    return bool(colon) and before.rstrip() == NOTE_PREFIX[:-1]


def _options_with(category: Category, cells: set[str]) -> tuple[Option, ...]:
    """The options that offer each of these cells as a value."""
    if not cells or len(cells) > _MOST_VALUES or {offer_key(cell) for cell in cells} <= ANYWHERE:
        return ()
    return tuple(
        option
        for option in category.options or ()
        if option.values is not None and all(option.find_value(tidy(cell)) is not None for cell in cells)
    )


def _chosen(choices: Iterable[WrittenSelection], category: Category) -> frozenset[str]:
    found = (category.find_option(tidy(choice.option)) for choice in choices)
    return frozenset(option.name for _, option in filter(None, found))


def _named(category: Category, name: str) -> tuple[Option, ...]:
    """The options that this can be the name of."""
    return tuple(
        option
        for option in category.options or ()
        if name and name in map(option_key, (option.name, *option.spellings))
    )


def option_key(text: str) -> str:
    """What common names of one option share: `Colour`, `colors`, `Color (inside)`."""
    key = _CALLED_OPTION.sub("", offer_key(_ASIDE.sub(" ", text))) or offer_key(text)
    words = (_PLURAL.sub("", word) if len(word) > 3 else word for word in key.split())
    return " ".join(_SPELLINGS.get(word, word) for word in words)
