"""The gallery in a real browser: it opens from disk, lays out every row, finds rows, and runs nothing but itself."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.records import RunRecord
from patternmill.ledger.runs import ItemOutcome, RowOutcome
from patternmill.looking.page import page
from patternmill.results.results_files import write_results
from patternmill.results.row_results import RowResult
from patternmill.states import Outcome, RowStatus, Stage
from tests.acceptance.browser import QUIET, installed

ONCE = (*QUIET, "--enable-logging=stderr", "--virtual-time-budget=5000")
HEADER = ("sku", "prompt", "category")
RUN = RunRecord(
    RunId("run-1"),
    "spring",
    "staging",
    "spring.csv",
    "ab" * 32,
    "utf-8",
    "http://127.0.0.1:9/v1",
    datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
    datetime(2026, 3, 1, 9, 34, tzinfo=UTC),
    Outcome.COMPLETED_WITH_FAILURES,
)
RUNS_CODE = "document.documentElement.dataset.taken=1"
HOSTILE = (
    f"</script><script>{RUNS_CODE}</script>",
    f"<img src=x onerror='{RUNS_CODE}'>",
    f'"><svg onload="{RUNS_CODE}">',
    "<!--<script>",
)


class Page(HTMLParser):
    """What a browser made of the page: its elements, the skus of its cards, and the title of what is shown large."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.skus: list[str] = []
        self.titles: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        attributes = self.tags[-1][1] if self.tags else {}
        if attributes.get("class") == "sku":
            self.skus.append(data)
        if attributes.get("id") == "detail-title":
            self.titles.append(data)

    def count(self, name: str) -> int:
        return sum(name in (attributes.get("class") or "").split() for _, attributes in self.tags)


@pytest.fixture(scope="module")
def browser() -> str:
    return installed()


def opened(browser: str, path: Path, profile: Path) -> Page:
    """The page as the browser has it once its script has run; what the browser complains of fails the test."""
    done = subprocess.run(
        [browser, *ONCE, f"--user-data-dir={profile}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    complaints = re.findall(r"CONSOLE.*(?:Uncaught|Content Security Policy|Refused).*", done.stderr)
    assert not complaints, complaints
    page = Page(done.stdout)
    assert page.tags[0][1].get("data-ready") == "true", done.stderr[-2000:]
    return page


def then(path: Path, script: str) -> Path:
    """A copy of the page in which a person runs `script`; the policy would not let it run."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", path.read_text())
    copy = path.with_name("tried.html")
    copy.write_text(html.replace("</body>", f"<script>{script}</script></body>"))
    return copy


def row(position: int, status: RowStatus = RowStatus.SUCCEEDED) -> RowResult:
    sku, prompt = f"SKU-{position:04d}", f"{'koi' if position % 2 else 'herons'} on teal and gold"
    is_made = status is RowStatus.SUCCEEDED
    pattern = ItemOutcome(Stage.PATTERN, ItemKey("p"))
    product = ItemOutcome(Stage.PRODUCT, ItemKey(sku), result_id=f"prd-{position}")
    error, remedy = (None, None) if is_made else ("no ink left", "Run again.")
    return RowResult(
        position,
        position + 2,
        sku,
        (sku, prompt, "Mug"),
        prompt,
        "Mug",
        "cat_1",
        {"size": "S"},
        RowOutcome(status, None, error, remedy, (pattern, product) if is_made else ()),
    )


def gallery(rows: Sequence[RowResult], out: Path) -> Path:
    return write_results(RUN, HEADER, range(3), rows, out, page(RUN, rows, {})).path("gallery.html")


def test_every_row_has_its_card_and_failures_come_first(browser: str, tmp_path: Path) -> None:
    """24 rows, one of which failed in the middle of the file."""
    rows = [row(n, RowStatus.FAILED if n == 13 else RowStatus.SUCCEEDED) for n in range(24)]
    page = opened(browser, gallery(rows, tmp_path / "out"), tmp_path / "profile")
    assert page.skus == ["SKU-0013", *(f"SKU-{n:04d}" for n in range(24) if n != 13)]
    assert page.count("tile") == 24


def test_hostile_texts_stay_text(browser: str, tmp_path: Path) -> None:
    """No prompt, sku, selection or reason becomes an element, and none runs."""
    rows = [
        replace(
            row(n, RowStatus.FAILED),
            sku=text,
            prompt=text,
            cells=(text, text, text),
            selections={text: text},
            outcome=RowOutcome(RowStatus.FAILED, None, text, text),
        )
        for n, text in enumerate(HOSTILE)
    ]
    page = opened(browser, gallery(rows, tmp_path / "out"), tmp_path / "profile")
    assert "data-taken" not in page.tags[0][1]
    assert page.count("card") == len(HOSTILE)
    assert not {"img", "svg"} & {tag for tag, _ in page.tags}


def test_two_thousand_rows_are_searched_and_filtered(browser: str, tmp_path: Path) -> None:
    """All cards exist; a search and a status leave the matching ones."""
    path = gallery(
        [row(n, RowStatus.FAILED if n % 100 == 7 else RowStatus.SUCCEEDED) for n in range(2000)], tmp_path
    )
    assert opened(browser, path, tmp_path / "profile").count("card") == 2000
    find = "const q = document.getElementById('query'); q.value = 'KOI sku-00'; q.dispatchEvent(new Event('input'));"
    choose = "document.querySelector('.chip[data-status=failed]').click();"
    tried = opened(browser, then(path, find + choose), tmp_path / "profile")
    assert tried.skus == ["SKU-0007"]
