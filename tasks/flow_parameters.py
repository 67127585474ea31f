"""The parameters of flows, and so their forms in the Prefect UI: typed as the fields of their requests are."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, GetJsonSchemaHandler
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import CoreSchema

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class _Shown(dict[str, Any]):
    """A field's JSON schema without a default: Prefect's server takes null, an empty box, of such fields alone."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "default":
            super().__setitem__(key, value)


class _EmptyToo:
    """The schema of an optional field, whose box of a form may be left empty."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        box = _Shown(handler(schema))
        if "pattern" in box:
            box["pattern"] = f"^$|{box['pattern']}"
        return box


#: An optional parameter: one box of a form, where an empty text counts as None.
Box = Annotated[
    T | SkipJsonSchema[None], BeforeValidator(lambda value: None if value == "" else value), _EmptyToo()
]


def documented_by(model: type[BaseModel]) -> Callable[[Function], Function]:
    """Add the help of a request's fields to a flow's docstring, where Prefect reads it for the form."""

    def document(function: Function) -> Function:
        helped = "\n".join(f"    {name}: {field.description}" for name, field in model.model_fields.items())
        function.__doc__ = f"{function.__doc__}\n\nArgs:\n{helped}"
        return function

    return document
