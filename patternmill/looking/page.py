"""Writes gallery.html: every pattern with its products, to look at and to decide on, in one file.

The page builds its cards from the data in it, as text and never as markup; a content security policy lets
nothing run but the script that is part of it. Nothing is loaded but the pictures.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from patternmill.addresses import is_web_address
from patternmill.files import json_bytes
from patternmill.identifiers import ItemKey
from patternmill.ledger.events import Decision
from patternmill.ledger.ledger import Ledger
from patternmill.ledger.records import RunRecord
from patternmill.looking.pictures import FOLDER, is_drawn, picture_name, picture_urls
from patternmill.runs.catalog_takes import CatalogTakes, PatternTake, has_choices
from patternmill.states import Outcome, Stage
from patternmill.tables.columns import run_cell
from patternmill.text import duration, moment, plural

if TYPE_CHECKING:
    from patternmill.tables.results import ResultLine, RunResults

_SLOT = re.compile(r"<!--(\w+)-->")
_FOR_SCRIPT = {
    "<": b"\\u003c",
    ">": b"\\u003e",
    "&": b"\\u0026",
    "\u2028": b"\\u2028",
    "\u2029": b"\\u2029",
}
#: The number of rows or patterns that are written at once.
_BATCH = 1000
Facts = Mapping[str, Any]
Share = Callable[[list[str]], object]


def gallery(ledger: Ledger, run: RunRecord, results: RunResults, share: Share = list) -> Iterator[bytes]:
    """Return the bytes of the page that is written with the results files of a run.

    `share` is called with the URLs of the pictures to put next to it: those of an embedded studio.
    """
    rows, scope = results.lines, (run.environment, run.catalog)
    # Reading all takes of a large catalog takes as long as writing the page.
    takes = CatalogTakes(ledger, *scope) if has_choices(ledger, *scope) else None
    patterns = pattern_facts(takes, rows) if takes is not None else {}
    urls = (
        picture_urls(rows, takes.as_shown(rows).values() if takes is not None else ())
        if is_drawn(run)
        else []
    )
    share(urls)
    beside = {url: f"{FOLDER}/{picture_name(url)}" for url in urls}
    cell = run_cell(run.run_id, takes.last_sequence if takes is not None else 0)
    return page(run, results, beside, patterns=patterns, facts={"cell": cell})


def page(
    run: RunRecord,
    results: RunResults,
    pictures: Mapping[str, str],
    *,
    patterns: Mapping[ItemKey, Facts] = MappingProxyType({}),
    facts: Facts = MappingProxyType({}),
    served: bool = False,
) -> Iterator[bytes]:
    """Return the bytes of the page of a run.

    `pictures` maps a picture's URL to a file next to the page; `patterns` is what `pattern_facts` returns.
    `facts` are for the script: `cell`, the column `run` of its file of decisions; and on a served page `approval`, a
    plan that waits, `paused`, and `actions`, the names of its commands.
    """
    rows, style, script = results.lines, page_part("page.css"), page_part("page.js")
    catalog = results.catalog
    cells = dict(catalog.sheet.records()) if catalog.columns.carried else {}
    own = {at: catalog.sheet.header[at] for at in sorted(catalog.columns.carried)}
    named = {"id": run.run_id, "catalog": run.catalog, "environment": run.environment, "cell": run.run_id}
    shown = {**named, **facts, "served": served, "columns": list(own.values())}
    texts = {"policy": _policy(style, script, served), **_masthead(run, results)}
    parts: dict[str, Iterable[bytes]] = {
        **{name: [text.encode("utf-8", "replace")] for name, text in texts.items()},
        "style": [style.encode()],
        "script": [script.encode()],
        "run": [_for_script(json_bytes(shown))],
        "rows": _array(_card(row, pictures, [cells[row.line][at] for at in own]) for row in rows),
        "patterns": _array(_patterns(rows, pictures, patterns)),
    }
    for number, text in enumerate(_SLOT.split(page_part("page.html"))):
        yield from parts[text] if number % 2 else [text.encode()]


def _array(values: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield b"[\n"
    left, before = iter(values), b""
    while batch := list(islice(left, _BATCH)):
        yield before + _for_script(b",\n".join(map(json_bytes, batch)))
        before = b",\n"
    yield b"]"


def _patterns(
    rows: Sequence[ResultLine], pictures: Mapping[str, str], patterns: Mapping[ItemKey, Facts]
) -> Iterator[dict[str, Any]]:
    """Yield each pattern with the rows that share it; a row that was refused stands alone."""
    together: dict[ItemKey | int, list[int]] = {}
    for index, row in enumerate(rows):
        made = patterns.get(row.take or ItemKey(""), {}).get("takes")
        # All rows that share a pattern have its first take; a row that was refused has none.
        first_take = ItemKey(made[0]["item"]) if made else row.take
        together.setdefault(first_take or index, []).append(index)
    for indexes in together.values():
        first = rows[indexes[0]]
        facts = patterns.get(first.take or ItemKey(""), {})
        takes = facts.get("takes", ())
        if first.take and not takes:
            takes = ({"item": first.take, "take": 1, "picture": first.picture_url, "digest": ""},)
        yield {
            "takes": [take | {"picture": _address(take["picture"], pictures)} for take in takes],
            "open": facts.get("open", ()),
            "prompt": first.prompt,
            "rows": indexes,
            "made": bool(facts.get("takes")) or any(rows[index].pattern_id for index in indexes),
        }


def pattern_facts(
    takes: CatalogTakes,
    rows: Sequence[ResultLine],
    digests: Mapping[ItemKey, str] = MappingProxyType({}),
) -> dict[ItemKey, dict[str, Any]]:
    """Return what the page needs to know of each row's pattern, by the item of its take.

    `takes`: those that were made, as `{item, take, picture, digest, pattern, decision}`, with the pattern's ID and the
    last decision in the form in which it is posted. `open`: the numbers of those that are being made, or may be.
    `digests`: the SHA-256 of the pictures of takes that were decided about.
    """
    shown = takes.as_shown(rows)

    def told(take: PatternTake) -> dict[str, Any]:
        digest, decision = digests.get(take.item, ""), takes.decisions.get(take.item)
        return {
            "item": take.item,
            "take": take.number,
            "picture": shown[take.item].picture_url,
            "digest": digest,
            "pattern": shown[take.item].pattern_id,
            "decision": _decision(decision, digest) if decision is not None else None,
        }

    return {
        key: {
            "takes": [told(take) for take in takes.of(key) if take.has_result],
            "open": [take.number for take in takes.of(key) if take.is_made and not take.has_result],
        }
        for key in {row.take for row in rows if row.take is not None}
        # The page derives any other pattern from its rows, and there may be many.
        if len(takes.of(key)) > 1 or key in takes.decisions
    }


def _decision(decision: Decision, digest: str) -> dict[str, Any]:
    """Return a decision in the form in which it is posted; `changed`: its picture was replaced since."""
    changed = bool(digest) and decision.picture not in ("", digest)
    return asdict(decision) | {"at": decision.at.isoformat(), "changed": changed}


def _card(row: ResultLine, pictures: Mapping[str, str], own: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of a row, without empty fields."""
    shown: dict[str, Any] = {
        "line": row.line,
        "sku": row.sku,
        "status": row.status.value,
        "prompt": row.prompt,
        "category": row.category or row.category_id,
        "selections": sorted(row.selections.items()),
        "own": own if any(own) else None,
        "product": row.product_id,
        "pattern": row.pattern_id,
        "productPicture": _address(row.product_picture, pictures),
        "code": row.error_code,
        "error": row.error,
        "remedy": row.remedy,
        "ordered": row.ordered,
    }
    return {name: value for name, value in shown.items() if value}


