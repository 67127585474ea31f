"""A person's approval from the command line: what is refused, what `--approve` names, and what it leaves on record."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click
import pytest

from cli.approval_prompt import agreed
from patternmill.errors import ApprovalNeeded, ConfigurationError
from patternmill.ledger.ledger import Ledger, open_database
from patternmill.ledger.records import Approval
from patternmill.runs.preview import Preview
from patternmill.runs.request import ImportRequest
from patternmill.runs.run import Run
from patternmill.runs.spec import RunSpec, run_spec
from patternmill.service.studio_api import StudioApi
from tests.hostile.in_process import InProcessApi, Service
from tests.unit.runs.workshop import many


@pytest.fixture
def service(home: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Plans of more than three items wait."""
    service = Service()
    monkeypatch.setattr(StudioApi, "from_settings", lambda settings: InProcessApi(service))
    monkeypatch.setenv("PATTERNMILL_STUDIO_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PATTERNMILL_API_KEY", "key")
    monkeypatch.setenv("PATTERNMILL_APPROVE_ABOVE_ITEMS", "3")
    return service


def asked_for(folder: Path, count: int) -> RunSpec:
    file = folder / "spring.csv"
    file.write_text(many(count), encoding="utf-8")
    return run_spec(ImportRequest(file=file))


def is_approved(spec: RunSpec, digest: str | None = None, *, asks: bool = False) -> bool:
    return agreed(spec, plan_of(spec), digest, asks=asks)


def plan_of(spec: RunSpec) -> Preview:
    async def main() -> Preview:
        async with Run(spec) as work:
            return await work.preview()

    return asyncio.run(main())


def digest_of(spec: RunSpec) -> str:
    return plan_of(spec).proposal.digest


def carry_out(spec: RunSpec) -> None:
    async def main(work: Run) -> None:
        async with work:
            await work.run_through()

    asyncio.run(asyncio.wait_for(main(Run(spec)), 30))


def on_record(home: Path) -> list[Approval]:
    ledger = Ledger(open_database(None, home))
    try:
        return ledger.approvals.find()
    finally:
        ledger.close()


def test_small_plan_needs_no_approval(service: Service, home: Path, tmp_path: Path) -> None:
    """And nothing is on record for it."""
    assert is_approved(asked_for(tmp_path, 1))
    assert not home.exists()


def test_without_a_terminal_the_plan_is_refused(service: Service, home: Path, tmp_path: Path) -> None:
    """The refusal names the plan and how it is approved; nothing is on record."""
    spec = asked_for(tmp_path, 4)
    with pytest.raises(ApprovalNeeded) as refused:
        is_approved(spec)
    assert f"--approve {digest_of(spec)[:12]}`" in refused.value.remedy
    assert not home.exists()


def test_plan_is_named_by_a_prefix_of_its_digest(service: Service, home: Path, tmp_path: Path) -> None:
    """In either case; it is approved as a whole, by the logged-in user."""
    spec = asked_for(tmp_path, 4)
    assert is_approved(spec, digest_of(spec)[:12].upper())
    (said,) = on_record(home)
    assert said.digest == digest_of(spec)
    assert (said.items, "@" in (said.who or "")) == (8, True)
    carry_out(spec)
    assert len(service.bought) == 8


def test_another_plan_is_not_approved(service: Service, home: Path, tmp_path: Path) -> None:
    """Nor by too short a prefix."""
    spec = asked_for(tmp_path, 4)
    for wrong in ("", "0" * 12, "short", digest_of(spec)[:11]):
        with pytest.raises(ConfigurationError, match=digest_of(spec)[:12]):
            is_approved(spec, wrong)
    assert not home.exists()


def test_repeated_command_approves_nothing_more(service: Service, home: Path, tmp_path: Path) -> None:
    """Before it has run, and after."""
    spec = asked_for(tmp_path, 4)
    digest = digest_of(spec)
    assert is_approved(spec, digest)
    assert is_approved(spec, digest)
    assert is_approved(spec)
    carry_out(spec)
    assert is_approved(spec, digest)
    assert len(on_record(home)) == 1


def test_ctrl_c_ends_the_question_at_once(
    service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves nothing on record: the event loop, which waits for the answer, would only notice after it."""
    answered: list[str] = []

    def interrupted(text: str, **more: object) -> bool:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise click.Abort from None  # as click's own questions do
        answered.append(text)
        return True

    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setattr("cli.approval_prompt.said_yes", interrupted)
    with pytest.raises(click.Abort):
        is_approved(asked_for(tmp_path, 4))
    assert not answered
    assert not home.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("answer", [True, False])
def test_question_of_an_import_shows_what_it_costs(
    service: Service,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: bool,
) -> None:
    """And asks nothing where nothing is to be bought."""
    for limit in ("ITEMS", "COST"):
        monkeypatch.delenv(f"PATTERNMILL_APPROVE_ABOVE_{limit}", raising=False)
    asked: list[str] = []
    monkeypatch.setattr("cli.approval_prompt.said_yes", lambda text, default: asked.append(text) or answer)
    spec = asked_for(tmp_path, 4)
    assert is_approved(spec, asks=True) is answer
    assert len(asked) == 1 and asked[0].startswith("Make 8 items") and asked[0].endswith("in staging?")
    assert "To buy: 4 patterns and 4 products." in capsys.readouterr().out
    assert not home.exists()
    carry_out(spec)
    assert is_approved(spec, asks=True)
    assert len(asked) == 1


def test_question_says_what_would_be_replaced_and_why(
    service: Service,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In at most three lines, right before the plan's one question; agreed to, the plan is made."""
    monkeypatch.delenv("PATTERNMILL_APPROVE_ABOVE_ITEMS")
    spec = asked_for(tmp_path, 8)
    carry_out(spec)
    Path(spec.source).write_text(many(8).replace("prompt 0", "other 0"), encoding="utf-8")
    with pytest.raises(ApprovalNeeded, match="would replace 8 products") as refused:
        is_approved(spec)
    assert "(or `--confirm changes`)" in refused.value.remedy
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    questions: list[str] = []
    monkeypatch.setattr("cli.approval_prompt.said_yes", lambda text: not questions.append(text))
    assert is_approved(spec, asks=True)
    assert len(questions) == 1
    *_, plan, first, second, digest = capsys.readouterr().out.splitlines()
    assert plan.startswith("The plan would buy 16 items")
    assert first == "It would replace 8 products that the catalog has: S-000, S-001, S-002 … and 5 more."
    assert second == "More are replaced than --change-at-most allows."
    assert digest.startswith("Its digest is ")
    before = len(service.bought)
    carry_out(spec)
    assert len(service.bought) == before + 16
