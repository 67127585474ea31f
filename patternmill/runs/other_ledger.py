"""Results beside a run that its ledger does not know: of another ledger, or of a newer state of an older copy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patternmill.errors import ConfigurationError
from patternmill.files import LATEST, latest_in
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger, ledger_place
from patternmill.ledger.records import Attempt, Intent, SpendingLimits
from patternmill.parameters import LEDGER
from patternmill.planning.items import Item, Made
from patternmill.planning.plan import TO_DO, Cost, Plan, Reason
from patternmill.planning.recognition import Memory
from patternmill.results.results_files import EXACT
from patternmill.results.row_files import iso_time
from patternmill.results.summary import read_manifest
from patternmill.runs.spec import RunSpec
from patternmill.states import NOT_REPEATABLE, AttemptState
from patternmill.text import goods

_UNKNOWN_END = frozenset({AttemptState.INTENDED, AttemptState.HELD})
_TO_MAKE = TO_DO | {Reason.BLOCKED}
_TAKEN_OVER = "Taken over from the results of its run, whose ledger is another one."
#: Attempts by item, each with the run that had it.
Named = Mapping[ItemKey, tuple[RunId, Attempt]]


@dataclass(frozen=True)
class OtherResults:
    """A folder of results, with the manifest of its run."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def run_id(self) -> RunId:
        return RunId(self.manifest["run_id"])


def unknown_results(ledger: Ledger | None, spec: RunSpec) -> list[OtherResults]:
    """Return the results of the catalog that the ledger knows nothing of, or less of; the newest first.

    None for the embedded studio, which costs nothing.
    """
    settings, out = spec.settings, [spec.out] if spec.out is not None else []
    if settings.service is None or settings.embedded:
        return []
    scope = settings.environment, spec.catalog
    found = {
        other.run_id: other
        for folder in (*spec.catalog_folder.glob("*"), *out)
        if not folder.is_symlink()
        and (manifest := read_manifest(folder)) is not None
        and (manifest["environment"], manifest["catalog"]) == scope
        and manifest["studio_url"]
        and (other := OtherResults(folder, manifest))
        and not _is_known(ledger, other)
    }
    return [found[run_id] for run_id in sorted(found, reverse=True)]


def _is_known(ledger: Ledger | None, other: OtherResults) -> bool:
    """Return whether they were written from this ledger, and it has the end of their run."""
    record = ledger.runs.get(other.run_id) if ledger is not None else None
    if ledger is None or record is None or other.manifest["ledger"] != ledger.identity:
        return False
    ended_at = other.manifest["ended_at"]
    return ended_at is None or ended_at == iso_time(record.ended_at)


def named_items(others: list[OtherResults], plan: Plan, memory: Memory, spec: RunSpec) -> Named:
    """Return what the results name of the items that a plan would make, by content.

    Results of another service name nothing that this one has, and an attempt that has ended stays as it is.
    """
    settings, found = spec.settings, dict[ItemKey, tuple[RunId, Attempt]]()
    assert settings.studio_url is not None, "a real service has an address"
    here = settings.service_at(settings.studio_url)
    for other in others:
        if settings.service_at(other.manifest["studio_url"]) == here:
            for named in _named_in(other.folder / EXACT):
                planned = plan.items.get(ItemKey(named["key"]))
                if planned is None or planned.reason not in _TO_MAKE or planned.item.key in found:
                    continue
                attempt, last = _attempt_of(planned.item, named), memory.last_attempts.get(planned.item.key)
                failed = last.attempt if last is not None and last.state is AttemptState.FAILED else 0
                if attempt is not None and attempt.attempt > failed:
                    found[planned.item.key] = other.run_id, attempt
    return found


def _named_in(file: Path) -> Iterator[Mapping[str, Any]]:
    """Yield every item of a results.jsonl that was requested."""
    try:
        with file.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                for named in (*row["before"], row["pattern"], row["product"]):
                    if named is not None and named["request_id"] is not None:
                        yield named
    except OSError:
        return


