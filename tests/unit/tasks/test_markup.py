"""What comes from a file or the service is text on every page, in both of the readings that Prefect's UIs have."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tasks.markup import LONGEST, cell, line, log_lines, markdown, markdown_lines
from tests.hostile.texts import HOSTILE_TEXTS

ROOT = Path(__file__).resolve().parents[3]
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: What both UIs make links of, in whatever is not code.
ADDRESS = re.compile(r"(?:https?|ftp)://|www\.|[\w.+-]@[\w-]", re.IGNORECASE)
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")
pieces = st.one_of(
    st.sampled_from(sorted({*"\\`*_[]<>()!#~|&;:@./-+=1 \n", "http://", "www.", "a", "&lt;"})), st.text()
)
texts = st.lists(pieces, max_size=30).map("".join)


def read(markup: str) -> tuple[str, set[str]]:
    """What a reader shows of markdown, and the kinds of its parts; fails where it would make a link of an address."""
    blocks = READER.parse(markup)
    leaves = [
        leaf for block in blocks for leaf in (block.children if block.children is not None else [block])
    ]
    plain = "".join(leaf.content if leaf.type == "text" else "\n" for leaf in leaves)
    assert not ADDRESS.search(plain), plain
    return "".join(leaf.content for leaf in leaves), {leaf.type for leaf in leaves}


@given(texts)
@example("a_ _b `www.x` |")
def test_any_text_shows_itself(text: str) -> None:
    """In a paragraph, and in a table that keeps its two cells."""
    shown, kinds = read(markdown(text))
    assert shown == line(text)
    assert kinds <= {"paragraph_open", "paragraph_close", "text", "code_inline"}, (markdown(text), kinds)
    shown, kinds = read(f"| a | b |\n|---|---|\n| {markdown(text)} | end |")
    assert shown == f"ab{line(text)}end"
    assert all(kind.startswith(("table_", "th", "tr_", "tb", "td_", "text", "code_inline")) for kind in kinds)


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    """In a paragraph, on a line without breaks or controls, and in a log without links."""
    assert read(markdown(text))[0] == line(text)
    assert not CONTROLS.search(line(text))
    shown = log_lines(text)
    assert "://" not in shown
    assert not CONTROLS.search(shown.replace("\n", ""))
    assert shown.count("\n") == text.count("\n")


def test_cell_of_a_table_artifact_has_apostrophes_for_backticks() -> None:
    """Of which plain text would be full. No line is longer than a page shows."""
    assert cell("the value `red` is unknown") == "the value 'red' is unknown"
    assert len(line("x" * 10_000)) == LONGEST


def test_indented_line_has_no_entities() -> None:
    """The older UI shows them as they are written."""
    assert markdown_lines(["Causes:", "  1 × too_dark"]) == "Causes:  \n\u00a0\u00a01 × too_dark"


@pytest.mark.parametrize(
    "text", ["spring_catalog.csv", "/srv/data/rows.csv", "5 of 7 (minor units)", "-5", "#"]
)
def test_ordinary_text_stays_unchanged(text: str) -> None:
    """Read as source too."""
    assert markdown(text).lstrip("\\") == text


def test_command_line_prints_through_one_function() -> None:
    """`cli.terminal.echo`; the JSON of `--json`, made visible too, is the other. `error: ` in red is a constant."""
    for path in (ROOT / "cli").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
        printing = called & {"click.echo", "print", "click.style"}
        assert not printing or path.name in {"terminal.py", "json_output.py"}, (path, printing)


def test_failed_state_is_logged_once() -> None:
    """Prefect writes one that a task returns twice, first with a traceback of nothing."""
    logger, entry = logging.getLogger("prefect.task_runs"), {"msg": "Finished in state Failed()"}
    assert not logger.filter(logging.makeLogRecord(entry | {"exc_info": (None, None, None)}))
    assert logger.filter(logging.makeLogRecord(entry))
