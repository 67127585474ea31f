"""What the interface leaves unstated and a request has to name: paths and fields of refinements and references."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from patternmill.catalog.refinements import REFINEMENTS
from patternmill.errors import ConfigurationError
from patternmill.states import Stage

OperationPath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")]
Name = Annotated[str, Field(min_length=1, max_length=100)]
_PATHS = {operation: f"refine/{operation}" for operation in REFINEMENTS}


class Unstated(BaseModel):
    """Choices, not facts: those of the embedded studio, unless a file says what a service is known to have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: The operation of each refinement; one that is left out the service does not have.
    refine: Mapping[str, OperationPath] = _PATHS
    #: Of a refinement, the pattern that it changes.
    pattern: Name = "patternId"
    #: The fields of refinements that are called otherwise: our name to the service's.
    fields: Mapping[str, Name] = {}
    #: The operation that uploads a picture, and the field with its bytes in base64.
    upload: OperationPath = "references/create"
    picture: Name = "data"
    #: Of `patterns/create`: the model, and the list of references.
    model: Name = "model"
    references: Name = "referenceIds"
    #: Finds a job by the `requestId` that it was created with; None where the service has no such operation.
    lookup: OperationPath | None = None
    #: What uploads and refines recognises a request ID that it had before: the same request may be sent again.
    repeatable: bool = False
    #: A person vouches for these operations: they are used without a look at whether the service has them.
    known: frozenset[str] = frozenset()

    def operations(self, stages: Collection[Stage], refinements: Iterable[str]) -> list[str]:
        """What makes references and these refinements, as the service calls it."""
        upload = [self.upload] if Stage.REFERENCE in stages else []
        return [*upload, *(self.refine[operation] for operation in refinements)]

    def named(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {self.fields.get(name, name): value for name, value in parameters.items()}


UNSTATED = Unstated()
_BY_ENVIRONMENT = TypeAdapter(dict[str, dict[str, Any]])


def read_unstated(file: Path | None, environment: str) -> Unstated:
    """What a JSON file says about an environment; without one, or without an entry about it, the choices above.

    What the file names, the service is taken to have. Raises ConfigurationError.
    """
    if file is None:
        return UNSTATED
    try:
        configured = _BY_ENVIRONMENT.validate_json(file.read_bytes()).get(environment)
        return UNSTATED if configured is None else _vouched(configured)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
    raise ConfigurationError(
        f"PATTERNMILL_OPERATIONS_FILE names {file}, which cannot be used: {reason}.",
        remedy="Write a JSON object: environment to names, as docs/interface.md shows.",
    )


def _vouched(configured: Mapping[str, Any]) -> Unstated:
    unstated = Unstated.model_validate(configured)
    named = unstated.refine.values() if "refine" in configured else ()
    upload = [unstated.upload] if "upload" in configured else []
    return unstated.model_copy(
        update={
            "refine": {**_PATHS, **unstated.refine},
            "known": frozenset({*named, *upload}) | unstated.known,
        }
    )
