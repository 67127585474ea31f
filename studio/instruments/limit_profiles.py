"""Limits under a name, as services of several kinds have them."""

from __future__ import annotations

from studio.limits import Limit, read_limit
from studio.operations.table import operations_of


def read_known_limit(text: str) -> Limit:
    """As `read_limit`, for the operations that there are. Raises ValueError."""
    limit = read_limit(text)
    if not operations_of(limit.name):
        raise ValueError(f"there is no operation {limit.name!r}")
    return limit


def _limits(*texts: str) -> tuple[Limit, ...]:
    return tuple(read_known_limit(text) for text in texts)


PROFILES: dict[str, tuple[Limit, ...]] = {
    "unlimited": (),
    # Declared: every 429 says when to come again.
    "small": _limits("creates=5/s", "creates=4"),
    "strict": _limits("creates=1/s", "creates=1", "polls=2/s", "all=10/s"),
    "quota": _limits("creates=100/h", "creates=50"),
    # Undeclared: a 429 comes without Retry-After, and each operation has a limit of its own.
    "undeclared": _limits(
        "patterns/create=2/s,undeclared",
        "products/create=4/s,undeclared",
        "checkouts/create=1/s,undeclared",
        "jobs/get=20/s,undeclared",
        "categories/get=2/s,undeclared",
        "creates=8,undeclared",
    ),
}
