"""docs/interface.md: every operation and field, who calls it, where it is answered, and a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

from patternmill.service.studio_api import StudioApi
from studio.operations.table import OPERATIONS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith("|---")
]
HEADINGS = ("operation", "field", "section")
#: The operations that the interface names: each has a method of its own, and any other one may have.
NAMED = {
    "patterns/create", "jobs/get", "products/create", "checkouts/create", "orders/get", "feedback/create",
    "categories/list", "categories/get", "refine/edit", "refine/recolor", "refine/crop", "refine/extend",
}  # fmt: skip
NO_CALLER = "not named"
CALLER = re.compile(r"`StudioApi\.(\w+)`")
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for top in ("cli", "patternmill") for path in (ROOT / top).rglob("*.py")
)


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def body_rows() -> list[list[str]]:
    return [row for row in ROWS if row[0] not in HEADINGS]


def operation_row(name: str) -> list[str]:
    (row,) = (row for row in body_rows() if row[0] == f"`{name}`")
    return row


def test_no_cell_is_empty() -> None:
    """None is missing either: each row is as long as its heading."""
    assert len(body_rows()) > len(OPERATIONS)
    length = 0
    for row in ROWS:
        length = len(row) if row[0] in HEADINGS else length
        assert all(row), row
        assert len(row) == length, row


def test_every_field_of_an_operation_is_listed() -> None:
    """The page lists the fields that its models have, and no others."""
    for operation in OPERATIONS:
        _, request, answer, *_ = operation_row(operation.name)
        assert set(quoted(request)) == set(operation.body.model_fields), operation.name
        fields = getattr(operation.answer, "model_fields", None) or get_type_hints(operation.answer)
        assert set(quoted(answer)) == set(fields), operation.name


def test_every_named_operation_has_a_caller_that_exists() -> None:
    """The callers are methods of the client that are in use; what the interface does not name needs none."""
    cells = {operation.name: operation_row(operation.name)[3] for operation in OPERATIONS}
    assert {name for name, cell in cells.items() if cell == NO_CALLER}.isdisjoint(NAMED)
    for cell in set(cells.values()) - {NO_CALLER}:
        callers = [CALLER.fullmatch(part) for part in cell.split(", ")]
        assert all(callers), cell
        for method in (caller[1] for caller in callers if caller):
            assert callable(getattr(StudioApi, method))
            assert re.search(rf"(?<!def )\b\w+\.{method}\(", SOURCES), f"nothing calls {method}"


def test_every_row_names_code_and_tests_that_exist() -> None:
    for row in body_rows():
        file, name = quoted(row[-2])
        assert re.search(rf"(?:def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8")), row[-2]
        tests = quoted(row[-1])
        assert tests, row
        for test in tests:
            path, _, function = test.partition("::")
            assert f"def {function}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), test
