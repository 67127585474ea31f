"""The models and categories that can be chosen."""

from __future__ import annotations

from studio import offer
from studio.errors import unknown
from studio.models import MODELS, Model, find_model
from studio.operations.context import Answer, Caller
from studio.requests import GetCategory, GetModel, Nothing


class Models:
    """`models/*`."""

    def list(self, body: Nothing, caller: Caller) -> Answer:
        return {"models": [_model(model) for model in MODELS]}

    def get(self, body: GetModel, caller: Caller) -> Answer:
        model = find_model(body.modelId)
        if model is None:
            raise unknown("model", body.modelId)
        return _model(model)


class Categories:
    """`categories/*`."""

    def __init__(self, environment: str) -> None:
        self._environment = environment

    def list(self, body: Nothing, caller: Caller) -> Answer:
        return offer.categories_list(self._environment)

    def get(self, body: GetCategory, caller: Caller) -> Answer:
        answer = offer.categories_get(self._environment, body.categoryId)
        if answer is None:
            raise unknown("category", body.categoryId)
        return answer


def _model(model: Model) -> Answer:
    return {"modelId": model.model_id, "name": model.name, "description": model.description}
