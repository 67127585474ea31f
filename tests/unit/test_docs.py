"""What is written for people agrees with what is there: verbs, options, settings, words, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from cli.main import VERBS, patternmill
from patternmill.env_file import PREFIX
from patternmill.planning.problems import RowCode
from patternmill.reading import FileCode
from patternmill.settings import Settings
from patternmill.states import EXIT_CODES, WRITTEN_OFF, AttemptState, Outcome, RowStatus

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
ON_CALL = ROOT / "docs" / "on-call.md"
COMMANDS = ROOT / "docs" / "commands.md"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
FOLDERS = ("docs", "inputs", "studio", "benchmarks", "deployments")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
#: Set by the command line for itself; not for a person.
INTERNAL = {"embedded"}

TEST_FILES = [str(path.relative_to(ROOT / "tests")) for path in (ROOT / "tests").rglob("*")]

LINK = re.compile(r"\]\(([^)\s]+)\)")
VARIABLE = re.compile(rf"\b{PREFIX}[A-Z_]*[A-Z]\b")
TEST_FILE = re.compile(r"(?<![\w/.])(?:tests/[\w/]+(?:\.\w+)?|(?:\w+/)*test_\w+\.py)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]\b")


def commands(*verbs: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the verbs, and the verbs of each, with the words that call them."""
    context = click.Context(patternmill)
    for verb in verbs:
        command = patternmill.get_command(context, verb)
        assert command is not None, verb
        yield verb, command
        if isinstance(command, click.Group):
            yield from ((f"{verb} {name}", part) for name, part in command.commands.items())


def options_of(command: click.Command) -> set[str]:
    """Return the options that are shown to a person."""
    shown = (one for one in command.params if isinstance(one, click.Option) and not one.hidden)
    return {name for option in shown for name in option.opts if name.startswith("--")}


