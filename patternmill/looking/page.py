"""Makes gallery.html: every pattern with its products, to look at and to decide on, in one file.

The page builds its cards from the data in it, as text and never as markup; a content security policy lets
nothing run but the script that is part of it. Nothing is loaded but the pictures.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from patternmill.addresses import is_web_address
from patternmill.catalog.rows import run_cell
from patternmill.identifiers import ItemKey
from patternmill.ledger.decisions import last_sequence
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.looking.kept_pictures import pictures_of
from patternmill.results.row_files import json_bytes
from patternmill.results.row_results import RowResult
from patternmill.results.summary import WITH_CAUSE, cause_key, count_everything, failures_by_cause
from patternmill.states import Outcome, RowStatus
from patternmill.text import duration, moment, plural

_SLOT = re.compile(r"<!--(\w+)-->")
_FOR_SCRIPT = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
#: What needs attention first.
_RANK = {
    RowStatus(status): rank
    for rank, status in enumerate(
        ("failed", "refused", "held", "in_doubt", "waiting", "cancelled", "not_started", "succeeded")
    )
}


def gallery(ledger: Ledger, run: RunRecord, rows: Sequence[RowResult]) -> Iterator[bytes]:
    """The bytes of the page that is written with the results files of a run."""
    decided = last_sequence(ledger, run.environment, run.catalog)
    return page(run, rows, pictures_of(run, rows), decided=decided)


def page(
    run: RunRecord,
    rows: Sequence[RowResult],
    pictures: Mapping[str, str],
    *,
    known: Mapping[ItemKey, Mapping[str, Any]] = MappingProxyType({}),
    currency: str | None = None,
    approval: Mapping[str, Any] | None = None,
    served: str | None = None,
    decided: int = 0,
) -> Iterator[bytes]:
    """The bytes of gallery.html; `pictures` leads from a picture's URL to a file next to the page.

    `known` is what is known of the pattern of a row, by its item: `takes` all that there are, as
    `{item, take, picture, digest, chosen, decision}` with the last decision on that picture as it is posted; `price`
    what another take costs with its products, in minor units. `approval` is the plan that waits:
    `{digest, items, amount, currency}`. `served`: the name of who is signed in, where a server shows the page; None: it
    is opened from disk. `decided`: the place in the ledger of the last decision before the page is written.
    """
    style, script = page_part("page.css"), page_part("page.js")
    facts = _run_facts(run, rows) | {"currency": currency, "approval": approval}
    facts["cell"] = run_cell(run.run_id, decided)
    texts = {"policy": _policy(style, script, served), "served": _served(served), **_masthead(run, rows)}
    slots: dict[str, Callable[[], Iterator[bytes]]] = {
        "style": lambda: iter([style.encode()]),
        "script": lambda: iter([script.encode()]),
        "run": lambda: iter([_script_json(facts)]),
        "rows": lambda: _row_array(rows, pictures),
        "patterns": lambda: _array(_patterns(rows, pictures, known)),
    }
    for number, text in enumerate(_SLOT.split(page_part("page.html"))):
        if number % 2 and text in slots:
            yield from slots[text]()
        else:
            yield (texts[text] if number % 2 else text).encode("utf-8", "replace")


def _served(name: str | None) -> str:
    return "" if name is None else f'<meta name="patternmill-served" content="{html.escape(name)}">'


def _array(values: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield b"["
    for number, value in enumerate(values):
        yield (b",\n" if number else b"\n") + _script_json(value)
    yield b"]"


def _patterns(
    rows: Sequence[RowResult], pictures: Mapping[str, str], known: Mapping[ItemKey, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What is judged: each pattern with the rows that share it; a row that was refused stands alone, without one.

    What failed comes first, then all others in the order of the file.
    """
    together: dict[ItemKey | int, list[int]] = {}
    for index, row in enumerate(rows):
        together.setdefault(index if row.pattern is None else row.pattern.key, []).append(index)
    groups = [_group(rows, indexes, pictures, known) for indexes in together.values()]
    return sorted(groups, key=lambda group: (_RANK[group["status"]], group["rows"][0]))


