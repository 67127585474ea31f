"""Extras: models, pictures and operations that rows may name beside the offer, as far as they are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from patternmill.planning.offer import Offer
from patternmill.planning.problems import Problem, RowCode

#: The name of the upload of pictures, which the service may lack as it may lack refinements.
UPLOAD = "reference"


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a reference, which identify it."""

    sha256: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True)
class Extras:
    """Models, pictures and operations that rows may name beside the offer."""

    #: The models in the form of an offer; None if the list of them was not read.
    models: Offer | None = None
    #: Each tidied cell with its picture, or with the reason why that cannot be used.
    pictures: Mapping[str, Picture | Problem] = field(default_factory=dict, repr=False)
    #: The refinements, and UPLOAD, that the service does not have, each with how that is known.
    unavailable: Mapping[str, str] = field(default_factory=dict)
    #: A sentence on what could not be checked.
    note: str | None = None

    @property
    def bytes_of(self) -> Mapping[str, bytes]:
        """Return the pictures by their SHA-256."""
        return {
            picture.sha256: picture.raw for picture in self.pictures.values() if isinstance(picture, Picture)
        }


def is_picture(raw: bytes) -> bool:
    """Return whether bytes begin as a PNG, JPEG or WebP picture does."""
    web_p = raw[:4] == b"RIFF" and raw[8:12] == b"WEBP"
    return web_p or raw.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"))


def unreadable(message: str, remedy: str) -> Problem:
    """Return the problem of a picture that cannot be used, with what to do."""
    return Problem(None, RowCode.UNREADABLE_REFERENCE, message, remedy)
