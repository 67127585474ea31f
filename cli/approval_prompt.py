"""A person's approval of a plan before anything is begun: on a terminal, or with `--approve`."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from getpass import getuser
from socket import gethostname

from cli.terminal import echo, echo_lines, said_yes
from patternmill.errors import ApprovalNeeded, ConfigurationError
from patternmill.ledger.records import Approval
from patternmill.planning.proposal import Proposal
from patternmill.runs import approval
from patternmill.runs.approval import LEAST_DIGEST
from patternmill.runs.plan_text import plan_lines
from patternmill.runs.preview import Preview
from patternmill.runs.spec import RunSpec
from patternmill.settings import Settings


async def agreed(spec: RunSpec, preview: Preview, digest: str | None, *, asks: bool = False) -> bool:
    """Return whether a plan may be carried out; ask on a terminal if it needs an approval.

    `digest` is the approved plan's, or its beginning. With `asks`, what it makes and costs is shown, and asked, also
    where it needs none, unless it buys nothing. Raises ApprovalNeeded without a terminal, and ConfigurationError when
    the digest is another plan's.
    """
    proposal = preview.proposal
    if not await is_approved(spec.settings, proposal, digest, partial(plan_lines, preview)):
        return False
    if not asks or not proposal.to_buy:
        return True
    if await asyncio.to_thread(approval.current_approval, spec.settings, proposal):
        return True
    echo_lines(plan_lines(preview))
    with _interruptible():
        return said_yes(f"Make {proposal} in {spec.settings.environment}?")


async def is_approved(
    settings: Settings, proposal: Proposal, digest: str | None, lines: Callable[[], Iterable[str]]
) -> bool:
    """The same, without `asks`, of any proposal; `lines` show it."""
    earlier: Approval | None = None
    needed: ApprovalNeeded | None = None
    try:
        earlier = await asyncio.to_thread(approval.current_approval, settings, proposal)
    except ApprovalNeeded as error:
        needed = error
    if digest is None:
        if needed is None or not _said_yes(proposal, needed, lines):
            return needed is None
    # What is left of a plan that was approved before rests on that approval.
    elif not proposal.to_buy or (earlier is not None and _names(digest, earlier.digest)):
        return True
    elif not _names(digest, proposal.digest):
        raise ConfigurationError(
            f"The plan's digest is {proposal.digest[:LEAST_DIGEST]}, and {digest!r} is approved.",
            code="another_plan",
            remedy=f"Look at --plan-only: the file, the catalog or the prices have changed, or the digest has fewer "
            f"than {LEAST_DIGEST} characters. Nothing was bought.",
        )
    await asyncio.to_thread(approval.approve, settings, proposal, f"{getuser()}@{gethostname()}")
    return True


def _names(beginning: str, digest: str) -> bool:
    return len(beginning) >= LEAST_DIGEST and digest.startswith(beginning.lower())


def _said_yes(proposal: Proposal, needed: ApprovalNeeded, lines: Callable[[], Iterable[str]]) -> bool:
    if not sys.stdin.isatty():
        raise needed
    echo_lines(lines())
    echo(needed.message)
    with _interruptible():
        is_confirmed = said_yes(f"Approve plan {proposal.digest[:LEAST_DIGEST]}: {proposal}?")
    if not is_confirmed:
        echo("Not begun: the plan was not approved.", err=True)
    return is_confirmed


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the question at once; by asyncio's handler it would wait for the event loop, which waits for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