def _attempt_of(item: Item, named: Mapping[str, Any]) -> Attempt | None:
    """Return how far an item was; None where it is requested again without harm, under the same request ID."""
    number, state = int(named["attempts"]), AttemptState(named["state"])
    attempt = Attempt(item.request_id(number), item.key, number, state)
    if state is AttemptState.SUCCEEDED:
        job_id = named["job_id"] or named["result_id"]
        return replace(attempt, job_id=job_id, result_id=named["result_id"], picture_url=named["picture_url"])
    if state is AttemptState.ACCEPTED:
        return replace(attempt, job_id=named["job_id"])
    if state in _UNKNOWN_END and not item.is_repeatable:
        return replace(attempt, state=AttemptState.HELD, error_code=NOT_REPEATABLE)
    return None


def refuse_other_ledger(
    spec: RunSpec, others: list[OtherResults], taken: Named, plan: Plan, cost: Cost
) -> None:
    """Raise ConfigurationError, until it is confirmed, where the results know more than the ledger.

    `taken` is what would be taken over from them, `plan` with its `cost` what would be bought then.
    """
    settings, names = spec.settings, (LATEST, latest_in(spec.settings.environment))
    latest = [spec.out] if spec.out is not None else [spec.catalog_folder / name for name in names]
    newest = {_run_of(folder) for folder in latest}
    is_latest = any(other.run_id in newest for other in others)
    if settings.confirms(LEDGER) or not (taken or is_latest):
        return
    stages = Counter(plan.items[key].item.stage for key in taken)
    for_cost = f" for {cost}" if cost.worst else ""
    raise ConfigurationError(
        f"{others[0].folder} has results of run {others[0].run_id}, which this ledger lacks or has no end of "
        f"({ledger_place(settings)}): it is another ledger, or an older copy, and what exists would be bought again.",
        code="other_ledger",
        remedy="Use the ledger of that run (PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL), or its newest backup. Or add "
        f"`--confirm {LEDGER}`: it first takes over {goods(stages)} that the results name, and then buys "
        f"{goods(plan.purchases())}{for_cost}. Nothing was bought.",
    )


def _run_of(folder: Path) -> RunId | None:
    manifest = read_manifest(folder)
    return RunId(manifest["run_id"]) if manifest is not None else None


def take_over(ledger: Ledger, plan: Plan, named: Named) -> None:
    """Record what results name, as of the runs that had it and at no price: it is neither bought again nor lost."""
    made = {key: attempt.result_id for key, (_, attempt) in named.items() if attempt.result_id}
    for key in filter(named.__contains__, plan.items):
        item, (run_id, attempt) = plan.items[key].item, named[key]
        if item.parent_key is not None:
            before = ledger.purchases.attempts_of(item.parent_key)
            made |= {one.item_key: one.result_id for one in before if one.result_id}
        for number in range(1, attempt.attempt):
            _bring_to(ledger, item, run_id, replace(attempt, attempt=number, state=AttemptState.FAILED), made)
        _bring_to(ledger, item, run_id, attempt, made)


def _bring_to(ledger: Ledger, item: Item, run_id: RunId, attempt: Attempt, made: Made) -> None:
    """Record an attempt up to the state that results name."""
    request_id, change = item.request_id(attempt.attempt), ledger.purchases.change
    body = item.body(request_id, made)
    intent = Intent(request_id, item.key, item.stage, attempt.attempt, body)
    before = ledger.purchases.intend(run_id, item.scope.environment, intent, SpendingLimits())
    if before.state is attempt.state:
        return
    if attempt.state in (AttemptState.ACCEPTED, AttemptState.SUCCEEDED):
        if before.state is not AttemptState.ACCEPTED:
            change(run_id, request_id, AttemptState.ACCEPTED, job_id=attempt.job_id)
        if attempt.state is AttemptState.SUCCEEDED:
            made_as = {"result_id": attempt.result_id, "picture_url": attempt.picture_url}
            change(run_id, request_id, AttemptState.SUCCEEDED, **made_as)
        return
    if before.state is not AttemptState.HELD:
        change(run_id, request_id, AttemptState.HELD, error_code=attempt.error_code, error=_TAKEN_OVER)
    if attempt.state is AttemptState.FAILED:
        change(run_id, request_id, AttemptState.FAILED, error_code="taken_over", error=_TAKEN_OVER)
