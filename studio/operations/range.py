"""The models and categories that can be chosen."""

from __future__ import annotations

from studio import offer
from studio.answers import CategoryAnswer, CategoryList, CategorySummary, ModelAnswer, ModelList, OptionAnswer
from studio.operations.call import Call
from studio.requests import GetCategory, GetModel, Nothing


def list_models(call: Call, body: Nothing) -> ModelList:
    """List the models."""
    return {"models": list(offer.MODELS)}


def get_model(call: Call, body: GetModel) -> ModelAnswer:
    """Return a model."""
    return offer.find_model(body.modelId)


def list_categories(call: Call, body: Nothing) -> CategoryList:
    """List the categories."""
    return {"categories": [_summary(call, one) for one in offer.CATEGORIES]}


def get_category(call: Call, body: GetCategory) -> CategoryAnswer:
    """Return a category, its options and prices."""
    category = offer.find_category(call.studio.environment, body.categoryId)
    return {**_summary(call, category), "options": [_option(option) for option in category.options]}


def _summary(call: Call, category: offer.Category) -> CategorySummary:
    return {
        "categoryId": category.category_id(call.studio.environment),
        "name": category.name,
        "description": category.description,
        "priceFrom": offer.money(category.price_from),
    }


def _option(option: offer.Option) -> OptionAnswer:
    answer: OptionAnswer = {
        "name": option.name,
        "label": option.label,
        "required": option.default is None,
        "values": list(option.surcharges),
        "surcharges": dict(option.surcharges),
    }
    return answer if option.default is None else {**answer, "default": option.default}
