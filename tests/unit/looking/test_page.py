"""gallery.html as text: whole in itself, and no hostile prompt or answer becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from patternmill.looking.page import page
from patternmill.results.row_results import RowResult
from patternmill.states import RowStatus, Stage
from tests.unit.results.builders import RUN, item, row

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "]]>\u2028\u2029&lt;<!--rows-->",
]


def html_of(rows: Sequence[RowResult]) -> str:
    return b"".join(page(RUN, rows, {})).decode()


def block(html: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def pictured(url: str) -> RowResult:
    return row("A", items=(item(Stage.PATTERN, "A"), item(Stage.PRODUCT, "A", picture_url=url)))


def test_gallery_has_every_row_in_order() -> None:
    """With all that its card shows, across the batches in which it is written."""
    rows = block(html_of([row(f"S{n}") for n in range(1001)]), "row-data")
    assert [one["sku"] for one in rows] == [f"S{n}" for n in range(1001)]
    assert rows[0] == {
        "line": 2,
        "sku": "S0",
        "status": "succeeded",
        "prompt": "blue herons of S0",
        "category": "Cushion",
        "selections": [["fabric", "linen"], ["size", "S"]],
        "product": "prd-S0",
        "pattern": "pat-S0",
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_add_no_element(text: str) -> None:
    """The page has its own four script elements, whatever a prompt, a sku or a reason holds."""
    rows = [row(text, RowStatus.FAILED, prompt=text, error=text, remedy=text, selections={text: text})]
    html = html_of(rows)
    assert html.lower().count("<script") == html.lower().count("</script") == 4
    assert block(html, "row-data")[0]["prompt"] == text
    assert "<img" not in html


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://cdn.example/p.png?x=1&y=2", "https://cdn.example/p.png?x=1&y=2"),
        ("javascript:alert(1)", None),
        ("data:image/svg+xml,<svg/>", None),
        ("file:///etc/passwd", None),
        ("/relative.png", None),
        ("http://[half", None),
    ],
)
def test_pictures_are_web_addresses(url: str, shown: str | None) -> None:
    """Nothing else of an answer is linked."""
    assert block(html_of([pictured(url)]), "row-data")[0].get("productPicture") == shown


def test_local_pictures_are_linked() -> None:
    """Of those that were fetched; their names are written as addresses."""
    html = b"".join(
        page(RUN, [pictured("http://x/1.png")], {"http://x/1.png": "pictures/a b#1.png"})
    ).decode()
    assert '"productPicture": "pictures/a%20b%231.png"' in html
    assert "http://x/1.png" not in html


def test_content_policy_allows_its_own_script_and_style_only() -> None:
    """The hashes in the policy are those of the script and the style in the page."""
    html = html_of([row("A")])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for element in (r"<style>(.*?)</style>", r"<script>(.*?)</script>"):
        found = re.search(element, html, re.DOTALL)
        assert found is not None
        digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_unpaired_surrogate_does_not_break_the_gallery() -> None:
    """As an odd answer may hold."""
    html = html_of([row("A", RowStatus.FAILED, error="\ud83d")])
    assert block(html, "row-data")[0]["error"] == "\ud83d"
