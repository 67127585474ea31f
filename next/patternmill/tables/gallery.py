"""A page of a run's patterns, without scripts: one card a pattern, with the rows that share it."""

from collections.abc import Iterator
from html import escape

import pandas as pd

from patternmill.text import counted

_MOST = 2000
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Patterns</title>
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1.5rem; background: #f6f5f3 }}
main {{ display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)) }}
article {{ background: #fff; border: 1px solid #ddd; padding: 1rem; overflow-wrap: anywhere }}
h2 {{ font-size: 1rem }}
</style>
<h1>{title}</h1>
<main>{cards}</main>
"""


def gallery(rows: pd.DataFrame, results: pd.DataFrame) -> str:
    """Return the page of the rows that have a pattern. Both frames are indexed by row number."""
    made = rows[["sku", "prompt", "category"]].join(results, how="inner")
    made = made[made["pattern_id"].ne("")]
    patterns = made["pattern_id"].unique()
    made = made[made["pattern_id"].isin(patterns[:_MOST])]
    lines: dict[str, list[tuple[str, ...]]] = {}
    columns = ["pattern_id", "prompt", "sku", "category", "status", "product_id"]
    for pattern, *line in made[columns].to_numpy():
        lines.setdefault(pattern, []).append(tuple(line))
    more = f", of which these are the first {_MOST:,}" if len(patterns) > _MOST else ""
    return _PAGE.format(title=counted(len(patterns), "pattern") + more, cards="\n".join(_cards(lines)))


def _cards(patterns: dict[str, list[tuple[str, ...]]]) -> Iterator[str]:
    for pattern, lines in patterns.items():
        rows = "".join(f"<li>{escape(' · '.join(filter(None, line[1:])))}</li>" for line in lines)
        yield f"<article><h2>{escape(lines[0][0])}</h2><p>{escape(pattern)} · no picture</p><ul>{rows}</ul></article>"
