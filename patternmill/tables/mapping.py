"""`NAME.mapping.toml` beside a sheet: what its columns and words mean, and how it is read."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from patternmill.errors import InputRefused
from patternmill.files import write_whole
from patternmill.text import UNSAFE, key
from patternmill.vocabulary import columns_called

NEEDED = ("sku", "prompt", "category")
OPTION, SELECTIONS, NOTE = "option:", "selections", "note"
#: The columns that results add to the sheet's own, and the one for cells that a row had beyond its header.
RESULTS = ("status", "product_id", "pattern_id", "error_code", "error", "take", "run")
BEYOND = "surplus"
OURS = frozenset((*RESULTS, BEYOND))
#: Columns of a catalog, by the keys of their names.
_NAMES = (*NEEDED, SELECTIONS, NOTE, *OURS)
_OURS = dict(zip(map(key, _NAMES), _NAMES, strict=True)) | {"category id": "category"}
Section = Literal["reading", "columns", "values"]


@dataclass(frozen=True)
class Proposal:
    """A line of a mapping that a person may confirm: how a sheet is read, or what a column or a word of it means."""

    section: Section
    written: str
    meant: str
    #: What a person should see with it.
    about: str = field(default="", compare=False)
    #: Whether nothing else can be meant.
    is_certain: bool = False
    #: The lines that may be meant in its place.
    others: tuple["Proposal", ...] = ()

    @property
    def line(self) -> str:
        written = self.written if self.section == "reading" else _quoted(self.written)
        return f"{written} = {_quoted(self.meant)}"

    @property
    def shown(self) -> str:
        return f"{self.line}  # {' '.join(UNSAFE.sub('?', self.about).split())}" if self.about else self.line


def either(lines: Sequence[Proposal], *, is_certain: bool = False) -> Proposal:
    """Return one proposal of several lines, the likeliest first; `is_certain` is about that one."""
    return replace(lines[0], is_certain=is_certain, others=tuple(lines[1:]))


class Unsaid(InputRefused):
    """A sheet may be meant in several ways: it is checked as the first of `proposals` say, and then refused."""

    def __init__(self, code: str, message: str, remedy: str, proposals: Iterable[Proposal] = ()) -> None:
        super().__init__(code, message, remedy)
        self.proposals = tuple(proposals)
        self.meanings = {one.meant for each in self.proposals for one in (each, *each.others)}

    @classmethod
    def of(cls, doubts: Sequence["Unsaid"], found: Iterable[str], more: Iterable[Proposal] = ()) -> "Unsaid":
        """Return the refusal of a sheet with all doubts about it, and what was found meanwhile."""
        message = " ".join(one.message for one in doubts)
        remedy = "\n".join([" ".join(one.remedy for one in doubts), *found])
        return cls(doubts[0].code, message, remedy, chain(*(one.proposals for one in doubts), more))


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

    def scores(self, rows: Sequence[Sequence[str]]) -> list[tuple[bool, int, int]]:
        """Return how well each row names the columns: whether all needed ones, how many, and how many it may mean.

        What a row may mean is looked up where none has all needed ones.
        """
        scores = list[tuple[bool, int, int]]()
        named = [set(map(self.meaning, cells)) for cells in rows]
        is_there = any(map(set(NEEDED).issubset, named))
        for names, cells in zip(named, rows, strict=True):
            known = sum(name in (*NEEDED, SELECTIONS) or name.startswith(OPTION) for name in names)
            likely = names if is_there else names.union(*map(columns_called, cells))
            known += names >= {"run", "status"}
            scores.append((names >= set(NEEDED), known, len(likely.intersection(NEEDED))))
        return scores

    def over(self, texts: Iterable[str], header: Iterable[str]) -> "SheetMapping":
        """Return the mapping over earlier ones (JSON, the oldest first), for a file that has their columns."""
        columns, values, reading = dict[str, str](), dict[str, str](), dict[str, str]()
        there = set(map(key, header)) | set(map(key, self.columns))
        for said in (*map(SheetMapping.model_validate_json, texts), self):
            columns |= {written: meant for written, meant in said.columns.items() if key(written) in there}
            values |= said.values
            reading |= said.reading.model_dump(exclude_none=True)
        return SheetMapping(columns=columns, values=values, reading=Reading.model_validate(reading))

    def plus(self, confirmed: Iterable[Proposal]) -> "SheetMapping":
        """Return the mapping with lines that a person confirmed."""
        said = self.model_dump(exclude_none=True)
        for one in confirmed:
            said[one.section][one.written] = one.meant
        return SheetMapping.model_validate(said)


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
