"""What a flow asks for: its parameters, and so its form in the Prefect UI, are the fields of its request."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, Field

from patternmill.parameters import STAGING, EnvironmentName
from patternmill.runs.request import RetryRequest

Function = TypeVar("Function", bound=Callable[..., Any])


def asks_for(model: type[BaseModel], *first: str) -> Callable[[Function], Function]:
    """Sign a function of keywords with the fields of a request: types, bounds, defaults and help.

    Those named come `first` in the form, the others in the request's order.
    """
    types = get_type_hints(model, include_extras=True)
    fields = {name: model.model_fields[name] for name in dict.fromkeys((*first, *model.model_fields))}

    def sign(function: Function) -> Function:
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.is_required() else field.default,
                annotation=types[name],
            )
            for name, field in fields.items()
        ]
        # Prefect reads both: parameters in the signature, their help under Args.
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        helped = "\n".join(f"    {name}: {field.description}" for name, field in fields.items())
        function.__doc__ = f"{function.__doc__}\n\nArgs:\n{helped}"
        return function

    return sign


class RetryForm(RetryRequest):
    """On the command line a run is retried wherever it was; a form begins with an environment."""

    environment: EnvironmentName = Field(
        STAGING, description="staging, production, or another configured environment."
    )
