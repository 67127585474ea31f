"""One file rehearsed: a studio of its own, imports that are killed, and what the studio's record says afterwards."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cli.killed_imports import (
    FINISHED_CODES,
    IMPORT_COMMAND,
    KilledImports,
    Tally,
    counted_calls,
    draw_moments,
    fault_plan,
    is_counter,
    own_settings_removed,
)
from cli.offered import embedded_extras, embedded_offer
from patternmill import __version__
from patternmill.catalog.catalog_file import CatalogFile
from patternmill.catalog.row_checks import check_rows
from patternmill.errors import PatternmillError
from patternmill.ledger.ledger import ledger_if_any
from patternmill.planning.plan import make_plan
from patternmill.planning.recognition import Memory
from patternmill.results.certificate import (
    Certificate,
    FaultCount,
    Kills,
    RealForecast,
    RehearsalRecord,
    RehearsedFile,
    findings_of,
)
from patternmill.runs.capabilities import reference_place
from patternmill.runs.plan_record import kept_forecast
from patternmill.runs.preview import preview
from patternmill.runs.rehearsed_rows import RehearsedRows, rehearsed_rows, rehearsed_settings
from patternmill.runs.spec import RunSpec
from patternmill.sheets.csv_reader import parse_catalog
from patternmill.text import plural
from studio.testing import Studio, StudioFailed

_PAGE = 100


class FileRehearsal:
    """Leaves nothing but the certificate that it returns, also when it is interrupted."""

    def __init__(
        self,
        spec: RunSpec,
        file: CatalogFile,
        *,
        kills: int,
        rows: int | None,
        seed: int,
        report: Callable[[str], None],
        import_command: Sequence[str] = IMPORT_COMMAND,
    ) -> None:
        """`rows`: how many are drawn from the file; None: all. `import_command` starts one import."""
        self._spec, self._file = spec, file
        self._kills, self._rows, self._seed = kills, rows, seed
        self._report, self._import_command = report, import_command
        self._offer = embedded_offer(spec.settings.environment)
        self._place = reference_place(str(spec.source), spec.settings)
        self._extras = embedded_extras(file, self._place, model=None)

    def run(self) -> Certificate:
        began = time.monotonic()
        forecast = self._forecast()
        rows = self._rehearsed_rows()
        rng = random.Random(self._seed)  # noqa: S311 - repeatable on purpose
        options = ("--environment", self._spec.settings.environment)
        with (
            own_settings_removed(),
            tempfile.TemporaryDirectory(prefix="patternmill-rehearsal-") as folder,
            Studio(*options, process=True, pace="quick") as studio,
        ):
            try:
                studio.faults.use(*fault_plan(rng), seed=self._seed)
                imports = self._imports(studio, Path(folder), rows)
                imports.drive(draw_moments(rng, self._kills))
                return self._certificate(studio, imports, rows, forecast, began)
            except StudioFailed as failed:
                raise PatternmillError(
                    f"The rehearsal's studio did not start: {failed}.",
                    code="rehearsal",
                    remedy="Run the rehearsal again.",
                ) from failed
            finally:
                # Not in order: it would report its faults once more.
                studio.kill()

    def _forecast(self) -> RealForecast | None:
        """Of the whole file, by the person's own ledger, which is only read."""
        with ledger_if_any(self._spec.settings) as ledger:
            known = ledger.last_offer(self._spec.settings.environment) if ledger is not None else None
        offer = known or (self._offer if self._spec.settings.studio_url is None else None)
        limit = self._spec.settings.prompt_limit
        checked = check_rows(self._file, offer, prompt_limit=limit, extras=self._extras)
        found = preview(self._spec, checked).forecast
        if found is None:
            return None
        kept = kept_forecast(found)
        return RealForecast(text=str(found), jobs=kept.jobs, seconds=kept.seconds, amount=kept.amount)

    def _rehearsed_rows(self) -> RehearsedRows:
        settings = self._spec.settings
        return rehearsed_rows(
            self._file,
            self._offer,
            self._extras,
            folder=self._place.folder,
            most=self._rows,
            seed=self._seed,
            prompt_limit=settings.prompt_limit,
            stand_in=settings.studio_url is not None,
        )

    def _imports(self, studio: Studio, folder: Path, rows: RehearsedRows) -> KilledImports:
        (folder / "catalog.csv").write_bytes(rows.raw)
        file = parse_catalog(rows.raw, name="catalog.csv")
        limit = self._spec.settings.prompt_limit
        extras = embedded_extras(file, self._place, model=None)
        checked = check_rows(file, self._offer, prompt_limit=limit, extras=extras)
        purchases = make_plan(self._spec.scope, checked.entries, Memory()).purchases().total()
        self._report(
            f"Rehearsing {plural(len(file.records), 'row')} of {self._file.name}: {plural(purchases, 'purchase')}, "
            f"seed {self._seed}."
        )
        return KilledImports(
            studio,
            folder,
            rehearsed_settings(self._spec.settings),
            catalog=self._spec.catalog,
            purchases=purchases,
            command=self._import_command,
            report=self._report,
        )

    def _certificate(
        self,
        studio: Studio,
        imports: KilledImports,
        rows: RehearsedRows,
        forecast: RealForecast | None,
        began: float,
    ) -> Certificate:
        options = self._spec.options
        reported = studio.faults.report()
        studio.faults.clear()
        record = _record(studio, imports, len(rows.lines))
        return Certificate(
            made_at=datetime.now(UTC),
            program=f"patternmill {__version__}",
            seed=self._seed,
            file=self._rehearsed_file(rows),
            window=options.max_in_flight,
            attempts=options.attempts,
            findings=tuple(_findings(record, imports)),
            bought_twice=record.bought_twice(),
            lost=sum(map(len, record.lost().values())),
            rows=record.statuses(),
            refused=record.refused(rows.lines),
            bought=record.bought(options.prices, options.currency),
            calls=counted_calls(reported),
            kills=self._killed(imports.tally),
            faults=tuple(FaultCount(**one) for one in reported if not is_counter(one["name"])),
            forecast=forecast,
            seconds=time.monotonic() - began,
        )

    def _rehearsed_file(self, rows: RehearsedRows) -> RehearsedFile:
        return RehearsedFile(
            name=self._file.name,
            sha256=self._file.sha256,
            rows=len(self._file.records),
            rehearsed=len(rows.lines),
            stand_ins=rows.stand_ins,
        )

    def _killed(self, tally: Tally) -> Kills:
        return Kills(
            requested=self._kills,
            imports=tuple(tally.import_kills),
            studio=tuple(tally.studio_kills),
            starts=tally.starts,
        )


