"""The flow check-service on a real Prefect server: its page, and its failure when the service has changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import Hostile, Plan, Rule
from tests.integration.deployments.conftest import CHECKOUT, Ask

#: Runs the flow once under each plan of the service.
RUN = """
import asyncio, sys, urllib.request
from flows.check_service import check_service
for plan in sys.argv[2:]:
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], plan.encode(), method="POST")).close()
    state = asyncio.run(check_service("staging", return_state=True))
    print(state.type.value, state.name, state.message, sep="|")
"""
CHANGED = Plan(rules=(Rule("categories/get", "edit", {"remove": ["options"], "set": {"choices": []}}),))


@pytest.mark.soak
def test_change_of_the_service_fails_the_run(environment: dict[str, str], ask: Ask, tmp_path: Path) -> None:
    """The first run has nothing to compare with; the second names the change, in its state and on its page."""
    with Hostile(Plan(), tmp_path / "service") as service:
        control = service.url.removesuffix("/v1") + "/_hostile/plan"
        done = subprocess.run(
            [sys.executable, "-c", RUN, control, Plan().to_json(), CHANGED.to_json()],
            cwd=CHECKOUT,
            env={**environment, **service.environment, "PATTERNMILL_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        first, second = done.stdout.splitlines()[-2:]
        assert first.startswith("FAILED|CompletedWithFailures|")
        assert second.startswith("FAILED|Failed|")
        assert "2 changes since" in second and "categories-get" in second
        pages = ask("artifacts/filter", {"artifacts": {"key": {"any_": ["service-check-staging"]}}})
        assert len(pages) == 2
        assert any("### What changed" in page["data"] for page in pages)
        assert service.key not in json.dumps(pages) + done.stdout + done.stderr
