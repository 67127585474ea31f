"""What a service promises beyond its published interface, as a file says, and the items that columns ask for by it."""

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from patternmill.errors import Refusal
from patternmill.items import Item, pattern_item, reference_item, refinement_item
from patternmill.text import normal

_Name = Annotated[str, Field(pattern=r"^\w{1,60}$")]
#: What a column is called after `refine:` or `field:`.
_Column = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}$")]
_Path = Annotated[str, Field(pattern=r"^[\w-]+(/[\w-]+)*$")]
_MOST_BYTES = 8 << 20
_PICTURE = re.compile(rb"\x89PNG\r\n|\xff\xd8\xff|GIF8|RIFF....WEBP", re.DOTALL)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Refinement(_Part):
    """An operation that makes another pattern of one. `form`: one text, a list of words, or a number for each field."""

    path: _Path
    fields: Annotated[tuple[_Name, ...], Field(min_length=1)]
    form: Literal["text", "list", "numbers"] = "text"
    parent: _Name = "patternId"

    def read(self, cell: str) -> dict[str, Any]:
        """Return the fields that a cell asks for. Raises ValueError that says what it has to be."""
        text = normal(cell)
        if self.form == "text":
            return {self.fields[0]: text}
        words = re.split(r"\s*[,;\s]\s*|(?<=\d)\s*[x×]\s*(?=\d)", text)
        if self.form == "list":
            return {self.fields[0]: words}
        if len(words) != len(self.fields) or not all(map(_NUMBER.fullmatch, words)):
            raise ValueError(f"write a number for each of {', '.join(self.fields)}")
        return dict(zip(self.fields, map(json.loads, words), strict=True))


class Upload(_Part):
    """The operation that takes a picture: the field with its bytes in base64, and that of `patterns/create`."""

    path: _Path
    content: _Name
    field: _Name


class Additional(_Part):
    """A further field of `patterns/create`: a text, or a number."""

    field: _Name
    is_number: bool = False


class Picture(_Part):
    """The operation that says where the picture of a pattern is, and in which field of its answer."""

    path: _Path
    field: _Name


class Contract(_Part):
    """The promises of a service's file. Purchases use none of them unless `repeatable` is one.

    `repeatable`: no create is carried out twice under one request ID. `model`: the field of `patterns/create`.
    """

    repeatable: bool = False
    model: _Name | None = None
    reference: Upload | None = None
    refine: Mapping[_Column, Refinement] = {}
    fields: Mapping[_Column, Additional] = {}
    picture: Picture | None = None

    def promises(self, column: str) -> bool:
        """Return whether rows may use a column: `model`, `reference`, `refine:NAME` or `field:NAME`."""
        kind, _, name = column.partition(":")
        there = {"model": self.model, "reference": self.reference, "refine": name in self.refine,
                 "field": name in self.fields}  # fmt: skip
        return self.repeatable and bool(there[kind])

    def fault(self, column: str, cell: str, folder: Path) -> str:
        """Return what is wrong with a cell of such a column; empty: nothing."""
        kind, _, name = column.partition(":")
        try:
            if kind == "reference":
                self.content_of(column, cell, folder)
            elif kind == "refine":
                self.refine[name].read(cell)
            elif kind == "field" and self.fields[name].is_number and not _NUMBER.fullmatch(cell):
                return "write a number"
            elif kind in ("take", "kept_take") and not re.fullmatch(r"[1-9]\d{0,3}", cell):
                return "write the number of a take, such as 2"
        except ValueError as error:
            return str(error)
        return ""

    def content_of(self, column: str, cell: str, folder: Path) -> str:
        """Return what a cell adds to its row's content: for a reference the digest of its file, and its path."""
        if column != "reference":
            return normal(cell)
        return f"{_digest(folder, cell)} {folder / cell}"

    def pattern(self, environment: str, prompt: str, extras: Mapping[str, str], take: int) -> Item:
        """Return a take of a row's pattern, without refinements. Raises Refusal for what has no promise."""
        if not extras:
            return pattern_item(environment, prompt, take=take)
        for column in extras:
            if "take" not in column and not self.promises(column):
                message = f"A row on record has {column}, which the service's file does not promise."
                raise Refusal("not_promised", message, "Set PATTERNMILL_SERVICE_FILE as before.")
        named = {name.partition(":")[2]: text for name, text in extras.items() if name.startswith("field:")}
        model, digest = extras.get("model", ""), extras.get("reference", "")
        reference = self._reference(environment, *digest.split(" ", 1)) if digest else None
        item = pattern_item(environment, prompt, model, reference, take, named)
        fields: dict[str, Any] = {self.model: model} if model and self.model else {}
        for name, text in named.items():
            if how := self.fields.get(name):
                fields[how.field] = json.loads(text) if how.is_number else text
        if reference and self.reference:
            return replace(item, fields={**item.fields, **fields}, parent_field=self.reference.field)
        return replace(item, fields={**item.fields, **fields}) if fields else item

    def refined(self, pattern: Item, extras: Mapping[str, str]) -> Item:
        """Return what a product is built on: the pattern after all refinements of its row, in the columns' order."""
        for column, text in extras.items():
            kind, _, name = column.partition(":")
            if kind == "refine":
                how = self.refine[name]
                fields = how.read(text)
                item = refinement_item(pattern, name, {"values": json.dumps(list(fields.values()))})
                pattern = replace(item, fields=fields, path=how.path, parent_field=how.parent)
        return pattern

    def _reference(self, environment: str, digest: str, path: str) -> Item:
        item = reference_item(environment, digest, Path(path).name)
        if not self.reference:
            return item
        return replace(item, fields={self.reference.content: _Bytes(path, digest)}, path=self.reference.path)


@dataclass(frozen=True)
class _Bytes:
    """A picture whose bytes are read as its request is written."""

    path: str
    digest: str

    def as_json(self) -> str:
        """Return the bytes in base64. Raises Refusal where the file is gone, or another by now."""
        try:
            content = Path(self.path).read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != self.digest:
            message = f"The picture {self.path} is gone, or was changed since its row was read."
            raise Refusal("reference_gone", message, "Import the sheet again.")
        return base64.b64encode(content).decode()


def _digest(folder: Path, cell: str) -> str:
    """Return the digest of a picture within a folder: a sheet of somebody else's must not send other files."""
    path = (folder / cell).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("name a file in the folder of the sheet, or below it")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    if not _PICTURE.match(content) or len(content) > _MOST_BYTES:
        raise ValueError(f"name a PNG, JPEG, GIF or WebP file of at most {_MOST_BYTES >> 20} MiB")
    return hashlib.sha256(content).hexdigest()


#: What a service without a file promises.
NO_CONTRACT = Contract()


def read_contract(path: Path | None) -> Contract:
    """Return what a service's file says; nothing without one. Raises Refusal for one that cannot be used."""
    if path is None:
        return NO_CONTRACT
    try:
        return Contract.model_validate(tomllib.loads(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise Refusal(
        "wrong_service_file", f"PATTERNMILL_SERVICE_FILE names {path}, which cannot be used: {reason}."
    )
