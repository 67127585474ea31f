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
from patternmill.states import Stage
from tests.row_results import RowResult
from tests.unit.tables.builders import RUN, item, results_of, row


def html_of(rows: Sequence[RowResult]) -> str:
    return b"".join(page(RUN, results_of(rows).read(), {})).decode()


def block(html: str, name: str) -> Any:
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


def pictured(url: str) -> RowResult:
    return row("A", items=(item(Stage.PATTERN, "A"), item(Stage.PRODUCT, "A", picture_url=url)))


def test_gallery_has_every_row_in_order() -> None:
    """With all that its card shows, across the batches in which it is written."""
    rows = block(html_of([row(f"S{n}") for n in range(1001)]), "row-data")
    assert [row["sku"] for row in rows] == [f"S{n}" for n in range(1001)]
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
        page(RUN, results_of([pictured("http://x/1.png")]).read(), {"http://x/1.png": "pictures/a b#1.png"})
    ).decode()
    assert '"productPicture":"pictures/a%20b%231.png"' in html
    assert "http://x/1.png" not in html


def test_content_policy_allows_its_own_script_and_style_only() -> None:
    """The hashes in the policy are those of the script and the style in the page."""
    html = html_of([row("A")])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for element in (r"<style>(.*?)</style>", r"<script>(.*?)</script>"):
        match = re.search(element, html, re.DOTALL)
        assert match is not None
        digest = base64.b64encode(hashlib.sha256(match[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
