"""Categories: named by the interface, their answers left open."""

from __future__ import annotations

from patternmill.catalog.offer import Category
from patternmill.catalog.offer_shapes import read_category, read_category_list
from patternmill.conformance.check_results import (
    Check,
    CheckResult,
    Skipped,
    SkipReason,
    deviates,
    form_of,
    unspecified,
)
from patternmill.conformance.session import UNKNOWN_ID, Session
from patternmill.service.outcomes import Answer

SECTION = "4 categories"
_MOST_READ = 5


async def first_category_id(session: Session) -> str | None:
    """None where the list cannot be read, or is empty."""
    return next((category.id for category in await _listed(session)), None)


async def _listed(session: Session) -> tuple[Category, ...]:
    answer = await session.asked("categories/list", {})
    found = read_category_list(answer.body) if answer.usable else None
    return tuple(found.categories) if found else ()


async def choice(session: Session) -> tuple[str, dict[str, str]]:
    """A category with a value for each of its options, as far as they can be read. Raises Skipped."""
    for listed in (await _listed(session))[:_MOST_READ]:
        answer = await session.asked("categories/get", {"categoryId": listed.id})
        found = read_category(answer.body, listed) if answer.usable else listed
        if found.options is not None and found.checkable and all(option.values for option in found.options):
            return found.id, {option.name: (option.values or ("",))[0] for option in found.options}
    raise Skipped(SkipReason.NO_OCCASION, "no category was found whose options can be read")


async def listing(session: Session) -> CheckResult:
    return await _open(session, "categories/list", await session.asked("categories/list", {}))


async def details(session: Session) -> CheckResult:
    if await session.lacks("categories/get"):
        return deviates("the operation is not there")
    category_id = await first_category_id(session)
    if category_id is None:
        raise Skipped(SkipReason.NO_OCCASION, "no category ID could be read in categories/list")
    answer = await session.asked("categories/get", {"categoryId": category_id})
    return await _open(session, "categories/get", answer)


async def unknown(session: Session) -> CheckResult:
    await session.require("categories/get")
    answer = await session.asked("categories/get", {"categoryId": UNKNOWN_ID})
    return unspecified(f"answers {answer.status}", form_of("unknown categoryId", answer))


async def _open(session: Session, operation: str, answer: Answer) -> CheckResult:
    """The operation is named, so that it has to be there; what it answers is left open."""
    if await session.lacks(operation):
        return deviates("the operation is not there", form_of(operation, answer))
    if answer.status is not None and answer.status >= 500:
        return deviates(f"fails with {answer.status}", form_of(operation, answer))
    return unspecified(f"answers {answer.status}", form_of(operation, answer))


CHECKS = (
    Check("categories-list", SECTION, "categories/list is there, to choose a category from.", listing),
    Check("categories-get", SECTION, "categories/get is there, to read a category's options.", details),
    Check("categories-get-unknown", SECTION, "An unknown category: left open.", unknown),
)
