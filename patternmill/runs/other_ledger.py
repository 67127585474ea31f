"""Results beside a run that its ledger does not know: they are of another ledger, or this one is an old copy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from patternmill.errors import ConfigurationError
from patternmill.files import LATEST, latest_in
from patternmill.identifiers import ItemKey, RunId
from patternmill.ledger.ledger import Ledger, ledger_place
from patternmill.ledger.records import Attempt, SpendingLimits
from patternmill.parameters import LEDGER
from patternmill.planning.items import Item, Made, Scope
from patternmill.planning.memory import Memory
from patternmill.planning.plan import TO_DO, Cost, Plan, Reason
from patternmill.runs.results_files import EXACT, read_manifest
from patternmill.runs.spec import RunSpec
from patternmill.states import NOT_REPEATABLE, AttemptState
from patternmill.text import goods, iso_time

_TO_MAKE = TO_DO | {Reason.BLOCKED}
#: The steps to the state that results name, where it takes two.
_STEPS = {
    AttemptState.SUCCEEDED: (AttemptState.ACCEPTED, AttemptState.SUCCEEDED),
    AttemptState.FAILED: (AttemptState.HELD, AttemptState.FAILED),
}
_TAKEN_OVER = "Taken over from the results of its run, whose ledger is another one."
#: Folders of results, each with the manifest of its run.
OtherResults = list[tuple[Path, Mapping[str, Any]]]
#: Attempts by item, each with the run whose results name it.
Named = Mapping[ItemKey, tuple[RunId, Attempt]]


def unknown_results(ledger: Ledger, spec: RunSpec) -> OtherResults:
    """Return the results of the catalog whose run, or its end, the ledger does not know; the newest first.

    There are none for the embedded studio: what it makes costs nothing.
    """
    if spec.settings.service is None or spec.settings.embedded:
        return []
    folders = [folder for folder in spec.catalog_folder.glob("*") if not folder.is_symlink()]
    unknown = {
        manifest["run_id"]: (folder, manifest)
        for folder in (*folders, *([spec.out] if spec.out is not None else []))
        if (manifest := read_manifest(folder)) is not None
        and Scope(manifest["environment"], manifest["catalog"]) == spec.scope
        and not _is_known(ledger, manifest)
    }
    return [unknown[run_id] for run_id in sorted(unknown, reverse=True)]


def _is_known(ledger: Ledger, manifest: Mapping[str, Any]) -> bool:
    """Return whether results were written from this ledger, and it has the end of their run.

    Those of the embedded studio count as known.
    """
    if not manifest["studio_url"]:
        return True
    record = ledger.runs.get(RunId(manifest["run_id"]))
    if record is None or manifest["ledger"] != ledger.identity:
        return False
    return manifest["ended_at"] in (None, iso_time(record.ended_at))


def named_items(others: OtherResults, plan: Plan, memory: Memory, spec: RunSpec) -> Named:
    """Return the items that a plan would make and that results name, by content.

    Results of another service do not count, and an attempt that has ended here stays as it is.
    """
    settings, taken = spec.settings, dict[ItemKey, tuple[RunId, Attempt]]()
    assert settings.studio_url is not None, "a real service has an address"
    here = settings.service_at(settings.studio_url)
    for folder, manifest in others:
        if settings.service_at(manifest["studio_url"]) != here:
            continue
        for result in _items_in(folder / EXACT):
            planned = plan.items.get(ItemKey(result["key"]))
            if planned is None or planned.reason not in _TO_MAKE or planned.item.key in taken:
                continue
            attempt, last = _attempt_of(planned.item, result), memory.last_attempts.get(planned.item.key)
            failed = last.attempt if last is not None and last.state is AttemptState.FAILED else 0
            if attempt is not None and attempt.attempt > failed:
                taken[planned.item.key] = RunId(manifest["run_id"]), attempt
    return taken


def _items_in(file: Path) -> Iterator[Mapping[str, Any]]:
    """Yield every item of a results.jsonl that was requested."""
    try:
        with file.open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                items = (*row["before"], row["pattern"], row["product"])
                yield from (item for item in items if item is not None and item["request_id"] is not None)
    except OSError:
        return


def _attempt_of(item: Item, result: Mapping[str, Any]) -> Attempt | None:
    """Return how far an item got; None where it can be requested again, under the same request ID, without harm."""
    number, state = int(result["attempts"]), AttemptState(result["state"])
    attempt, job_id = Attempt(item.request_id(number), item.key, number, state), result["job_id"]
    if state is AttemptState.SUCCEEDED:
        result_id, picture_url = result["result_id"], result["picture_url"]
        return replace(attempt, job_id=job_id or result_id, result_id=result_id, picture_url=picture_url)
    if state is AttemptState.ACCEPTED:
        return replace(attempt, job_id=job_id)
    if state in (AttemptState.INTENDED, AttemptState.HELD) and not item.is_repeatable:
        return replace(attempt, state=AttemptState.HELD, error_code=NOT_REPEATABLE)
    return None


def refuse_other_ledger(spec: RunSpec, others: OtherResults, taken: Named, plan: Plan, cost: Cost) -> None:
    """Raise ConfigurationError if the results know more than the ledger and nobody has confirmed that.

    `taken` is what would be taken over from them, `plan` with its `cost` what would be bought then.
    """
    names = (LATEST, latest_in(spec.settings.environment))
    latest = [spec.out] if spec.out is not None else [spec.catalog_folder / name for name in names]
    shown = {manifest["run_id"] for manifest in map(read_manifest, latest) if manifest is not None}
    is_latest = not shown.isdisjoint(manifest["run_id"] for _, manifest in others)
    if spec.settings.confirms(LEDGER) or not (taken or is_latest):
        return
    stages = Counter(plan.items[key].item.stage for key in taken)
    for_cost = f" for {cost}" if cost.worst else ""
    (folder, newest), *_ = others
    raise ConfigurationError(
        f"{folder} has results of run {newest['run_id']}, which this ledger lacks or has no end of "
        f"({ledger_place(spec.settings)}): it is another ledger, or an older copy, and what exists would be bought "
        "again.",
        code="other_ledger",
        remedy="Use the ledger of that run (PATTERNMILL_HOME, PATTERNMILL_LEDGER_URL), or its newest backup. Or add "
        f"`--confirm {LEDGER}`: it first takes over {goods(stages)} that the results name, and then buys "
        f"{goods(plan.purchases())}{for_cost}. Nothing was bought.",
    )


def take_over(ledger: Ledger, plan: Plan, named: Named) -> None:
    """Record what results name, under their runs and at no price, so that it is neither bought again nor lost."""
    made = {key: attempt.result_id for key, (_, attempt) in named.items() if attempt.result_id}
    for key in filter(named.__contains__, plan.items):
        item, (run_id, attempt) = plan.items[key].item, named[key]
        if item.parent_key is not None:
            before = ledger.purchases.attempts_of(item.parent_key)
            made |= {earlier.item_key: earlier.result_id for earlier in before if earlier.result_id}
        for number in range(1, attempt.attempt):
            _bring_to(ledger, item, run_id, replace(attempt, attempt=number, state=AttemptState.FAILED), made)
        _bring_to(ledger, item, run_id, attempt, made)


def _bring_to(ledger: Ledger, item: Item, run_id: RunId, attempt: Attempt, made: Made) -> None:
    """Record an attempt up to the state that results name."""
    request_id = item.request_id(attempt.attempt)
    intent = Attempt(request_id, item.key, attempt.attempt, body=item.body(request_id, made))
    before = ledger.purchases.intend(run_id, intent, SpendingLimits())
    details: dict[AttemptState, dict[str, str | None]] = {
        AttemptState.ACCEPTED: {"job_id": attempt.job_id},
        AttemptState.SUCCEEDED: {"result_id": attempt.result_id, "picture_url": attempt.picture_url},
        AttemptState.HELD: {"error_code": attempt.error_code, "error": _TAKEN_OVER},
        AttemptState.FAILED: {"error_code": "taken_over", "error": _TAKEN_OVER},
    }
    steps = _STEPS.get(attempt.state, (attempt.state,))
    for state in steps[steps.index(before.state) + 1 if before.state in steps else 0 :]:
        ledger.purchases.change(run_id, request_id, state, **details[state])
