"""`python -m benchmarks.concepts [--check]`: docs/concepts.md, what each feature weighs and who asked for it.

Each file of the four packages belongs to one feature. With `--check`, nothing is written: it exits with 1 where a file
has no feature, a feature no file, or the table is older than the code by more than a few lines.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.rooms import PACKAGES, ROOT, files_of

_TABLE = ROOT / "docs" / "concepts.md"
#: A table may be so far off, as a share: else each change of a line would have to write it anew.
_SLACK = 0.05
_HEAD = """# What each feature weighs

Written by `python -m benchmarks.concepts`, and checked by `make check`. The lines are those of `cli flows tasks
patternmill`; a file counts for the feature that it exists for.

| feature | lines | who asked for it |
|---|--:|---|
"""
#: By feature: who asked for it, and its files.
_FEATURES: dict[str, tuple[str, str]] = {
    "identity: an item is what it contains": (
        "whoever pays", "patternmill/items.py patternmill/text.py patternmill/states.py"),
    "ledger in SQL, on SQLite and PostgreSQL": (
        "whoever pays", "patternmill/ledger/schema/* patternmill/ledger/database.py "
        "patternmill/ledger/__init__.py patternmill/ledger/connections.py "
        "patternmill/ledger/attempts.py patternmill/ledger/purchases.py patternmill/mark.py"),
    "leases: one driver, takeover of dead runs": ("data engineers", "patternmill/ledger/leases.py"),
    "a run from sheet to results": (
        "everybody", "patternmill/pipeline.py patternmill/run.py patternmill/request.py patternmill/records.py "
        "patternmill/ending.py patternmill/errors.py patternmill/files.py patternmill/ledger/catalogs.py"),
    "plan, changes and one agreement about money": (
        "whoever pays", "patternmill/plan.py patternmill/changes.py patternmill/agreement.py "
        "cli/questions.py"),
    "making items, and stops": (
        "everybody", "patternmill/engine.py patternmill/fanout.py"),
    "halts: is it the row, or the service?": ("whoever pays", "patternmill/halt.py"),
    "pause for all runs": ("on call", "patternmill/ledger/brake.py"),
    "settling what is held or in doubt": ("on call", "patternmill/settlement.py cli/deciding.py"),
    "service: requests, answers, evidence": (
        "everybody", "patternmill/service/client.py patternmill/service/answers.py patternmill/service/evidence.py "
        "patternmill/service/words.py patternmill/offer.py patternmill/service/__init__.py"),
    "pacing of requests": ("the service", "patternmill/service/pacing.py"),
    "sources at addresses, in stores and by name": ("data engineers", "patternmill/service/sources.py"),
    "sheets: CSV, checks of every row, mappings": (
        "merchandisers", "patternmill/tables/sheet.py patternmill/tables/delimited.py patternmill/tables/c*.py "
        "patternmill/tables/mapping.py patternmill/tables/__init__.py"),
    "proposals of meanings, and encodings": (
        "merchandisers", "patternmill/tables/propos*.py patternmill/vocabulary* patternmill/tables/encod*.py"),
    "workbooks": ("merchandisers", "patternmill/tables/workbook*.py"),
    "corrections that stand": ("merchandisers", "patternmill/tables/kept.py"),
    "results, failures, catalog.csv, sheet.csv": ("merchandisers", "patternmill/tables/results.py"),
    "takes, decisions and remake": (
        "merchandisers", "patternmill/remake.py patternmill/ledger/decisions.py flows/remake_patterns.py"),
    "the page of a catalog and its gallery": ("merchandisers", "patternmill/looking/* cli/look.py"),
    "orders": ("merchandisers", "patternmill/orders.py patternmill/ledger/checkouts.py cli/ordering.py"),
    "promises of a service: refinements, references, models": (
        "merchandisers", "patternmill/contract.py patternmill/tables/extras.py"),
    "status, explain and reports": (
        "on call", "patternmill/ledger/reports.py cli/looking_up.py cli/reporting.py"),
    "settings": ("data engineers", "patternmill/settings.py"),
    "logs and events for programs": ("data engineers", "patternmill/logs.py"),
    "flows and their task runs": (
        "data engineers", "flows/__init__.py flows/bulk_import.py flows/catalog_refresh.py flows/retry_failed.py "
        "tasks/make.py tasks/__init__.py"),
    "a run's page, and dead runs closed": ("data engineers", "tasks/page.py"),
    "the form of a suspended run": ("data engineers", "tasks/approval.py"),
    "deployments, worker and schedules": (
        "data engineers", "tasks/deployments.py cli/serving.py cli/worker.py tasks/folder.py"),
    "commands": ("everybody", "cli/main.py cli/making.py cli/__init__.py"),
    "servers and studio that commands share": (
        "everybody", "cli/server.py cli/shared.py cli/studio.py"),
}  # fmt: skip


def weights() -> tuple[dict[str, int], list[str]]:
    """Return the lines of each feature, and what is wrong with the list of files."""
    paths = [path for package in PACKAGES for path in files_of(package) if path.stat().st_size]
    lines, wrong = dict.fromkeys(_FEATURES, 0), list[str]()
    for path in paths:
        name = str(path.relative_to(ROOT))
        owners = [
            feature
            for feature, (_, files) in _FEATURES.items()
            if any(fnmatch(name, one) for one in files.split())
        ]
        if len(owners) != 1:
            wrong.append(f"{name} belongs to {owners or 'no feature'}")
        for feature in owners[:1]:
            lines[feature] += path.read_bytes().count(b"\n")
    return lines, wrong + [f"{feature} has no file" for feature, weight in lines.items() if not weight]


def table(lines: dict[str, int]) -> str:
    """Return the table, the heaviest feature first."""
    ordered = sorted(_FEATURES, key=lambda feature: -lines[feature])
    rows = [f"| {feature} | {lines[feature]:,} | {_FEATURES[feature][0]} |\n" for feature in ordered]
    return f"{_HEAD}{''.join(rows)}| **together** | **{sum(lines.values()):,}** | |\n"


def _is_old(path: Path, lines: dict[str, int]) -> bool:
    text = path.read_text("utf-8") if path.exists() else ""
    said = {
        name: int(weight.replace(",", ""))
        for name, weight in re.findall(r"^\| ([^*|]+) \| ([\d,]+) \|", text, re.M)
    }
    return said.keys() != lines.keys() or any(
        abs(said[name] - weight) > max(10, _SLACK * weight) for name, weight in lines.items()
    )


def main() -> int:
    """Write or check the table, and return the exit code."""
    lines, wrong = weights()
    if "--check" not in sys.argv:
        _TABLE.write_text(table(lines), "utf-8")
    elif _is_old(_TABLE, lines):
        wrong.append("docs/concepts.md is old: `python -m benchmarks.concepts` writes it")
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
