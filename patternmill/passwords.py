"""Passwords in addresses and in texts about them: found, and masked."""

from __future__ import annotations

import re
from urllib.parse import unquote

MASK = "**********"
#: A password in a query, or in libpq's own form, where a value may be quoted.
_PASSWORD = re.compile(r"(?i)\b(?:ssl)?(?:password|passwd|pwd)\s*=\s*(?:'((?:[^'\\]|\\.)*)'?|([^\s&'\"#;]+))")
_USER_INFO = re.compile(r"://[^\s/@:'\"]*:([^\s/'\"]+)@")
#: In what is known to be an address, a password may have any character.
_LOOSE_USER_INFO = re.compile(r"://[^/@:]*:(.+)@")
#: The shortest password that is masked, in characters: a shorter one would mask parts of ordinary text.
_SHORTEST_PASSWORD = 4


def passwords_in(address: str) -> frozenset[str]:
    """Return every password in a URL, its query, or libpq's `password=...`, as written and decoded."""
    passwords = {text for pair in _PASSWORD.findall(address) for text in pair}
    passwords.update(_USER_INFO.findall(address), _LOOSE_USER_INFO.findall(address))
    return frozenset(
        text for text in {*passwords, *map(unquote, passwords)} if len(text) >= _SHORTEST_PASSWORD
    )


def mask_passwords(text: str, address: str = "") -> str:
    """Return a text without the passwords of an address, and without what looks like one."""
    for password in sorted(passwords_in(address), key=len, reverse=True):
        text = text.replace(password, MASK)
    for shape in (_PASSWORD, _USER_INFO):
        text = shape.sub(_masked, text)
    return text


def _masked(match: re.Match[str]) -> str:
    password = next(filter(None, match.groups()), "")
    return match[0].replace(password, MASK) if password else match[0]
