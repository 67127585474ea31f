"""Names that a request needs and the interface leaves unstated: paths and fields of refinements and references."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from patternmill.errors import ConfigurationError
from patternmill.planning.refinements import REFINEMENTS
from patternmill.states import Stage

OperationPath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")]
Name = Annotated[str, Field(min_length=1, max_length=100)]
_PATHS = {operation: f"refine/{operation}" for operation in REFINEMENTS}


class Unstated(BaseModel):
    """Names that are choices, not facts: those of the embedded studio, unless a file has those of a service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: The operation of each refinement; the service does not have those that are left out.
    refine: Mapping[str, OperationPath] = _PATHS
    #: The field for the pattern that a refinement changes.
    pattern: Name = "patternId"
    #: The service's names for the fields of refinements that differ from ours, under our names.
    fields: Mapping[str, Name] = {}
    #: The operation that uploads a picture, and the field with its bytes in base64.
    upload: OperationPath = "references/create"
    picture: Name = "data"
    #: The fields of `patterns/create` for the model and the list of references.
    model: Name = "model"
    references: Name = "referenceIds"
    #: The operation that finds a job by the `requestId` of its create; None where the service has none.
    lookup: OperationPath | None = None
    #: Uploads and refinements recognise a request ID that they have had before, so that they may be sent again.
    repeatable: bool = False
    #: Operations that a person vouches for, so that the service is not asked whether it has them.
    known: frozenset[str] = frozenset()

    def operations(self, stages: Collection[Stage], refinements: Iterable[str]) -> list[str]:
        """Return the operations that make references and these refinements, by the service's names."""
        upload = [self.upload] if Stage.REFERENCE in stages else []
        return [*upload, *(self.refine[operation] for operation in refinements)]

    def named(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {self.fields.get(name, name): value for name, value in parameters.items()}


UNSTATED = Unstated()
_BY_ENVIRONMENT = TypeAdapter(dict[str, dict[str, Any]])


def read_unstated(file: Path | None, environment: str) -> Unstated:
    """Return the names that a JSON file has for an environment; without a file or an entry, the choices above.

    The service is trusted to have what the file names. Raises ConfigurationError.
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
    upload = {configured["upload"]} if "upload" in configured else set()
    known = unstated.known.union(configured.get("refine", {}).values(), upload)
    return unstated.model_copy(update={"refine": {**_PATHS, **unstated.refine}, "known": known})
