"""Which operations a person may call directly: none that could buy, however it is spelled."""

from __future__ import annotations

import pytest

from patternmill.errors import ConfigurationError
from patternmill.service.direct_calls import only_reads


@pytest.mark.parametrize("operation", ["models/list", "orders/get", "refine/list", "Models/List", "a-b/get"])
def test_reading_is_allowed(operation: str) -> None:
    assert only_reads(operation)


@pytest.mark.parametrize(
    "operation", ["references/delete", "checkouts/cancel", "models/search", "orders/getAll"]
)
def test_anything_else_is_for_a_person_to_confirm(operation: str) -> None:
    assert not only_reads(operation)


@pytest.mark.parametrize(
    "operation",
    [
        *("patterns/create", "products/create", "checkouts/create", "references/create", "feedback/create"),
        *("Patterns/CREATE", "patterns/createMany", "patterns/bulk-create", "patterns/recreate"),
        *("refine/recolor", "refine/edit", "REFINE/crop", "refine/delete"),
    ],
)
def test_what_may_buy_is_refused(operation: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        only_reads(operation)
    assert refused.value.code == "may_buy"


@pytest.mark.parametrize(
    "operation",
    [
        *("", "models", "models/", "/models/list", "models/list/", "models//list", "models/list/x"),
        *(
            "../patterns/create",
            "x/../patterns/create",
            "patterns%2Fcreate",
            "patterns/cre%61te",
            "x/get?y=1",
        ),
        *(
            "patterns/create#get",
            "models/list\n",
            "models\\list",
            "models/ list",
            "mødels/list",
            "x/get@host",
        ),
    ],
)
def test_no_other_spelling_is_an_operation(operation: str) -> None:
    """So that none means another than it reads as."""
    with pytest.raises(ConfigurationError, match="is no operation"):
        only_reads(operation)
