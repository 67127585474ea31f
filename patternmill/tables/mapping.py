"""`NAME.mapping.toml` beside a sheet: what its columns and words mean, and how it is read."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from patternmill.errors import InputRefused
from patternmill.files import write_whole
from patternmill.text import UNSAFE, key, nearest, shown

NEEDED = ("sku", "prompt", "category")
OPTION, SELECTIONS, NOTE = "option:", "selections", "note"
#: The columns that results add to the sheet's own, and the one for cells that a row had beyond its header.
RESULTS = ("status", "product_id", "pattern_id", "error_code", "error", "take", "run")
BEYOND = "surplus"
OURS = frozenset((*RESULTS, BEYOND))
#: Columns of a catalog, by the keys of their names.
_NAMES = (*NEEDED, SELECTIONS, NOTE, *OURS)
_OURS = dict(zip(map(key, _NAMES), _NAMES, strict=True)) | {"category id": "category"}
#: What other programs call a column. It is proposed to a person, never taken.
_OFTEN = {
    "sku": ("article number", "artikelnummer", "art.-nr.", "artikel", "item number", "variant sku", "id"),
    "prompt": ("prompt text", "description", "title", "motif", "motiv", "design", "pattern", "beschreibung"),
    "category": ("product type", "type", "produktart", "kategorie", "warengruppe", "catégorie", "product"),
}


@dataclass(frozen=True)
class Proposal:
    """A line of a mapping that a person may confirm: what a column or a word of the sheet was probably meant as."""

    kind: Literal["column", "value", "reading"]
    written: str
    meant: str
    #: What a person should see with it.
    about: str = ""

    @property
    def line(self) -> str:
        about = f"  # {self.about}" if self.about else ""
        return f"{_quoted(self.written)} = {_quoted(self.meant)}{about}"


class ColumnsRefused(InputRefused):
    """Needed columns are not there under their names; `proposals` are the headers that may be meant."""

    def __init__(self, name: str, header: Sequence[str], missing: Sequence[str]) -> None:
        message = f"{name} has no column {' or '.join(map(shown, missing))}."
        remedy = "The header names sku, prompt, category, and `option:NAME` for each option, or `selections`."
        self.proposals = tuple(_propose(header, missing))
        if lines := "".join(f"\n  {one.line}" for one in self.proposals):
            file = f"{Path(name).stem}.mapping.toml"
            remedy = f"Rename them; or confirm what they are in {file}, beside the sheet:\n  [columns]{lines}"
        super().__init__("missing_column", message, remedy)


def _is_meaning(text: str) -> str:
    name = meaning(text)
    if name in (*NEEDED, SELECTIONS, NOTE, OPTION) or name.startswith(OPTION):
        return text
    names = "sku, prompt, category, option:NAME, option, selections or note"
    raise ValueError(f"{text!r} is no column of a catalog; write {names}")


def meaning(header: str) -> str:
    """Return the catalog's name of a column, or the header's key where it is none of them."""
    header = UNSAFE.sub("", header)
    prefix, colon, rest = header.partition(":")
    name = key(prefix)
    if name == "option":
        return OPTION + key(rest)
    if colon and name in ("refine", "field"):
        return f"{name}:{key(rest)}"
    return NOTE if colon and name == NOTE else _OURS.get(key(header), key(header))


class Reading(BaseModel):
    """How a sheet is read; what is left out is seen from the sheet itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    encoding: str | None = None
    delimiter: Annotated[str | None, Field(pattern=r'^[^"\r\n]$')] = None
    worksheet: str | None = None
    header: Annotated[int | None, Field(ge=1)] = None
    #: Skus that are numbers are those that the workbook shows: `00012`.
    numbers: Literal["as shown"] | None = None


