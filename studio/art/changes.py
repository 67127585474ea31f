"""Changes to a pattern, one after another: edit, recolor, crop and extend, each on what the last one left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from studio.art import models
from studio.art.cutting import cropped, extended
from studio.art.editing import edited, rearranged
from studio.art.recipe import recipe_for
from studio.art.recolouring import recolored
from studio.art.references import Traits
from studio.art.sheet import Sheet, sheet_for
from studio.design import Change, Crop, Design, Edit, Extend, Recolor


def sheet_of(design: Design, references: Sequence[Traits] = ()) -> Sheet:
    """The sheet of a design, with everything that was done to it."""
    style = models.MANNERS[design.model].style
    recipe = recipe_for(design.prompt, design.seed, style=style, traits=references)
    if design.palette:
        recipe = recolored(recipe, design.palette)
    sheet = sheet_for(recipe)
    for place, change in enumerate(design.changes):
        sheet = _changed(sheet, change, design.changes[:place])
    return sheet


def _changed(sheet: Sheet, change: Change, before: Sequence[Change]) -> Sheet:
    if isinstance(change, Recolor):
        return replace(sheet, recipe=recolored(sheet.recipe, change.palette))
    if isinstance(change, Edit):
        return _edited(sheet, change, before)
    return _cut(sheet, change)


def _cut(sheet: Sheet, change: Crop | Extend) -> Sheet:
    return cropped(sheet, change) if isinstance(change, Crop) else extended(sheet, change)


def _edited(sheet: Sheet, change: Edit, before: Sequence[Change]) -> Sheet:
    """When the arrangement itself was named, everything is placed anew and cut as it was before."""
    after = edited(sheet.recipe, change.prompt)
    if not after.anew:
        return rearranged(sheet, after)
    fresh = sheet_for(after.recipe)
    for one in before:
        if isinstance(one, Crop | Extend):
            fresh = _cut(fresh, one)
    return fresh