def _group(
    rows: Sequence[RowResult],
    indexes: Sequence[int],
    pictures: Mapping[str, str],
    known: Mapping[ItemKey, Mapping[str, Any]],
) -> dict[str, Any]:
    first, statuses = rows[indexes[0]], {rows[index].status for index in indexes}
    pattern = first.pattern
    facts = known.get(pattern.key, {}) if pattern else {}
    takes = facts.get("takes", ())
    if pattern and not takes:
        own = {"item": pattern.key, "take": 1, "picture": pattern.picture_url, "digest": "", "chosen": True}
        takes = (own,)
    return {
        "item": pattern and pattern.key,
        "takes": [take | {"picture": _address(take["picture"], pictures)} for take in takes],
        "prompt": first.prompt,
        "rows": indexes,
        "made": any(rows[index].pattern_id for index in indexes),
        "status": min(statuses, key=_RANK.__getitem__),
        "statuses": sorted(statuses),
        "price": facts.get("price"),
    }


def _row_array(rows: Sequence[RowResult], pictures: Mapping[str, str]) -> Iterator[bytes]:
    causes = {(cause.code, cause.signature): number for number, cause in enumerate(failures_by_cause(rows))}
    return _array(_card(row, causes, pictures) for row in rows)


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
        "productPicture": _address(row.product.picture_url if row.product else None, pictures),
        "code": row.error_code,
        "error": row.error,
        "remedy": row.remedy,
        "ordered": row.ordered,
        "cause": causes[cause_key(row)] if row.status in WITH_CAUSE else None,
    }
    return {name: value for name, value in shown.items() if value not in (None, "", [])}


def _address(url: str | None, pictures: Mapping[str, str]) -> str | None:
    """Where a picture is: next to the page, or at the service. Other schemes than HTTP are not followed."""
    if url is None:
        return None
    if url in pictures:
        return quote(pictures[url].replace("\\", "/"))
    return url if is_web_address(url) else None


def _masthead(run: RunRecord, rows: Sequence[RowResult]) -> dict[str, str]:
    """What stands above the patterns, as HTML."""
    counted, outcome = count_everything(rows), run.outcome
    took = f" · {duration(run.ended_at - run.started_at)}" if run.ended_at else ""
    tone = {Outcome.COMPLETED: "good", Outcome.FAILED: "bad"}.get(outcome, "warn") if outcome else "warn"
    facts = (
        plural(counted.rows, "row"),
        plural(counted.products, "product"),
        plural(counted.patterns, "pattern"),
        f"{moment(run.started_at)} UTC{took}",
    )
    word = html.escape(outcome.words if outcome else "Not finished")
    return {
        "title": html.escape(f"{run.catalog} · {run.environment}"),
        "environment": html.escape(run.environment),
        "outcome": f'<span class="{tone}">{word}</span>',
        "catalog": html.escape(run.catalog),
        "facts": " · ".join(facts),
        "reason": html.escape(run.reason or ""),
    }


def _run_facts(run: RunRecord, rows: Sequence[RowResult]) -> dict[str, Any]:
    return {
        "id": run.run_id,
        "catalog": run.catalog,
        "environment": run.environment,
        "causes": [
            {"code": cause.code, "count": cause.count, "message": cause.message, "remedy": cause.remedy}
            for cause in failures_by_cause(rows)
        ],
    }


def _script_json(value: object) -> bytes:
    """JSON that cannot end the script element around it, whatever the texts are."""
    return json_bytes(value).decode().translate(_FOR_SCRIPT).encode()


def _policy(style: str, script: str, served: str | None) -> str:
    # Served, pictures are fetched by the script, which has what opens them.
    sources = "img-src file: http: https:;" if served is None else "img-src blob:; connect-src 'self';"
    return (
        f"default-src 'none'; {sources} base-uri 'none'; form-action 'none';"
        f" style-src '{policy_digest(style)}'; script-src '{policy_digest(script)}'"
    )


def served_policy(opening: str) -> str:
    """Return the policy of a document whose script writes the served page into it."""
    style, script = page_part("page.css"), page_part("page.js")
    return _policy(style, script, "") + f" '{policy_digest(opening)}'"


def policy_digest(text: str) -> str:
    """By which a content security policy allows a style or script that is part of a page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_part(name: str) -> str:
    """A file of this room, as text."""
    return files("patternmill.looking").joinpath(name).read_text(encoding="utf-8")
