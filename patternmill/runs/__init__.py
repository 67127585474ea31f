"""Runs: request, plan, lease, approval, retry, settlement and results."""
