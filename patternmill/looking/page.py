"""Makes gallery.html: every row, its picture, and what went wrong, in one file.

The page builds its cards from the data in it, as text and never as markup; a content security policy lets
nothing run but the script that is part of it. Nothing is loaded but the pictures.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from patternmill.addresses import is_web_address
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.ledger.runs import ItemOutcome
from patternmill.looking.kept_pictures import pictures_of
from patternmill.results.row_files import iso_time, json_bytes
from patternmill.results.row_results import RowResult
from patternmill.results.summary import WITH_CAUSE, cause_key, count_everything, failures_by_cause
from patternmill.text import duration

_SLOT = re.compile(r"<!--(\w+)-->")
_FOR_SCRIPT = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def gallery(ledger: Ledger, run: RunRecord, rows: Sequence[RowResult]) -> Iterator[bytes]:
    """The bytes of the page that is written with the results files of a run."""
    return page(run, rows, pictures_of(run, rows))


def page(run: RunRecord, rows: Sequence[RowResult], pictures: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of gallery.html; `pictures` leads from a picture's URL to a file next to the page."""
    style, script = page_part("page.css"), page_part("page.js")
    slots: dict[str, Callable[[], Iterator[bytes]]] = {
        "policy": lambda: iter([_policy(style, script).encode()]),
        "title": lambda: iter([html.escape(f"{run.catalog} · {run.environment}").encode("utf-8", "replace")]),
        "style": lambda: iter([style.encode()]),
        "script": lambda: iter([script.encode()]),
        "run": lambda: iter([_script_json(_run_facts(run, rows))]),
        "rows": lambda: _row_array(rows, pictures),
    }
    for number, text in enumerate(_SLOT.split(page_part("page.html"))):
        yield from slots[text]() if number % 2 else iter([text.encode()])


def _row_array(rows: Sequence[RowResult], pictures: Mapping[str, str]) -> Iterator[bytes]:
    causes = {(cause.code, cause.signature): number for number, cause in enumerate(failures_by_cause(rows))}
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"[\n") + _script_json(_card(row, causes, pictures))
    yield b"\n]" if rows else b"[]"


def _card(
    row: RowResult, causes: Mapping[tuple[str, str], int], pictures: Mapping[str, str]
) -> dict[str, Any]:
    """What the page shows of a row; what is empty is left out."""
    shown = {
        "line": row.line,
        "sku": row.sku,
        "status": row.status.value,
        "prompt": row.prompt,
        "category": row.category or row.category_id,
        "selections": sorted(row.selections.items()),
        "product": row.product_id,
        "pattern": row.pattern_id,
        "productPicture": _picture(row.product, pictures),
        "patternPicture": _picture(row.pattern, pictures),
        "code": row.error_code,
        "error": row.error,
        "remedy": row.remedy,
        "ordered": row.ordered,
        "cause": causes[cause_key(row)] if row.status in WITH_CAUSE else None,
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [])}


def _picture(item: ItemOutcome | None, pictures: Mapping[str, str]) -> str | None:
    """Where the picture is: next to the page, or at the service. Other schemes than HTTP are not followed."""
    url = item.picture_url if item else None
    if url is None:
        return None
    if url in pictures:
        return quote(pictures[url].replace("\\", "/"))
    return url if is_web_address(url) else None


def _run_facts(run: RunRecord, rows: Sequence[RowResult]) -> dict[str, Any]:
    counted = count_everything(rows)
    return {
        "id": run.run_id,
        "catalog": run.catalog,
        "environment": run.environment,
        "outcome": run.outcome.value if run.outcome else None,
        "reason": run.reason,
        "started": iso_time(run.started_at),
        "took": duration(run.ended_at - run.started_at) if run.ended_at else None,
        "rows": counted.rows,
        "products": counted.products,
        "patterns": counted.patterns,
        "causes": [
            {"code": cause.code, "count": cause.count, "message": cause.message, "remedy": cause.remedy}
            for cause in failures_by_cause(rows)
        ],
    }


def _script_json(value: object) -> bytes:
    """JSON that cannot end the script element around it, whatever the texts are."""
    return json_bytes(value).decode().translate(_FOR_SCRIPT).encode()


def _policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; img-src file: http: https:; base-uri 'none'; form-action 'none';"
        f" style-src '{policy_digest(style)}'; script-src '{policy_digest(script)}'"
    )


def policy_digest(text: str) -> str:
    """By which a content security policy allows a style or script that is part of a page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_part(name: str) -> str:
    return files("patternmill.looking").joinpath(name).read_text(encoding="utf-8")
