"""What comes from a file or the service is text on every page, in both of the readings that Prefect's UIs have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tasks.markup import LONGEST, cell, line, log_lines, markdown
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


def leaves(markup: str) -> Iterator[Token]:
    for token in READER.parse(markup):
        yield from token.children if token.children is not None else [token]


def inner(text: str) -> str:
    """What is read of the escaped text in a paragraph; fails where anything else than text and code is made of it."""
    found = list(leaves(markdown(text)))
    kinds = {token.type for token in found}
    assert kinds <= {"paragraph_open", "paragraph_close", "text", "code_inline"}, (markdown(text), kinds)
    shown = "".join(token.content for token in found)
    plain = "\n".join(_runs(found))
    assert not ADDRESS.search(plain), plain
    return shown


def _runs(found: list[Token]) -> Iterator[str]:
    """The texts between codes: what is looked through for addresses."""
    run = ""
    for token in found:
        if token.type == "text":
            run += token.content
        else:
            yield run
            run = ""
    yield run


@given(texts)
@example("a_ _b `www.x` |")
def test_any_text_shows_itself(text: str) -> None:
    """In any combination."""
    assert inner(text) == line(text)


@given(texts)
def test_table_cell_shows_the_text(text: str) -> None:
    """The table has its two cells, and the cell has the text."""
    found = list(leaves(f"| a | b |\n|---|---|\n| {markdown(text)} | end |"))
    opened = [token.type for token in found].count("td_open")
    assert opened == 2
    assert not {token.type for token in found} & {
        "image",
        "link_open",
        "html_inline",
        "html_block",
        "em_open",
        "s_open",
    }
    shown = "".join(token.content for token in found if token.type in {"text", "code_inline"})
    assert shown == f"ab{line(text)}end"


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_text_is_shown_as_it_is(text: str) -> None:
    """In a paragraph, on a line without breaks or controls, and in a log without links."""
    assert inner(text) == line(text)
    assert not CONTROLS.search(line(text))
    shown = log_lines(text)
    assert "://" not in shown
    assert not CONTROLS.search(shown.replace("\n", ""))
    assert shown.count("\n") == text.count("\n")


def test_cell_of_a_table_artifact_has_apostrophes_for_backticks() -> None:
    """Of which plain text would be full. No line is longer than a page shows."""
    assert cell("the value `red` is unknown") == "the value 'red' is unknown"
    assert len(line("x" * 10_000)) == LONGEST


@pytest.mark.parametrize(
    "text", ["spring_catalog.csv", "/srv/data/rows.csv", "5 of 7 (minor units)", "-5", "#"]
)
def test_ordinary_text_stays_unchanged(text: str) -> None:
    """Read as source too."""
    assert markdown(text).lstrip("\\") == text


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))


def test_command_line_prints_through_one_function() -> None:
    """`cli.terminal.echo`; the JSON of `--json`, made visible too, is the other. `error: ` in red is a constant."""
    for path in (ROOT / "cli").rglob("*.py"):
        found = {ast.unparse(call.func) for call in calls(path)} & {"click.echo", "print", "click.style"}
        assert not found or path.name in {"terminal.py", "json_output.py"}, (path, found)


def test_names_of_flow_runs_are_no_formats() -> None:
    """Prefect formats a text: a name that is made of rows is passed as a function."""
    for path in [*(ROOT / "flows").glob("*.py"), *(ROOT / "tasks").glob("*.py")]:
        for call in calls(path):
            if ast.unparse(call.func).endswith(".with_options"):
                names = [word.value for word in call.keywords if word.arg == "flow_run_name"]
                assert all(isinstance(name, ast.Attribute) for name in names), path
