"""Every operation in one table: routes, the OpenAPI document and the tests of the documentation follow from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import cast

from studio import answers, requests
from studio.limits import stands_for
from studio.operations.context import Answer, Caller
from studio.service import Service
from studio.wire import Body

#: Of a request body, in bytes; a larger one where a picture is sent.
BODY_LIMIT = 1_000_000
UPLOAD_LIMIT = requests.REFERENCE_LIMIT * 4 // 3 + 10_000
Perform = Callable[[Body, Caller], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """One address under /v1. `method` is where the service answers it; `refusals` are its own error statuses."""

    name: str
    summary: str
    method: str
    body: type[Body]
    answer: type
    refusals: tuple[int, ...] = ()
    body_limit: int = BODY_LIMIT

    def of(self, service: Service) -> Perform:
        return cast(Perform, attrgetter(self.method)(service))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "patterns/create",
        "Generate a pattern from a prompt.",
        "patterns.create",
        requests.CreatePattern,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation(
        "patterns/get", "A pattern.", "patterns.get", requests.GetPattern, answers.PatternAnswer, (404,)
    ),
    Operation(
        "patterns/list",
        "The account's patterns.",
        "patterns.list",
        requests.Page,
        answers.PatternList,
        (404,),
    ),
    Operation(
        "refine/edit",
        "A new pattern: this one with more words.",
        "patterns.edit",
        requests.EditPattern,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation(
        "refine/recolor",
        "A new pattern: this one in other colours.",
        "patterns.recolor",
        requests.RecolorPattern,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation(
        "refine/crop",
        "A new pattern: a part of this one's tile.",
        "patterns.crop",
        requests.CropPattern,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation(
        "refine/extend",
        "A new pattern: this one with a larger repeat.",
        "patterns.extend",
        requests.ExtendPattern,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation("jobs/get", "A job as it stands.", "jobs.get", requests.GetJob, answers.JobAnswer, (404,)),
    Operation("jobs/list", "The account's jobs.", "jobs.list", requests.Page, answers.JobList, (404,)),
    Operation(
        "references/create",
        "Upload a picture.",
        "references.create",
        requests.CreateReference,
        answers.ReferenceAnswer,
        (404, 409, 422),
        UPLOAD_LIMIT,
    ),
    Operation(
        "references/get",
        "An uploaded picture.",
        "references.get",
        requests.GetReference,
        answers.ReferenceAnswer,
        (404,),
    ),
    Operation(
        "references/list",
        "The account's uploaded pictures.",
        "references.list",
        requests.Page,
        answers.ReferenceList,
        (404,),
    ),
    Operation(
        "references/delete",
        "Delete an uploaded picture.",
        "references.delete",
        requests.GetReference,
        answers.DeletedReference,
        (404,),
    ),
    Operation("models/list", "The models.", "range.list_models", requests.Nothing, answers.ModelList),
    Operation("models/get", "A model.", "range.get_model", requests.GetModel, answers.ModelAnswer, (404,)),
    Operation(
        "categories/list",
        "The categories.",
        "range.list_categories",
        requests.Nothing,
        answers.CategoryList,
    ),
    Operation(
        "categories/get",
        "A category, its options, prices and print sizes.",
        "range.get_category",
        requests.GetCategory,
        answers.CategoryAnswer,
        (404,),
    ),
    Operation(
        "products/create",
        "Build a product from a pattern.",
        "products.create",
        requests.CreateProduct,
        answers.JobAnswer,
        (404, 409, 422),
    ),
    Operation(
        "products/get", "A product.", "products.get", requests.GetProduct, answers.ProductAnswer, (404,)
    ),
    Operation(
        "products/list",
        "The account's products.",
        "products.list",
        requests.Page,
        answers.ProductList,
        (404,),
    ),
    Operation(
        "checkouts/create",
        "Open a checkout for products.",
        "checkouts.create",
        requests.CreateCheckout,
        answers.CheckoutAnswer,
        (404, 409),
    ),
    Operation(
        "checkouts/get",
        "A checkout.",
        "checkouts.get",
        requests.GetCheckout,
        answers.CheckoutAnswer,
        (404,),
    ),
    Operation(
        "orders/get",
        "The order of a paid checkout.",
        "checkouts.get_order",
        requests.GetOrder,
        answers.OrderAnswer,
        (404,),
    ),
    Operation(
        "orders/list",
        "The account's orders.",
        "checkouts.list_orders",
        requests.Page,
        answers.OrderList,
        (404,),
    ),
    Operation(
        "feedback/create",
        "Report an issue of the interface.",
        "feedback.create",
        requests.CreateFeedback,
        answers.FeedbackAnswer,
        (503,),
    ),
)


@cache
def operations_of(name: str) -> frozenset[str]:
    """What an operation's own name, `creates`, `polls` or `all` stands for; empty for any other name."""
    return frozenset(one.name for one in OPERATIONS if stands_for(name, one.name))