class SheetMapping(BaseModel):
    """What a person said about the sheets of one name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Header -> `sku`, `prompt`, `category`, `option:NAME`, `option` (named by its values), `selections` or `note`.
    columns: dict[str, Annotated[str, AfterValidator(_is_meaning)]] = {}
    #: Word of the sheet -> category or value of the offer.
    values: dict[str, str] = {}
    reading: Reading = Reading()

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Return what each word means, by the word's key."""
        return dict(zip(map(key, self.values), self.values.values(), strict=True))

    @cached_property
    def named(self) -> Mapping[str, str]:
        """Return what each column means, by its header's key."""
        return dict(zip(map(key, self.columns), map(meaning, self.columns.values()), strict=True))

    def meaning(self, header: str) -> str:
        """Return the catalog's name of a column, by this mapping or by its own name."""
        return (header not in OURS and self.named.get(key(header))) or meaning(header)

    def score(self, cells: Sequence[str]) -> tuple[bool, int, int]:
        """Return how well a row names the columns: whether all needed ones, how many, and how many it may mean."""
        names = set(map(self.meaning, cells))
        known = likely = 0
        for name in names:
            known += name in (*NEEDED, SELECTIONS) or name.startswith(OPTION)
        known += names >= {"run", "status"}
        for name, often in _OFTEN.items():
            likely += not names.isdisjoint((name, *often))
        return names >= set(NEEDED), known, likely

    def over(self, texts: Iterable[str], header: Iterable[str]) -> "SheetMapping":
        """Return the mapping over earlier ones (JSON, the oldest first), for a file that has their columns."""
        columns, values, there = dict[str, str](), dict[str, str](), set(map(key, header))
        for text in texts:
            said = SheetMapping.model_validate_json(text)
            columns |= {written: meant for written, meant in said.columns.items() if key(written) in there}
            values |= said.values
        return SheetMapping(columns=columns | self.columns, values=values | self.values, reading=self.reading)

    def plus(self, confirmed: Iterable[Proposal]) -> "SheetMapping":
        """Return the mapping with lines that a person confirmed."""
        added = {
            "column": dict(self.columns),
            "value": dict(self.values),
            "reading": self.reading.model_dump(),
        }
        for one in confirmed:
            added[one.kind][one.written] = one.meant
        return SheetMapping(
            columns=added["column"], values=added["value"], reading=Reading(**added["reading"])
        )


def _propose(header: Sequence[str], missing: Iterable[str]) -> Iterator[Proposal]:
    """Yield which headers the missing columns may be, as far as their names tell."""
    by_key = {key(cell): cell.strip() for cell in header if cell.strip()}
    for name in missing:
        near = next((by_key[often] for often in map(key, _OFTEN[name]) if often in by_key), None)
        if likely := near or nearest(name, by_key.values()):
            yield Proposal("column", likely, name)


def mapping_path(sheet: Path, given: Path | None = None) -> Path:
    """Return the mapping file of a sheet: the given one, or the one beside it."""
    return given or sheet.with_name(f"{sheet.stem}.mapping.toml")


def read_mapping(sheet: Path, given: Path | None = None) -> SheetMapping:
    """Return the mapping of a sheet; an empty one where there is no file. Raises InputRefused."""
    path = mapping_path(sheet, given)
    if not given and not path.is_file():
        return SheetMapping()
    try:
        return SheetMapping.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
    raise InputRefused("wrong_mapping", f"{path} cannot be used: {reason}.", "Correct it.")


def write_mapping(path: Path, mapping: SheetMapping) -> None:
    """Add to a mapping file what it does not say yet; its other lines stay as they are. Raises InputRefused."""
    lines = path.read_text("utf-8-sig").splitlines() if path.is_file() else []
    there = tomllib.loads("\n".join(lines))
    for section, wanted in mapping.model_dump(exclude_none=True).items():
        missing = wanted.keys() - there.get(section, {})
        new = [f"{_quoted(word)} = {_quoted(meant)}" for word, meant in wanted.items() if word in missing]
        if new and section not in there:
            lines += [f"[{section}]", *new]
        elif new:
            at = next(at for at, line in enumerate(lines) if line.partition("#")[0].strip() == f"[{section}]")
            lines[at + 1 : at + 1] = new
    write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
