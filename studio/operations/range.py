"""What can be chosen: models and categories."""

from __future__ import annotations

from studio import offer
from studio.errors import unknown
from studio.models import MODELS, Model, find_model
from studio.operations.context import Answer, Caller, Context
from studio.requests import GetCategory, GetModel, Nothing


class Range:
    """`models/*` and `categories/*`."""

    def __init__(self, context: Context) -> None:
        self.environment = context.environment

    def list_models(self, body: Nothing, caller: Caller) -> Answer:
        return {"models": [_model(model) for model in MODELS]}

    def get_model(self, body: GetModel, caller: Caller) -> Answer:
        model = find_model(body.modelId)
        if model is None:
            raise unknown("model", body.modelId)
        return _model(model)

    def list_categories(self, body: Nothing, caller: Caller) -> Answer:
        return offer.categories_list(self.environment)

    def get_category(self, body: GetCategory, caller: Caller) -> Answer:
        answer = offer.categories_get(self.environment, body.categoryId)
        if answer is None:
            raise unknown("category", body.categoryId)
        return answer


def _model(model: Model) -> Answer:
    return {"modelId": model.model_id, "name": model.name, "description": model.description}
