"""Makes gallery.html: every row, its picture, and what went wrong, in one file; and keeps the pictures next to it.

The page builds its cards from the data in it, as text and never as markup; a content security policy lets
nothing run but the script that is part of it. Nothing is loaded but the pictures.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from patternmill.catalog.column_mapping import MAPPING, ColumnMapping
from patternmill.catalog.rows import header_key
from patternmill.ledger.records import RunRecord
from patternmill.results.row_files import ItemTrace, RowResult, iso_time, json_bytes
from patternmill.results.summary import WITH_CAUSE, cause_key, count_everything, failures_by_cause

_SLOT = re.compile(r"<!--(\w+)-->")
_FOR_SCRIPT = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def page(
    run: RunRecord, header: Sequence[str], rows: Sequence[RowResult], pictures: Mapping[str, str]
) -> Iterator[bytes]:
    """The bytes of gallery.html; `pictures` leads from a picture's URL to a file next to the page."""
    mapping = ColumnMapping(run.options.get(MAPPING, {}))
    style, script = _part("gallery.css"), _part("gallery.js")
    slots: dict[str, Callable[[], Iterator[bytes]]] = {
        "policy": lambda: iter([_policy(style, script).encode()]),
        "title": lambda: iter([html.escape(f"{run.catalog} · {run.environment}").encode("utf-8", "replace")]),
        "style": lambda: iter([style.encode()]),
        "script": lambda: iter([script.encode()]),
        "run": lambda: iter([_script_json(_run_facts(run, rows))]),
        "rows": lambda: _row_array(mapping.applied(header), rows, pictures),
    }
    for number, text in enumerate(_SLOT.split(_part("gallery.html"))):
        yield from slots[text]() if number % 2 else iter([text.encode()])


def _row_array(
    header: Sequence[str], rows: Sequence[RowResult], pictures: Mapping[str, str]
) -> Iterator[bytes]:
    keys = [header_key(name) for name in header]
    prompt, category = (
        next((i for i, key in enumerate(keys) if key in names), None)
        for names in ({"prompt"}, {"category", "category_id"})
    )
    causes = {(cause.code, cause.signature): number for number, cause in enumerate(failures_by_cause(rows))}
    for number, row in enumerate(rows):
        yield (b",\n" if number else b"[\n") + _script_json(
            _card(row, _cell(row, prompt), _cell(row, category), causes, pictures)
        )
    yield b"\n]" if rows else b"[]"


def _card(
    row: RowResult,
    prompt: str,
    category: str,
    causes: Mapping[tuple[str, str], int],
    pictures: Mapping[str, str],
) -> dict[str, Any]:
    """What the page shows of a row; what is empty is left out. `prompt` and `category` are as written."""
    shown = {
        "line": row.line,
        "sku": row.sku,
        "status": row.status.value,
        "prompt": row.prompt or prompt,
        "category": category or row.category_id,
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


def _cell(row: RowResult, index: int | None) -> str:
    return row.cells[index].strip() if index is not None and index < len(row.cells) else ""


def _picture(item: ItemTrace | None, pictures: Mapping[str, str]) -> str | None:
    """Where the picture is: next to the page, or at the service. Other schemes than HTTP are not followed."""
    url = item.last.picture_url if item and item.last else None
    if url is None:
        return None
    if url in pictures:
        return quote(pictures[url].replace("\\", "/"))
    return url if _is_web_address(url) else None


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _run_facts(run: RunRecord, rows: Sequence[RowResult]) -> dict[str, Any]:
    counted = count_everything(rows)
    return {
        "id": run.run_id,
        "catalog": run.catalog,
        "environment": run.environment,
        "outcome": run.outcome.value if run.outcome else None,
        "reason": run.reason,
        "started": iso_time(run.started_at),
        "ended": iso_time(run.ended_at),
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
        f" style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return files("patternmill.results").joinpath(name).read_text(encoding="utf-8")


FOLDER = "pictures"
#: The option in a run's record that makes its gallery look for them.
KEPT_PICTURES = "pictures_beside"


def picture_name(url: str) -> str:
    """The file name of a picture: from its address's path alone, as the port of a local service changes."""
    return f"{hashlib.sha256(urlsplit(url).path.encode()).hexdigest()[:24]}.png"


def pictures_of(record: RunRecord, rows: Iterable[RowResult]) -> dict[str, str]:
    """From the address of each picture to its place next to the gallery; empty where the service shows them."""
    if not record.options.get(KEPT_PICTURES):
        return {}
    items = (item.last for row in rows for item in (row.pattern, row.product) if item is not None)
    urls = (attempt.picture_url for attempt in items if attempt is not None)
    return {url: f"{FOLDER}/{picture_name(url)}" for url in urls if url is not None}


def picture_urls(results_jsonl: Path) -> Iterator[str]:
    """The addresses of a run's pictures, products first as they are what a gallery shows large."""
    for stage in ("product", "pattern"):
        seen: set[str] = set()
        with results_jsonl.open(encoding="utf-8") as lines:
            for line in lines:
                url = (json.loads(line).get(stage) or {}).get("picture_url")
                if url is not None and url not in seen:
                    seen.add(url)
                    yield url


# The embedded studio ends with the command that serves it; its pictures are kept.

WIDTH = 256
#: Drawing takes most of a second a picture; what is not drawn by then is a tile in the gallery.
MOST_SECONDS = 60.0
MOST_PICTURES = 300


def keep_pictures(
    out: Path,
    cache: Path,
    studio_url: str,
    report: Callable[[str], None],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Put the pictures of a run into `out`, from `cache` or else drawn by the studio now."""
    urls = list(picture_urls(out / "results.jsonl"))
    missing = [url for url in urls if not (cache / picture_name(url)).exists()]
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if missing:
        report(
            f"Drawing {min(len(missing), MOST_PICTURES)} pictures for the gallery; stopping leaves the rest out."
        )
    try:
        _draw(missing[:MOST_PICTURES], cache, studio_url, is_stopped)
    except KeyboardInterrupt:
        report("The remaining pictures are left out.")
    except OSError as error:
        report(f"The pictures could not be drawn ({type(error).__name__}); the gallery shows tiles.")
    share_pictures(out, cache)


def share_pictures(out: Path, cache: Path) -> None:
    """Put the pictures of a run that were drawn before into `out`."""
    folder = out / FOLDER
    for url in picture_urls(out / "results.jsonl"):
        if (cache / picture_name(url)).exists():
            folder.mkdir(exist_ok=True)
            _copy(cache / picture_name(url), folder / picture_name(url))


def _draw(urls: list[str], cache: Path, studio_url: str, is_stopped: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    for url in urls:
        left = deadline - time.monotonic()
        if left <= 0 or is_stopped():
            return
        address = _at(url, studio_url)
        with urllib.request.urlopen(address, timeout=left) as answer:  # noqa: S310 - our own studio
            content = answer.read()
        partial = cache / f"{picture_name(url)}.part"
        partial.touch(mode=0o600)
        partial.write_bytes(content)
        partial.replace(cache / picture_name(url))


def _at(url: str, studio_url: str) -> str:
    """The picture's address at the studio as it runs now: its port changes."""
    now, then = urlsplit(studio_url), urlsplit(url)
    return urlunsplit((now.scheme, now.netloc, then.path, f"width={WIDTH}", ""))


def _copy(source: Path, target: Path) -> None:
    """No link: files under the home are private, results have the umask's permissions."""
    if not target.exists():
        shutil.copyfile(source, target)
