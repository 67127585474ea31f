"""The tree of errors: drawn as it is, every one with a code and a remedy."""

from __future__ import annotations

import inspect
import re

from patternmill import errors
from patternmill.errors import PatternmillError

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, PatternmillError)]


def drawn() -> dict[str, int]:
    """Return the names in the docstring's tree, with their depth."""
    lines = (errors.__doc__ or "").splitlines()
    found = (re.match(r"^([│ ]*)(?:├── |└── )?([A-Z]\w+)(?:\s{2}|$)", line) for line in lines)
    return {match.group(2): match.start(2) // 4 for match in found if match}


def test_docstring_shows_the_tree_of_errors() -> None:
    """Every class is in it, under its parent."""
    depths = {kind.__name__: len(kind.__mro__) - len(PatternmillError.__mro__) for kind in ALL}
    assert drawn() == depths


def test_every_error_has_a_code_of_its_own() -> None:
    """Codes are stable, for machines."""
    codes = [kind.code for kind in ALL]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)
