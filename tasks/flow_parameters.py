"""What a flow asks for: its parameters, and so its form in the Prefect UI, are the fields of its request."""

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

from prefect.runtime import deployment
from pydantic import BaseModel, BeforeValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from prefect_host.work_pool import WORKER_FOLDER

Function = TypeVar("Function", bound=Callable[..., Any])


class _Shown(dict[str, Any]):
    """A field's JSON schema without a default: Prefect's server takes null, an empty box, of such fields alone."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "default":
            super().__setitem__(key, value)


class _PlainBox:
    """In Prefect's form an optional field is one box, not a choice between its type and "None"."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        shown = handler(schema)
        if "anyOf" not in shown:
            return shown
        box = _Shown({**shown.pop("anyOf")[0], **shown})
        if "pattern" in box:
            box["pattern"] = f"^$|{box['pattern']}"
        return box


_EMPTY = BeforeValidator(lambda value: None if value == "" else value)


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
                annotation=Annotated[types[name], _EMPTY, _PlainBox()],
            )
            for name, field in fields.items()
        ]
        # Prefect reads both: parameters in the signature, their help under Args.
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        helped = "\n".join(f"    {name}: {field.description}" for name, field in fields.items())
        function.__doc__ = f"{function.__doc__}\n\nArgs:\n{helped}"
        return function

    return sign


def in_worker_folder() -> bool:
    """Whether a deployment began this flow run; from now on it is in its worker's folder, where paths are meant."""
    if deployment.id is None:
        return False
    os.chdir(os.environ.get(WORKER_FOLDER, "."))
    return True