def _findings(record: RehearsalRecord, imports: KilledImports) -> Iterator[str]:
    tally = imports.tally
    yield from findings_of(record)
    if tally.codes[-1] not in FINISHED_CODES:
        yield f"The last import ended with exit code {tally.codes[-1]}: {imports.end_of_log()}"
    if tally.creates_again:
        yield f"The same command once more sent {plural(tally.creates_again, 'create')}; it should send none."


def _record(studio: Studio, imports: KilledImports, expected: int) -> RehearsalRecord:
    meter, place = studio.meter.read(), imports.out / "results.jsonl"
    text = place.read_text("utf-8") if place.exists() else ""
    return RehearsalRecord(
        purchases=meter["purchases"],
        doubles=meter["suspectedDoublePurchases"],
        products=_by_id(_listed(studio, "products"), "productId"),
        patterns=_by_id(_patterns(studio), "patternId"),
        rows=[json.loads(line) for line in text.splitlines()],
        expected=expected,
        references=sum(1 for _ in _listed(studio, "references")),
    )


def _by_id(objects: Iterable[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    """Without what is each one's own: two that are alike are equal."""
    own = {name, "imageUrl", "patternImageUrl", "printFiles", "createdAt"}
    return {one[name]: {key: value for key, value in one.items() if key not in own} for one in objects}


def _patterns(studio: Studio) -> Iterator[dict[str, Any]]:
    """Each with the prompt of the pattern that it all began with."""
    patterns = {one["patternId"]: one for one in _listed(studio, "patterns")}
    for one in patterns.values():
        first = one
        while first["parentPatternId"] is not None:
            first = patterns[first["parentPatternId"]]
        yield {**one, "prompt": first["prompt"]}


def _listed(studio: Studio, group: str) -> Iterator[dict[str, Any]]:
    """Everything that the studio has of a group."""
    page: dict[str, Any] = {"limit": _PAGE}
    while True:
        _, answer = studio.ask(f"{group}/list", **page)
        yield from answer[group]
        if answer["nextCursor"] is None:
            return
        page["cursor"] = answer["nextCursor"]