def section(name: str) -> str:
    """Return the section of one verb in the page of commands, up to the next heading."""
    parts = re.split(r"^#+ ", COMMANDS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [part for part in parts if re.match(rf"`patternmill {name}(`| [^a-z])", part)]
    assert len(found) == 1, f"docs/commands.md needs one section `patternmill {name}`"
    return found[0]


def anchors(page: Path) -> set[str]:
    """Return the fragments that lead to a page's headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def named_on_pages(pattern: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        yield from ((page, name) for name in pattern.findall(page.read_text(encoding="utf-8")))


def code_blocks(page: Path) -> Iterator[str]:
    """Yield the indented lines of a page: what a person is to type, or is shown."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            yield line.strip()


def test_readme_lists_exactly_the_verbs() -> None:
    """They are in its table."""
    rows = re.findall(r"^\| `([a-z]+)` \|", README.read_text(encoding="utf-8").partition("## Verbs")[2], re.M)
    assert rows == list(VERBS)


def test_commands_page_lists_exactly_the_options() -> None:
    """They are in each verb's section."""
    for name, command in commands(*VERBS):
        documented = re.findall(r"`(--[a-z-]+)`", section(name))
        assert set(documented) == options_of(command), f"docs/commands.md, {name}"


def test_shown_commands_exist() -> None:
    """A line that begins with `patternmill VERB` names a verb, and options that it has."""
    known = dict(commands(*VERBS))
    for line in (line for page in PAGES for line in code_blocks(page)):
        words = re.match(r"(?:\S+=\S+ )*(?:\.venv/bin/)?patternmill ([a-z]+)(?: ([a-z]+))?", line)
        if words is None:
            continue
        name = f"{words[1]} {words[2]}" if f"{words[1]} {words[2]}" in known else words[1]
        assert name in known, line
        assert set(OPTION.findall(line.partition("#")[0])) <= options_of(known[name]), line


def test_every_setting_is_documented() -> None:
    """It is in the example file, the README or a page of docs."""
    pages = [ROOT / ".env.example", README, *(ROOT / "docs").glob("*.md")]
    documented = {name for page in pages for name in VARIABLE.findall(page.read_text(encoding="utf-8"))}
    assert {PREFIX + field.upper() for field in set(Settings.model_fields) - INTERNAL} <= documented


def test_every_documented_setting_exists() -> None:
    """Every variable named on a page is a setting, or is read by name in the command line."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "cli").rglob("*.py"))
    known = {PREFIX + field.upper() for field in Settings.model_fields} | set(VARIABLE.findall(sources))
    for page, name in named_on_pages(VARIABLE):
        assert name in known, page


def test_every_relative_link_has_a_target() -> None:
    """A file that exists, and a heading that it has."""
    for page, link in named_on_pages(LINK):
        if "://" in link:
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if fragment:
            assert fragment in anchors(target), f"{page.name} links to {link}"


def test_every_named_test_file_exists() -> None:
    """Named by its path, with or without `tests/` in front, or by the end of its path."""
    for page, name in named_on_pages(TEST_FILE):
        path = name.removeprefix("tests/").rstrip("/")
        assert any(f"/{file}".endswith(f"/{path}") for file in TEST_FILES), f"{page.name} names {name}"


def test_readme_is_short() -> None:
    """At most 700 words."""
    assert len(README.read_text(encoding="utf-8").split()) <= 700


def test_each_decision_is_short_and_complete() -> None:
    """At most 30 lines: the decision under a numbered title, then the two headings in their order."""
    assert DECISIONS
    for page in DECISIONS:
        lines = page.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 30, page.name
        assert lines[0].startswith(f"# {page.name[:4]}: "), page.name
        headings = [line for line in lines if line.startswith("## ")]
        assert headings == ["## Why", "## Turned down"], page.name


def test_each_decision_is_in_the_list() -> None:
    """It is listed by its title."""
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    for page in DECISIONS:
        title = page.read_text(encoding="utf-8").splitlines()[0].partition(": ")[2]
        assert f"[{page.name[:4]}]({page.name}) | {title} |" in listed


def test_on_call_page_explains_every_state() -> None:
    """They are the states of attempts, rows and runs."""
    documented = set(re.findall(r"`(\w+)`", ON_CALL.read_text(encoding="utf-8")))
    assert {word.value for words in (AttemptState, RowStatus, Outcome) for word in words} <= documented


def test_every_exit_code_is_documented() -> None:
    """It is on the page for people on call, next to its outcome."""
    for outcome, code in EXIT_CODES.items():
        assert f"| `{outcome}` | {code} |" in ON_CALL.read_text(encoding="utf-8")


def test_on_call_page_explains_every_error_code_of_a_row() -> None:
    """They are those that the service's answers lead to, found where they are decided."""
    written = {
        *re.findall(
            r'Refusal\(\s*(?:None|AttemptState\.HELD|AttemptState\.REJECTED|state), "(\w+)"',
            " ".join(_source("service", "resend", "polling", "studio_api").split()),
        ),
        *re.findall(r'_refused\("(\w+)"', _source("service", "resend")),
        *re.findall(r'Contradiction\("(\w+)"', _source("engine", "evidence")),
        *re.findall(r'^FINAL_FAILURE = "(\w+)"', _source("engine", "item_attempts"), re.M),
        WRITTEN_OFF,
        *re.findall(r'RowOutcome\(\s*RowStatus\.\w+,\s*"(\w+)"', _source("ledger", "runs")),
        *(f"{stage}_failed" for stage in ("pattern", "product")),
    }
    assert len(written) > 12
    #: Not a row's code: such a row reads in_doubt.
    written -= {"in_doubt_too_long", "in_doubt", "service_away"}
    documented = set(re.findall(r"`(\w+)`", ON_CALL.read_text(encoding="utf-8")))
    assert written <= documented


def test_contract_explains_every_problem_code() -> None:
    """They are those of files and of rows."""
    documented = set(
        re.findall(r"^\| `(\w+)` \|", (ROOT / "inputs" / "README.md").read_text(encoding="utf-8"), re.M)
    )
    assert {code.value for codes in (FileCode, RowCode) for code in codes} <= documented


def _source(package: str, *modules: str) -> str:
    folder = ROOT / "patternmill" / package
    return "\n".join((folder / f"{module}.py").read_text(encoding="utf-8") for module in modules)


def test_architecture_names_what_exists() -> None:
    """Each file on the page, and in its table each function, in one of the files of its line."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w./]+/[\w.]+\.\w+)`", page))
    assert len(files) > 25
    assert {file for file in files if not (ROOT / file).exists()} == set()
    steps = re.findall(r"^\| [^|]+ \| (`[^|]+) \| (`[^|]+) \|$", page, re.M)
    assert len(steps) > 12
    for functions, places in steps:
        source = "\n".join(
            (ROOT / place).read_text(encoding="utf-8") for place in re.findall(r"`([^`]+)`", places)
        )
        for function in re.findall(r"`([^`]+)`", functions):
            assert all(re.search(rf"(?:def|class) {name}\b", source) for name in function.split(".")), (
                function
            )
