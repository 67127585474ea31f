"""The columns `model`, `reference` and `refine:<operation>`, checked against what is known of the service."""

from __future__ import annotations

from dataclasses import replace

from patternmill.planning.extras import UPLOAD, Extras, Picture, unreadable
from patternmill.planning.offer import Nearest
from patternmill.planning.problems import Problem, RowCode
from patternmill.planning.refinements import Refinement, read_refinement
from patternmill.planning.rows import is_blank, tidy
from patternmill.tables.choices import unknown_name
from patternmill.tables.slips import error_problem, unfit_problem
from patternmill.text import shown


class ExtraCells:
    """Reads single cells of these columns: each is what the row asks for, what is wrong with it, or blank (None)."""

    def __init__(self, extras: Extras) -> None:
        self._extras, self._nearest = extras, Nearest()

    def model(self, column: str, cell: str) -> str | Problem | None:
        """Return the model as the service lists it, or as written where no list can be read."""
        if is_blank(cell):
            return None
        text, models = tidy(cell), self._extras.models
        if unfit := unfit_problem(column, cell):
            return unfit
        if models is None:
            return text
        matches = models.find(text)
        return (
            matches[0].id if len(matches) == 1 else unknown_name(models, column, text, "model", self._nearest)
        )

    def reference(self, column: str, cell: str) -> str | Problem | None:
        """Return the picture's SHA-256."""
        if is_blank(cell):
            return None
        text = tidy(cell)
        if error := error_problem(column, text):
            return error
        if why := self._extras.unavailable.get(UPLOAD):
            return _unavailable(column, why)
        unread = unreadable(f"the picture {shown(text)} was not read", "check it with the service at hand")
        picture = self._extras.pictures.get(text, unread)
        return picture.sha256 if isinstance(picture, Picture) else replace(picture, column=column)

    def refinement(self, operation: str, column: str, cell: str) -> Refinement | Problem | None:
        """Return what is to be done to the pattern."""
        if is_blank(cell):
            return None
        if why := self._extras.unavailable.get(operation):
            return _unavailable(column, why)
        return error_problem(column, cell) or read_refinement(operation, tidy(cell), column)


def _unavailable(column: str, why: str) -> Problem:
    remedy = "empty the cell, or name the operation in PATTERNMILL_OPERATIONS_FILE if it is called otherwise"
    return Problem(column, RowCode.UNAVAILABLE_OPERATION, why, remedy)
