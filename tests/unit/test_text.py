"""How counts, durations, moments, money, and differences between texts, are written for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from patternmill.money import SIGNS, money, read_money
from patternmill.text import contrasted, duration, duration_range, joined, moment, shown, visible


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (50000, "EUR", "€500.00"),
        (50000, "JPY", "¥50,000"),
        (50000, "KWD", "KWD50.000"),
        (50000, "CAD", "CA$500.00"),
        (-5, "USD", "-$0.05"),
        (12_345, "CHF", "CHF123.45"),
        (5, "CLF", "CLF0.0005"),
        (10**17 + 1, "EUR", "€1,000,000,000,000,000.01"),
        (50000, None, "50,000 units"),
        (1, None, "1 unit"),
    ],
)
def test_money(amount: int, currency: str | None, text: str) -> None:
    """Minor units become the currency's own; without a currency they are in the unit of the prices."""
    assert money(amount, currency) == text


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("€5", "EUR", 500),
        ("5.00", "EUR", 500),
        ("eur 1,234.50", "EUR", 123450),
        ("5 €", "EUR", 500),
        ("0", "EUR", 0),
        ("¥50,000", "JPY", 50000),
        ("50,000", None, 50000),
        ("0", None, 0),
        ("500", "EUR", "may be €500.00 or €5.00: write which"),
        ("50,000", "KWD", "may be KWD50,000.000 or KWD50.000: write which"),
        ("$5", "EUR", "is an amount in EUR, such as €500.00"),
        ("5,00", "EUR", "is an amount in EUR"),
        ("5.001", "EUR", "is an amount in EUR"),
        ("-5.00", "EUR", "is an amount in EUR"),
        ("", "EUR", "is an amount in EUR"),
        ("€5", None, "is a whole number"),
    ],
)
def test_money_that_a_person_writes(text: str, currency: str | None, amount: int | str) -> None:
    if isinstance(amount, int):
        assert read_money(text, currency) == amount
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(amount)}"):
            read_money(text, currency)


def test_money_is_read_as_it_is_shown() -> None:
    """No currency's sign has a hidden character, which a terminal would be shown as an escape."""
    for currency in SIGNS:
        for amount in (0, 1, 123456):
            text = money(amount, currency)
            assert (read_money(text, currency), visible(text)) == (amount, text)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (-3, "0 s"),
        (0.6, "1 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (7800, "2 h 10 min"),
        (timedelta(days=2, hours=3, minutes=4), "2 d 3 h"),
    ],
)
def test_duration(time: float | timedelta, text: str) -> None:
    """It is shown in the two units that matter."""
    assert duration(time) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 0.4, "up to 1 s"),
        (21.2, 44.1, "21 to 45 s"),
        (130, 235, "2 to 4 min"),
        (300, 300, "about 5 min"),
        (200_000, 250_000, "2 to 3 d"),
    ],
)
def test_duration_range(low: float, high: float, text: str) -> None:
    """It is shown in whole units of its end, and never narrower than it is."""
    assert duration_range(low, high) == text


def test_moments_are_in_utc() -> None:
    """They are made from Unix seconds, or from a time of any zone."""
    assert moment(0) == "1970-01-01 00:00:00"
    assert moment(datetime(2026, 3, 1, 9, 30, tzinfo=UTC)) == "2026-03-01 09:30:00"
    assert moment(datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=2)))) == "2026-03-01 07:30:00"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("blue\u00a0herons", r"blue\u00a0herons"),
        ("5\u202fcm", r"5\u202fcm"),
        ("a\u200b\u200c\u200db", r"a\u200b\u200c\u200db"),
        ("one\r\ntwo\tthree", r"one\r\ntwo\tthree"),
        ("\u202eevil", r"\u202eevil"),
        ("Lüneburg, 東京 🪿", "Lüneburg, 東京 🪿"),
    ],
)
def test_invisible_characters_are_escaped(text: str, seen: str) -> None:
    """Visible ones stay as they are."""
    assert visible(text) == seen
    assert shown(text) == f"`{seen}`"


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("a\nb", "a\r\nb", (r"`a\nb`", r"`a\r\nb`")),
        ("Lüneburg", "Luneburg", ("`Lüneburg`", "`Luneburg`")),
        ("x" * 70, "x" * 50 + "y", (f"`…{'x' * 40}`", f"`…{'x' * 20}y`")),
    ],
)
def test_texts_are_shown_from_where_they_differ(old: str, new: str, seen: tuple[str, str]) -> None:
    assert contrasted(old, new) == seen


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("It is lost.", "Write it again."), "It is lost. Write it again."),
        (("the loom broke", "Import failures.csv"), "the loom broke. Import failures.csv"),
        (("the loom broke", "mend it"), "the loom broke; mend it"),
        ((None, "", "the loom broke", None), "the loom broke"),
    ],
)
def test_sentences_and_fragments_are_joined(parts: tuple[str | None, ...], text: str) -> None:
    assert joined(*parts) == text
