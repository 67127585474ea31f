"""Marks in a prompt that make the studio refuse or fail on purpose, so that people can rehearse bad days."""

from __future__ import annotations

from collections.abc import Callable

from studio.errors import Refusal

#: The request is refused at once; nothing is made.
REFUSE = "[refuse]"
#: Each pattern job of this prompt fails.
FAIL = "[fail]"
#: The first pattern job of this prompt fails, later ones succeed.
FAIL_ONCE = "[fail once]"
#: The pattern succeeds; each product of it fails.
FAIL_PRODUCT = "[fail product]"


def refuse_content(prompt: str) -> None:
    """Raise Refusal (422) when the prompt asks for it."""
    if REFUSE in prompt.lower():
        raise Refusal(422, "content_refused", f"The prompt is refused, because it contains {REFUSE}.")


def pattern_failure(prompt: str, times_asked: Callable[[str], int]) -> str | None:
    """Return why the pattern job of this prompt will fail, if it will; `times_asked`: how many came before."""
    lowered = prompt.lower()
    if FAIL in lowered:
        return f"The pattern could not be generated, because its prompt contains {FAIL}."
    if FAIL_ONCE in lowered and not times_asked(prompt):
        return f"The pattern could not be generated this time, because its prompt contains {FAIL_ONCE}."
    return None


def product_failure(prompt: str) -> str | None:
    """Return why a product of this prompt's pattern will fail, or None."""
    if FAIL_PRODUCT in prompt.lower():
        return f"The product could not be built, because its pattern's prompt contains {FAIL_PRODUCT}."
    return None
