"""gallery.html as text: it is complete in itself, and no hostile prompt or answer becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

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


def test_gallery_has_every_row_in_order() -> None:
    """Each row has all that its card shows, also beyond the first batch that is written."""
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


def test_only_web_addresses_and_pictures_at_hand_are_linked() -> None:
    """Any other address of an answer is left out, and the names of files are written as addresses."""
    beside = {"http://x/1.png": "pictures/a b#1.png"}
    shown = {
        "https://cdn.example/p.png?x=1&y=2": "https://cdn.example/p.png?x=1&y=2",
        "http://x/1.png": "pictures/a%20b%231.png",
        **dict.fromkeys(
            ("javascript:alert(1)", "data:image/svg+xml,<svg/>", "file:///etc/passwd", "/relative.png")
        ),
        "http://[half": None,
    }
    rows = [
        row("A", items=(item(Stage.PATTERN, "A"), item(Stage.PRODUCT, "A", picture_url=url))) for url in shown
    ]
    html = b"".join(page(RUN, results_of(rows).read(), beside)).decode()
    assert [card.get("productPicture") for card in block(html, "row-data")] == list(shown.values())


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
