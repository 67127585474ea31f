"""The documents name what is there: commands, options, settings, codes, links, and the tests that cover incidents."""

import ast
import re
from pathlib import Path

import click
import pytest

from cli.main import verbs
from patternmill.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "inputs/README.md", "deployments/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: What refuses with a code, as its first or second argument.
REFUSING = re.compile("Refusal|InputRefused|Overlap|LeaseLost|Halted|Fault|Rule|Held|_held|Refused|Stop")


def found(pattern: str, page: Path) -> list:
    return re.findall(pattern, page.read_text("utf-8"), re.MULTILINE)


def options() -> dict[str, set[str]]:
    """Return the options of each verb."""
    context = click.Context(verbs)
    commands = {name: verbs.get_command(context, name) for name in verbs.list_commands(context)}
    return {name: {"--help", *(option for one in command.params for option in one.opts)}
            for name, command in commands.items() if command}  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_that_are_named_exist(page):
    known = options()
    for verb, rest in found(r"(?:^ {4}|`)patternmill ([a-z]\w*)([^\n`#|]*)", page):
        assert set(re.findall(r"--[a-z-]+", rest)) <= known[verb], f"patternmill {verb}{rest}"
    assert set(found(r"(?<=`)--[a-z-]+", page)) <= set().union(*known.values())


def test_the_readme_lists_every_verb_and_is_short():
    rows = found(r"^\| ((?:`[a-z]+`(?:, )?)+) \|", ROOT / "README.md")
    assert set(re.findall(r"[a-z]+", " ".join(rows))) == set(options())
    assert len(found(r"\S+", ROOT / "README.md")) <= 600


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    for target, title in found(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page):
        path = page.parent / target if target else page
        assert path.exists(), target
        titles = found(r"^#+ (.+)$", path) if title else [""]
        assert title in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles], title


def test_tests_that_cover_incidents_exist():
    named = found(r"`(test_\w+\.py)::(test_\w+)`", ROOT / "docs/incidents.md")
    assert len(named) > 100
    assert not [one for one in named if not found(rf"def {one[1]}\(", ROOT / "tests" / one[0])]


def test_settings_are_documented_and_documented_ones_exist():
    fields = {name.upper() for name in Settings.model_fields}
    assert set(found(rf"^#{PREFIX}([A-Z_]+)=", ROOT / ".env.example")) == fields
    assert {name for page in PAGES for name in found(rf"{PREFIX}([A-Z_]+)\b", page)} <= fields


def test_every_code_is_explained():
    pages = (ROOT / "docs/on-call.md", ROOT / "inputs/README.md")
    explained = {code for page in pages for code in found(r"`([a-z_]+)`", page)}
    for path in (path for room in ("patternmill", "cli", "tasks") for path in (ROOT / room).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and REFUSING.fullmatch(getattr(call.func, "id", "")):
                texts = [str(one.value) for one in call.args[:2] if isinstance(one, ast.Constant)]
                codes = {text for text in texts if re.fullmatch("[a-z_]+", text)}
                assert codes <= explained, f"{path}: {codes}"
