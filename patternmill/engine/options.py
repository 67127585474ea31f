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

#: A share of failed items counts once so many have ended.
_SAMPLE = 20


def _failure_limit(text: str | None) -> tuple[int | None, float | None]:
    """The count and the share of `25` or `10%`. Raises ConfigurationError."""
    if not text:
        return None, None
    written = re.fullmatch(r"(\d{1,9})|(\d{1,2}(?:\.\d+)?|100)\s*%", text.strip())
    if written is None:
        raise ConfigurationError(
            f"{text!r} is no limit of failures.", remedy="Write a count (25) or a percentage (10%)."
        )
    count, percent = written.groups()
    return (int(count), None) if count else (None, float(percent) / 100)


def _amount(text: str | None, currency: str | None) -> int | None:
    """The minor units of a budget as a person wrote it. Raises ConfigurationError."""
    try:
        amount = None if text is None else read_money(text, currency)
    except ValueError as error:
        raise ConfigurationError(
            f"--budget {text!r} {error}.", remedy="Correct it, or leave it out."
        ) from None
    if amount is not None and amount > MOST_AMOUNT:
        most, written = (money(number, currency) for number in (MOST_AMOUNT, amount))
        raise ConfigurationError(
            f"A budget of {written} is more than can be counted ({most}).",
            remedy="Set a lower --budget, or leave it out.",
        )
    return amount


#: Named alike in the settings. No service is known to take anything for a reference.
_PRICES = {stage: f"{stage}_price" for stage in ROW_STAGES if stage is not Stage.REFERENCE}


@dataclass(frozen=True)
class RunOptions:
    """The limits of one run, and how it is driven."""

    max_in_flight: int = 200
    attempts: int = 2
    #: Regular expressions; no attempt follows a failed job whose reason matches one.
    final_reasons: tuple[str, ...] = ()
    in_doubt_limit: timedelta = timedelta(hours=12)
    limits: SpendingLimits = field(default_factory=SpendingLimits)
    pattern_price: int = 0
    refinement_price: int = 0
    product_price: int = 0
    #: More failed items than this stop the run.
    most_failures: int | None = None
    most_failures_share: float | None = None
    #: How long a stopped run still polls the jobs that it has; Prefect kills a run 30 seconds after its signal.
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
        """`budget` is an amount as a person writes it, `max_failures` a count or a share. Raises ConfigurationError."""
        most_spent = _amount(budget, settings.currency)
        prices = {name: getattr(settings, name) for name in _PRICES.values()}
        limits = (most_spent, settings.day_budget, settings.approve_above_cost)
        if not any(prices.values()) and any(limit is not None for limit in limits):
            raise ConfigurationError(
                "A budget, or a cost that is to be approved, is set, and no prices.",
                remedy="Set PATTERNMILL_PATTERN_PRICE and PATTERNMILL_PRODUCT_PRICE.",
            )
        most_failures, share = _failure_limit(max_failures)
        return cls(
            max_in_flight=settings.max_in_flight,
            attempts=settings.attempts,
            final_reasons=settings.final_reasons,
            in_doubt_limit=settings.in_doubt_limit,
            limits=SpendingLimits(max_items, most_spent, settings.day_budget, currency=settings.currency),
            **prices,
            most_failures=most_failures,
            most_failures_share=share,
        )

    @property
    def currency(self) -> str | None:
        """None: amounts are in the unit of the prices."""
        return self.limits.currency

    @property
    def prices(self) -> Mapping[Stage, int]:
        """Of one item, in minor units."""
        return {stage: getattr(self, _PRICES[stage]) if stage in _PRICES else 0 for stage in ROW_STAGES}

    def too_many(self, failed: int, ended: int) -> bool:
        """Whether so many failed items, of so many that have ended, stop the run."""
        if self.most_failures is not None and failed > self.most_failures:
            return True
        share = self.most_failures_share
        return share is not None and ended >= _SAMPLE and failed > share * ended

    def is_final(self, reason: str) -> bool:
        """Whether a failed job with this reason is not worth another attempt."""
        return any(re.search(pattern, reason, re.IGNORECASE) for pattern in self.final_reasons)