def _address(url: str | None, pictures: Mapping[str, str]) -> str | None:
    """Return where a picture is: next to the page, or at the service; None for any scheme but HTTP."""
    if url is None:
        return None
    if url in pictures:
        return quote(pictures[url].replace("\\", "/"))
    return url if is_web_address(url) else None


def _masthead(run: RunRecord, results: RunResults) -> dict[str, str]:
    """Return the texts above the patterns, as HTML."""
    made, outcome = results.made, run.outcome
    took = f" · {duration(run.ended_at - run.started_at)}" if run.ended_at else ""
    tone = {Outcome.COMPLETED: "good", Outcome.FAILED: "bad"}.get(outcome, "warn") if outcome else "warn"
    facts = (
        plural(len(results.rows), "row"),
        *(plural(made[stage], stage) for stage in (Stage.PRODUCT, Stage.PATTERN)),
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


def _for_script(text: bytes) -> bytes:
    """Return JSON escaped so that no text in it can end the script element around it."""
    for sign, escaped in _FOR_SCRIPT.items():
        text = text.replace(sign.encode(), escaped)
    return text


def _policy(style: str, script: str, served: bool) -> str:
    # On a served page the script fetches pictures, with the secret that opens them.
    sources = "img-src blob:; connect-src 'self';" if served else "img-src file: http: https:;"
    return (
        f"default-src 'none'; {sources} base-uri 'none'; form-action 'none';"
        f" style-src '{policy_digest(style)}'; script-src '{policy_digest(script)}'"
    )


def served_policy(opening: str) -> str:
    """Return the policy of the document that loads the served page by its script `opening`."""
    style, script = page_part("page.css"), page_part("page.js")
    return _policy(style, script, served=True) + f" '{policy_digest(opening)}'"


def policy_digest(text: str) -> str:
    """Return the hash by which a content security policy allows a style or script of the page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_part(name: str) -> str:
    """Return the text of a file of this package."""
    return files("patternmill.looking").joinpath(name).read_text(encoding="utf-8")
