"""The page without its server: cards in one file beside the results."""

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from patternmill.looking.cards import Card, Line, as_json, selections_in_words

#: The most patterns that a gallery shows.
MOST = 2_000


class Made(NamedTuple):
    """A row that has a pattern, as it is in results; `selections` is a JSON object."""

    pattern: str
    prompt: str
    sku: str
    category: str
    selections: str
    status: str
    product: str
    message: str


def gallery(catalog: str, rows: Iterable[Made]) -> str:
    """Return the page of the first patterns that these rows have, with all that it shows inside."""
    patterns: dict[str, list[Made]] = {}
    for row in rows:
        patterns.setdefault(row.pattern, []).append(row)
    cards = [
        Card(name, name, those[0].prompt, tuple(map(_line, those)), name, 1)
        for name, those in islice(patterns.items(), MOST)
    ]
    script, style = part("page.js"), part("page.css")
    policy = (
        f"default-src 'none'; img-src * file: data:; script-src {_digest(script)}; style-src {_digest(style)}"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{style}</style>'
    start = {"catalog": catalog, "patterns": len(patterns)}
    data = f'{json.dumps(start)[:-1]}, "cards": [{",".join(map(as_json, cards))}]}}'
    return filled(data, head).replace("</body>", f"<script>{script}</script></body>")


def _line(row: Made) -> Line:
    chosen = selections_in_words(json.loads(row.selections))
    return Line(row.sku, row.sku, row.category, chosen, row.status, row.message, row.product, row.product)


def filled(data: str, head: str) -> str:
    """Return the page with its data, as JSON that no text of others can end, and what its head holds."""
    text = part("page.html").replace("<!--data-->", data.replace("<", "\\u003c"))
    return text.replace("<!--head-->", head)


@cache
def part(name: str) -> str:
    """Return a file of the page."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
