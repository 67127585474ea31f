"""A fact about an installation: what is the case, how grave that is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from patternmill.errors import PatternmillError


class Level(StrEnum):
    """The severity of a fact, from least to most severe."""

    OK = "ok"
    #: Something waits for a person, or soon will.
    WARNING = "warning"
    #: Runs are refused, or fail, until somebody puts it right.
    FAULT = "fault"


@dataclass(frozen=True)
class Fact:
    """A statement about an installation, with a remedy where something is wrong."""

    about: str
    level: Level
    text: str
    remedy: str = ""


def ok(about: str, text: str) -> Fact:
    return Fact(about, Level.OK, text)


def warning(about: str, text: str, remedy: str) -> Fact:
    return Fact(about, Level.WARNING, text, remedy)


def fault(about: str, text: str, remedy: str) -> Fact:
    return Fact(about, Level.FAULT, text, remedy)


def gravest(facts: Iterable[Fact]) -> Level:
    """Return the gravest level of some facts."""
    return max((fact.level for fact in facts), key=list(Level).index, default=Level.OK)


def refused(about: str, error: PatternmillError, remedy: str = "") -> Fact:
    """Return the fact that an error states; `remedy` stands in where the error has none."""
    return fault(about, error.message, error.remedy or remedy)
