"""Every operation in one table: routes, the OpenAPI document and the tests of the documentation follow from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import cast

from studio import answers, requests
from studio.operations.context import Answer, Caller
from studio.service import Service
from studio.wire import Body

#: Of a request body, in bytes; a larger one where a picture is sent.
BODY_LIMIT = 1_000_000
UPLOAD_LIMIT = requests.REFERENCE_LIMIT * 4 // 3 + 10_000
Perform = Callable[[Body, Caller], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """One address under /v1. `refusals` are its own error statuses."""

    name: str
    summary: str
    body: type[Body]
    answer: type
    refusals: tuple[int, ...] = ()
    #: Where the service answers it, if not under its name.
    method: str = ""
    body_limit: int = BODY_LIMIT

    def of(self, service: Service) -> Perform:
        return cast(Perform, attrgetter(self.method or self.name.replace("/", "."))(service))


def _job_operation(name: str, summary: str, body: type[Body], method: str = "") -> Operation:
    """An operation that begins a job."""
    return Operation(name, summary, body, answers.JobAnswer, (404, 409, 422), method)


OPERATIONS: tuple[Operation, ...] = (
    _job_operation("patterns/create", "Generate a pattern from a prompt.", requests.CreatePattern),
    Operation("patterns/get", "A pattern.", requests.GetPattern, answers.PatternAnswer, (404,)),
    Operation("patterns/list", "The account's patterns.", requests.Page, answers.PatternList, (404,)),
    _job_operation(
        "refine/edit", "A new pattern: this one with more words.", requests.EditPattern, "patterns.edit"
    ),
    _job_operation(
        "refine/recolor",
        "A new pattern: this one in other colours.",
        requests.RecolorPattern,
        "patterns.recolor",
    ),
    _job_operation(
        "refine/crop", "A new pattern: a part of this one's tile.", requests.CropPattern, "patterns.crop"
    ),
    _job_operation(
        "refine/extend",
        "A new pattern: this one with a larger repeat.",
        requests.ExtendPattern,
        "patterns.extend",
    ),
    Operation("jobs/get", "A job as it stands.", requests.GetJob, answers.JobAnswer, (404,)),
    Operation("jobs/list", "The account's jobs.", requests.Page, answers.JobList, (404,)),
    Operation(
        "references/create",
        "Upload a picture.",
        requests.CreateReference,
        answers.ReferenceAnswer,
        (404, 409, 422),
        body_limit=UPLOAD_LIMIT,
    ),
    Operation(
        "references/get", "An uploaded picture.", requests.GetReference, answers.ReferenceAnswer, (404,)
    ),
    Operation(
        "references/list", "The account's uploaded pictures.", requests.Page, answers.ReferenceList, (404,)
    ),
    Operation(
        "references/delete",
        "Delete an uploaded picture.",
        requests.GetReference,
        answers.DeletedReference,
        (404,),
    ),
    Operation("models/list", "The models.", requests.Nothing, answers.ModelList, method="range.list_models"),
    Operation(
        "models/get", "A model.", requests.GetModel, answers.ModelAnswer, (404,), method="range.get_model"
    ),
    Operation(
        "categories/list",
        "The categories.",
        requests.Nothing,
        answers.CategoryList,
        method="range.list_categories",
    ),
    Operation(
        "categories/get",
        "A category, its options and prices.",
        requests.GetCategory,
        answers.CategoryAnswer,
        (404,),
        method="range.get_category",
    ),
    _job_operation("products/create", "Build a product from a pattern.", requests.CreateProduct),
    Operation("products/get", "A product.", requests.GetProduct, answers.ProductAnswer, (404,)),
    Operation("products/list", "The account's products.", requests.Page, answers.ProductList, (404,)),
    Operation(
        "checkouts/create",
        "Open a checkout for products.",
        requests.CreateCheckout,
        answers.CheckoutAnswer,
        (404, 409),
    ),
    Operation("checkouts/get", "A checkout.", requests.GetCheckout, answers.CheckoutAnswer, (404,)),
    Operation(
        "orders/get",
        "The order of a paid checkout.",
        requests.GetOrder,
        answers.OrderAnswer,
        (404,),
        method="checkouts.get_order",
    ),
    Operation(
        "orders/list",
        "The account's orders.",
        requests.Page,
        answers.OrderList,
        (404,),
        method="checkouts.list_orders",
    ),
    Operation(
        "feedback/create",
        "Report an issue of the interface.",
        requests.CreateFeedback,
        answers.FeedbackAnswer,
        (503,),
    ),
)


#: Operations that have a name together.
GROUPS = {
    "creates": re.compile(r"(patterns|products|checkouts|references)/create|refine/.*"),
    "polls": re.compile(r"jobs/get"),
    "all": re.compile(r".*"),
}


@cache
def operations_of(name: str) -> frozenset[str]:
    """What an operation's own name, `creates`, `polls` or `all` stands for; empty for any other name."""
    group = GROUPS.get(name, re.compile(re.escape(name)))
    return frozenset(one.name for one in OPERATIONS if group.fullmatch(one.name))
