"""Every operation in one table: routes and the OpenAPI document follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from studio.operations import checkouts, feedback, jobs, patterns, products, range, references

#: Called with the call and its body; its annotations are the shapes of body and answer, its docstring the summary.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "patterns/create": patterns.create,
    "patterns/get": patterns.get,
    "patterns/list": patterns.list_patterns,
    "refine/edit": patterns.edit,
    "refine/recolor": patterns.recolor,
    "refine/crop": patterns.crop,
    "refine/extend": patterns.extend,
    "jobs/get": jobs.get,
    "jobs/list": jobs.list_jobs,
    "references/create": references.create,
    "references/get": references.get,
    "references/list": references.list_references,
    "references/delete": references.delete,
    "models/list": range.list_models,
    "models/get": range.get_model,
    "categories/list": range.list_categories,
    "categories/get": range.get_category,
    "products/create": products.create,
    "products/get": products.get,
    "products/list": products.list_products,
    "checkouts/create": checkouts.create,
    "checkouts/get": checkouts.get,
    "orders/get": checkouts.get_order,
    "orders/list": checkouts.list_orders,
    "feedback/create": feedback.create,
}
