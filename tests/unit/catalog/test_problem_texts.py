"""Texts that look alike are shown so that a person sees what differs."""

from __future__ import annotations

import pytest

from patternmill.text import contrasted, shown, visible


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
    """And visible ones stay as they are."""
    assert visible(text) == seen
    assert shown(text) == f"`{seen}`"


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("a\nb", "a\r\nb", (r"`a\nb`", r"`a\r\nb`")),
        ("caf\u00e9", "cafe\u0301", (r"`caf\u00e9`", r"`cafe\u0301`")),
        ("\u0430bc", "abc", (r"`\u0430bc`", "`abc`")),
        ("a  b", "a b", (r"`a \u0020b`", "`a b`")),
        ("\u2764\ufe0f", "\u2764", (r"`\u2764\ufe0f`", r"`\u2764`")),
        ("Lüneburg", "Luneburg", ("`Lüneburg`", "`Luneburg`")),
    ],
)
def test_texts_that_look_alike_are_shown_apart(old: str, new: str, seen: tuple[str, str]) -> None:
    """Escapes where nothing else helps; what differs for every eye stays legible."""
    assert contrasted(old, new) == seen
