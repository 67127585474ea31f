"""A person's approval of a plan before anything is begun: on a terminal, or with `--approve`."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from functools import partial
from getpass import getuser
from socket import gethostname

from cli.terminal import can_ask, echo, echo_lines, said_yes
from patternmill.errors import ApprovalNeeded, ConfigurationError
from patternmill.planning.problems import numbers_named
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings
from patternmill.text import plural


def agreed(spec: RunSpec, preview: Preview, digest: str | None, *, asks: bool = False) -> bool:
    """Return whether a plan may be carried out; ask on a terminal if it needs an approval.

    `digest` is the approved plan's, or its beginning. With `asks`, also ask about a plan that needs no approval, if it
    costs money or leaves out refused rows. Raises ApprovalNeeded without a terminal, and ConfigurationError when the
    digest is another plan's.
    """
    proposal, settings = preview.proposal, spec.settings
    if preview.pause is not None:
        return True  # nothing is bought
    if not is_approved(settings, proposal, digest, partial(plan_lines, preview)):
        return False
    is_paid = is_paid_for(settings)
    is_asked = asks and proposal.to_buy and (is_paid or preview.plan.refused())
    if not is_asked or approval.current_approval(settings, proposal):
        return True
    # This needs pandas, which is loaded already: the rows were checked.
    from patternmill.tables.report import cause_lines

    echo_lines(plan_lines(preview) if is_paid else cause_lines(preview.checked))
    ready = sum(1 for _ in preview.plan.to_do())
    rows = "it" if ready == 1 else f"the {ready:,}"
    what = f"{proposal} in {settings.environment}" if is_paid else rows
    is_agreed = said_yes(f"{_ready_sentence(preview, ready)}Make {what}?", default=not is_paid)
    if not is_agreed:
        echo("Nothing was made.", err=True)
    return is_agreed


def is_paid_for(settings: Settings) -> bool:
    """Return whether making things costs money, which it does not at the embedded studio."""
    return settings.service is not None and not settings.embedded


def _ready_sentence(preview: Preview, ready: int) -> str:
    """Return `6 rows ready, 2 refused (rows 3, 7; failures.csv). `; empty where none is refused."""
    refused = [row.entry.line for row in preview.plan.rows if row.entry.row is None]
    if not refused:
        return ""
    numbers = f"row{'s' if len(refused) > 1 else ''} {numbers_named(refused)}"
    return f"{plural(ready, 'row')} ready, {len(refused):,} refused ({numbers}; failures.csv). "


def is_approved(
    settings: Settings, proposal: Proposal, digest: str | None, lines: Callable[[], Iterable[str]]
) -> bool:
    """Return whether a proposal may be carried out; ask on a terminal if it needs an approval. `lines` show it."""
    try:
        earlier = approval.current_approval(settings, proposal)
    except ApprovalNeeded as needed:
        if digest is None and not _said_yes(proposal, needed, lines):
            return False
    else:
        # What is left of a plan that was approved before rests on that approval.
        is_same = earlier is not None and _is_named(earlier.digest, digest)
        if digest is None or not proposal.to_buy or is_same:
            return True
    if digest is not None and not _is_named(proposal.digest, digest):
        raise ConfigurationError(
            f"The plan's digest is {proposal.digest[:LEAST_DIGEST]}, and {digest!r} is approved.",
            code="another_plan",
            remedy=f"Look at --plan-only: the file, the catalog or the prices have changed, or the digest has fewer "
            f"than {LEAST_DIGEST} characters. Nothing was bought.",
        )
    approval.approve(settings, proposal, f"{getuser()}@{gethostname()}")
    return True


def _is_named(digest: str, beginning: str | None) -> bool:
    return beginning is not None and len(beginning) >= LEAST_DIGEST and digest.startswith(beginning.lower())


def _said_yes(proposal: Proposal, needed: ApprovalNeeded, lines: Callable[[], Iterable[str]]) -> bool:
    if not can_ask():
        raise needed
    echo_lines([*lines(), *needed.lines])
    # Ctrl-C ends the question at once: asyncio's handler would wait for the loop, which waits for the answer.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        is_confirmed = said_yes(f"Approve plan {proposal.digest[:LEAST_DIGEST]}: {proposal}?")
    finally:
        signal.signal(signal.SIGINT, before)
    if not is_confirmed:
        echo("Not begun: the plan was not approved.", err=True)
    return is_confirmed
