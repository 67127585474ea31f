"""Every operation in one table: routes, the OpenAPI document and the tests of the documentation follow from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

from studio import answers, requests
from studio.operations.context import Answer, Caller
from studio.service import Service
from studio.wire import Body

Perform = Callable[[Body, Caller], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """One address under /v1. `refusals` are its own error statuses."""

    name: str
    summary: str
    body: type[Body]
    answer: type
    refusals: tuple[int, ...] = ()

    def of(self, service: Service) -> Perform:
        """Return the method of the service that performs it."""
        return cast(Perform, attrgetter(self.name.replace("/", "."))(service))


def _create(name: str, summary: str, body: type[Body], answer: type = answers.JobAnswer) -> Operation:
    """Declare an operation that creates something, mostly by a job."""
    return Operation(name, summary, body, answer, (404, 409, 422))


def _get(name: str, summary: str, body: type[Body], answer: type) -> Operation:
    """Declare an operation on what the body names."""
    return Operation(name, summary, body, answer, (404,))


def _list(group: str, item: type) -> Operation:
    """Declare an operation whose answer is a page of what the account has."""
    answer = answers.page_of(group, item)
    return Operation(f"{group}/list", f"The account's {group}.", requests.Page, answer, (404,))


OPERATIONS = (
    _create("patterns/create", "Generate a pattern from a prompt.", requests.CreatePattern),
    _get("patterns/get", "A pattern.", requests.GetPattern, answers.PatternAnswer),
    _list("patterns", answers.PatternAnswer),
    _create("refine/edit", "A new pattern: this one with more words.", requests.EditPattern),
    _create("refine/recolor", "A new pattern: this one in other colours.", requests.RecolorPattern),
    _create("refine/crop", "A new pattern: a part of this one's tile.", requests.CropPattern),
    _create("refine/extend", "A new pattern: this one with a larger repeat.", requests.ExtendPattern),
    _get("jobs/get", "A job as it stands.", requests.GetJob, answers.JobAnswer),
    _list("jobs", answers.ListedJob),
    _create("references/create", "Upload a picture.", requests.CreateReference, answers.ReferenceAnswer),
    _get("references/get", "An uploaded picture.", requests.GetReference, answers.ReferenceAnswer),
    _list("references", answers.ReferenceAnswer),
    _get("references/delete", "Delete an uploaded picture.", requests.GetReference, answers.DeletedReference),
    Operation("models/list", "The models.", requests.Nothing, answers.ModelList),
    _get("models/get", "A model.", requests.GetModel, answers.ModelAnswer),
    Operation("categories/list", "The categories.", requests.Nothing, answers.CategoryList),
    _get(
        "categories/get", "A category, its options and prices.", requests.GetCategory, answers.CategoryAnswer
    ),
    _create("products/create", "Build a product from a pattern.", requests.CreateProduct),
    _get("products/get", "A product.", requests.GetProduct, answers.ProductAnswer),
    _list("products", answers.ProductAnswer),
    _create("checkouts/create", "Open a checkout.", requests.CreateCheckout, answers.CheckoutAnswer),
    _get("checkouts/get", "A checkout.", requests.GetCheckout, answers.CheckoutAnswer),
    _get("orders/get", "The order of a paid checkout.", requests.GetCheckout, answers.OrderAnswer),
    _list("orders", answers.OrderAnswer),
    Operation("feedback/create", "Report an issue.", requests.CreateFeedback, answers.FeedbackAnswer, (503,)),
)
