"""The same for other seeds, in a file of their own for another tester."""

from __future__ import annotations

from tests.integration.simulation.test_simulation import test_all_faults_at_once

__all__ = ["test_all_faults_at_once"]
