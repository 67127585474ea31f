"""The options of a run as one value: limits, prices, attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from patternmill.errors import ConfigurationError
from patternmill.ledger.records import SpendingLimits
from patternmill.money import money, read_money
from patternmill.parameters import MOST_AMOUNT
from patternmill.settings import Settings
from patternmill.states import ROW_STAGES, Stage

#: A share of failed items counts once this many have ended.
_SAMPLE = 20


def _failure_limit(text: str | None) -> int | float | None:
    """Return the count in `25`, or the share in `10%`. Raises ConfigurationError."""
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,9})|(\d{1,2}(?:\.\d+)?|100)\s*%", text.strip())
    if match is None:
        raise ConfigurationError(
            f"{text!r} is no limit of failures.", remedy="Write a count (25) or a percentage (10%)."
        )
    count, percent = match.groups()
    return int(count) if count else float(percent) / 100


def _amount(text: str | None, currency: str | None) -> int | None:
    """Return the minor units of a budget as a person wrote it. Raises ConfigurationError."""
    if text is None:
        return None
    try:
        amount = read_money(text, currency)
        if amount > MOST_AMOUNT:
            raise ValueError(f"is more than can be counted ({money(MOST_AMOUNT, currency)})")
    except ValueError as error:
        raise ConfigurationError(
            f"--budget {text!r} {error}.", remedy="Correct it, or leave it out."
        ) from None
    return amount


@dataclass(frozen=True)
class RunOptions:
    """The limits of one run, and how it is driven."""

    max_in_flight: int = 200
    attempts: int = 2
    #: Regular expressions; no attempt follows a failed job whose reason matches one.
    final_reasons: tuple[str, ...] = ()
    in_doubt_limit: timedelta = timedelta(hours=12)
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    #: The price of an item of each stage, in minor units.
    prices: Mapping[Stage, int] = field(default_factory=lambda: dict.fromkeys(ROW_STAGES, 0))
    #: More failed items than this stop the run: a count (int), or a share of those that have ended (float).
    most_failures: int | float | None = None
    #: The time for which a stopped run still polls its jobs; Prefect kills a run 30 seconds after its signal.
    drain: timedelta = timedelta(seconds=18)

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        max_failures: str | None = None,
        max_items: int | None = None,
        budget: str | None = None,
    ) -> RunOptions:
        """Read the options; `budget` is an amount, `max_failures` a count or a share. Raises ConfigurationError."""
        most_spent = _amount(budget, settings.currency)
        limits = (most_spent, settings.day_budget, settings.approve_above_cost)
        if not any(settings.prices.values()) and any(limit is not None for limit in limits):
            raise ConfigurationError(
                "A budget, or a cost that is to be approved, is set, and no prices.",
                remedy="Set PATTERNMILL_PATTERN_PRICE and PATTERNMILL_PRODUCT_PRICE.",
            )
        return cls(
            max_in_flight=settings.max_in_flight,
            attempts=settings.attempts,
            final_reasons=settings.final_reasons,
            in_doubt_limit=settings.in_doubt_limit,
            prices=settings.prices,
            limits=SpendingLimits(max_items, most_spent, settings.day_budget, currency=settings.currency),
            most_failures=_failure_limit(max_failures),
        )

    @property
    def currency(self) -> str | None:
        """Return the currency of all amounts; None: they are in the unit of the prices."""
        return self.limits.currency

    def too_many(self, failed: int, ended: int) -> bool:
        """Return whether this many failed items, of those that have ended, stop the run."""
        limit = self.most_failures
        if isinstance(limit, float):
            return ended >= _SAMPLE and failed > limit * ended
        return limit is not None and failed > limit

    def is_final(self, reason: str) -> bool:
        """Return whether a failed job with this reason is not worth another attempt."""
        return any(re.search(pattern, reason, re.IGNORECASE) for pattern in self.final_reasons)
