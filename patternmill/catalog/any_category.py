"""Selections of rows whose category is not known: what no category offers is wrong whichever of them is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from patternmill.catalog.garbled_text import unfit_finding
from patternmill.catalog.normal_text import normalised
from patternmill.catalog.offer import Category, Nearest, Offer, Option
from patternmill.catalog.problems import Finding, RowCode
from patternmill.catalog.rows import tidy
from patternmill.catalog.selections import WrittenSelection, did_you_mean, offered, unknown_option
from patternmill.text import shown


class AnyCategory:
    """All categories of an offer as one; it finds nothing where some of the offer could not be read."""

    def __init__(self, offer: Offer | None, nearest: Nearest) -> None:
        known = (offer.categories if offer is not None and offer.complete else None) or ()
        self._categories: tuple[Category, ...] = known if all(one.checkable for one in known) else ()
        self._nearest = nearest
        self._found: dict[WrittenSelection, Finding | None] = {}

    def findings(self, choices: Iterable[WrittenSelection]) -> Iterator[Finding]:
        for choice in choices:
            if choice not in self._found:
                unfit = unfit_finding(choice.column, choice.option) or unfit_finding(
                    choice.column, choice.value
                )
                self._found[choice] = unfit or self._not_offered(choice)
            if found := self._found[choice]:
                yield found

    def values(self, choices: Iterable[WrittenSelection]) -> Iterator[Finding]:
        """The same of what only looks like the choice of an option: unknown values alone."""
        return (found for found in self.findings(choices) if found.code is RowCode.UNKNOWN_VALUE)

    def _not_offered(self, choice: WrittenSelection) -> Finding | None:
        options = [found[1] for one in self._categories if (found := one.find_option(tidy(choice.option)))]
        if not options:
            return (
                unknown_option(
                    choice.column, tidy(choice.option), "every category", self._names, self._nearest
                )
                if self._categories
                else None
            )
        value = tidy(choice.value)
        if any(option.find_value(value) is not None for option in options):
            return None
        return self._unknown_value(choice.column, options, normalised(value))

    def _unknown_value(self, column: str, options: Iterable[Option], value: str) -> Finding:
        name = next(iter(options)).name
        values = tuple(dict.fromkeys(one for option in options for one in option.values or ()))
        message = (
            f"unknown value {shown(value)} for option {shown(name)} of every category; {offered(values)}"
        )
        near = self._nearest.find(value, values)
        remedy = did_you_mean(near, "choose one that the row's category has")
        return Finding(column, RowCode.UNKNOWN_VALUE, message, remedy, value, near, values)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        options = (option for one in self._categories for option in one.options or ())
        return tuple(dict.fromkeys(option.name for option in options))
