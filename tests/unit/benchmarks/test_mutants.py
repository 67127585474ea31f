"""The mutation score is of changes that mean something: each is one change, and the rest of the module stays."""

from __future__ import annotations

import ast

from benchmarks.mutants import mutants

SOURCE = """LIMIT = 3

def allowed(count, known=True):
    if known and (not count):
        raise ValueError(count)
    note(count)
    return count <= LIMIT
"""
CHANGES = {
    "if known and (not count): -> if not (known and (not count)):",
    "known and (not count) -> known or not count",
    "not count -> not not count",
    "raise ValueError(count) -> pass",
    "note(count) -> pass",
    "return count <= LIMIT -> return None",
    "count <= LIMIT -> count < LIMIT",
}


def test_each_place_of_a_function_is_changed_alone() -> None:
    found = list(mutants(SOURCE))
    assert {one.change for one in found} == CHANGES
    whole = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in found:
        compile(mutant.tree, "mutant", "exec")
        lines = ast.unparse(mutant.tree).splitlines()
        changed = [number for number, line in enumerate(lines, start=1) if line != whole[number - 1]]
        assert changed == [mutant.line], mutant.change
