"""The certificate of a rehearsal: what the studio's own record says of it, as JSON and as a page without a script."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict

from patternmill.results.gallery import page_part, policy_digest
from patternmill.results.row_files import json_bytes
from patternmill.states import UNFINISHED_ROWS, RowStatus, Stage
from patternmill.text import counted, duration, goods, moment, money, plural

CERTIFICATE_PAGE = "rehearsal.html"
CERTIFICATE_JSON = "rehearsal.json"
#: Refused rows that the page lists; the JSON has all.
_MOST_REFUSED = 40
_NOT_FINAL = UNFINISHED_ROWS | {RowStatus.HELD}
_MOST_NAMED = 5

#: An object of the studio, as it answers it.
StudioObject = Mapping[str, Any]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True)


class RehearsedFile(_Section):
    name: str
    sha256: str
    rows: int
    #: Of them, those that were rehearsed, and those of these with another category in place of their own.
    rehearsed: int
    stand_ins: int


class RefusedRow(_Section):
    """`line` is where the row is in the person's file, as a spreadsheet shows it."""

    line: int
    sku: str
    code: str
    message: str


class FaultCount(_Section):
    name: str
    calls: int
    fired: int


class Kills(_Section):
    """Where imports and studio were killed, as shares of the purchases from 0 to 1."""

    requested: int
    imports: tuple[float, ...]
    studio: tuple[float, ...]
    starts: int


class Bought(_Section):
    """Requests that the studio accepted, those whose job failed included; `amount` by the person's prices."""

    patterns: int
    products: int
    references: int = 0
    refinements: int = 0
    failed: int
    #: Minor units; None where no prices are set.
    amount: int | None
    currency: str | None

    @property
    def items(self) -> Mapping[Stage, int]:
        return {
            Stage.REFERENCE: self.references,
            Stage.PATTERN: self.patterns,
            Stage.REFINEMENT: self.refinements,
            Stage.PRODUCT: self.products,
        }


class RealForecast(_Section):
    """What the real import of the whole file is expected to take: low, middle and high of 80 % of such runs."""

    text: str
    jobs: int
    seconds: tuple[float, float, float]
    amount: tuple[int, int, int] | None


class Certificate(_Section):
    """What a rehearsal came to. It is clean when there are no findings."""

    schema_version: Literal[1] = 1
    made_at: AwareDatetime
    program: str
    seed: int
    file: RehearsedFile
    window: int
    attempts: int
    findings: tuple[str, ...]
    bought_twice: int
    lost: int
    rows: dict[str, int]
    refused: tuple[RefusedRow, ...]
    bought: Bought
    calls: dict[str, int]
    kills: Kills
    faults: tuple[FaultCount, ...]
    #: None where nothing is left to do.
    forecast: RealForecast | None
    seconds: float

    @property
    def is_clean(self) -> bool:
        return not self.findings


#: What the operations of a group make.
_GROUPS = {"patterns": Stage.PATTERN, "refine": Stage.REFINEMENT, "products": Stage.PRODUCT}


@dataclass(frozen=True)
class RehearsalRecord:
    """What a rehearsal left: the studio's meter, all that it has, and the lines of results.jsonl."""

    purchases: Sequence[Mapping[str, Any]]
    doubles: Sequence[Mapping[str, Any]]
    #: What the studio has, by ID, without names, addresses and dates: two that are alike are equal. The prompt of a
    #: pattern that was made of another is that of the first.
    products: Mapping[str, StudioObject]
    patterns: Mapping[str, StudioObject]
    rows: Sequence[Mapping[str, Any]]
    #: Rows that went in.
    expected: int
    #: Pictures that were uploaded.
    references: int = 0

    def bought_twice(self) -> int:
        """Patterns by the meter, and products that are in no row and like one that is.

        The meter cannot judge products: rows that are alike but for their sku have one each, on purpose.
        """
        patterns = [one for one in self.doubles if one["operation"] != "products/create"]
        twice, _ = self._in_no_row(self.products, "product_id")
        return len(patterns) + len(twice)

    def lost(self) -> dict[str, Sequence[str]]:
        """What was lost, by what the page calls it."""
        _, products = self._in_no_row(self.products, "product_id")
        _, patterns = self._in_no_row(self._last_patterns(), "pattern_id")
        unfinished = [row["sku"] for row in self.rows if RowStatus(row["status"]) in _NOT_FINAL]
        found: dict[str, Sequence[str]] = {
            "Rows that did not come out": [""] * abs(self.expected - len(self.rows)),
            "Rows without a final status": unfinished,
            "Products of the studio in no row": products,
            "Patterns of the studio in no row": patterns,
            "Products of rows that the studio does not know": sorted(
                self._named("product_id") - self.products.keys()
            ),
            "Rows with a product of something else": [row["sku"] for row in self.rows if self._is_wrong(row)],
        }
        return {text: lost for text, lost in found.items() if lost}

    def _last_patterns(self) -> Mapping[str, StudioObject]:
        """Those that no other pattern was made of: rows name the last one."""
        parents = {one["parentPatternId"] for one in self.patterns.values()}
        return {name: one for name, one in self.patterns.items() if name not in parents}

    def _in_no_row(self, objects: Mapping[str, StudioObject], field: str) -> tuple[list[str], list[str]]:
        """Those that are like one that a row names, and all others."""
        named = self._named(field)
        known = {_content(objects[name]) for name in named if name in objects}
        twice: list[str] = []
        others: list[str] = []
        for name in objects.keys() - named:
            (twice if _content(objects[name]) in known else others).append(name)
        return sorted(twice), sorted(others)

    def _is_wrong(self, row: Mapping[str, Any]) -> bool:
        """Whether its product was built of another pattern, category or selection than the row's."""
        product = self.products.get(row["product_id"] or "")
        if product is None:
            return False
        pattern = self.patterns.get(product["patternId"], {})
        asked = (row["pattern_id"], row["category_id"], row["prompt"])
        made = (product["patternId"], product["categoryId"], pattern.get("prompt"))
        return made != asked or not row["selections"].items() <= product["selections"].items()

    def _named(self, field: str) -> frozenset[str]:
        return frozenset(row[field] for row in self.rows if row[field])

    def bought(self, prices: Mapping[Stage, int], currency: str | None) -> Bought:
        counts = Counter(_GROUPS[one["operation"].partition("/")[0]] for one in self.purchases)
        counts[Stage.REFERENCE] = self.references
        failed = sum(one["amount"] == 0 for one in self.purchases)
        amount = sum(counts[stage] * price for stage, price in prices.items())
        return Bought(
            patterns=counts[Stage.PATTERN],
            products=counts[Stage.PRODUCT],
            references=counts[Stage.REFERENCE],
            refinements=counts[Stage.REFINEMENT],
            failed=failed,
            amount=amount if any(prices.values()) else None,
            currency=currency,
        )

    def statuses(self) -> dict[str, int]:
        counts = Counter(row["status"] for row in self.rows)
        return {status.value: counts[status.value] for status in RowStatus if counts[status.value]}

    def refused(self, lines: Sequence[int]) -> tuple[RefusedRow, ...]:
        """`lines`: where each row is in the person's file."""
        return tuple(
            RefusedRow(line=line, sku=row["sku"], code=row["error_code"] or "", message=row["error"] or "")
            for line, row in zip(lines, self.rows, strict=False)
            if row["status"] == RowStatus.REFUSED.value
        )


def _content(one: StudioObject) -> str:
    return json.dumps(one, sort_keys=True)


def findings_of(record: RehearsalRecord) -> Iterator[str]:
    """What is wrong by the studio's record, in sentences."""
    if twice := record.bought_twice():
        yield f"{plural(twice, 'purchase')} of what was bought before, while nothing was wrong with the first."
    for text, lost in record.lost().items():
        names = [name for name in lost[:_MOST_NAMED] if name]
        yield f"{text}: {len(lost):,}" + (f" ({', '.join(names)})" if names else "") + "."


def certificate_json(certificate: Certificate) -> bytes:
    return (
        json_bytes({"clean": certificate.is_clean, **certificate.model_dump(mode="json")}, indent=2) + b"\n"
    )


def certificate_page(certificate: Certificate) -> bytes:
    """One page, with everything that it needs in it; texts are escaped, and nothing is loaded."""
    # Loaded for this alone.
    from jinja2 import Environment, StrictUndefined

    style = page_part("certificate.css")
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = page.from_string(page_part("certificate.html")).render(
        certificate=certificate,
        style=style,
        policy=f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{policy_digest(style)}'",
        facts=list(_facts(certificate)),
        shown_refused=certificate.refused[:_MOST_REFUSED],
        made_at=f"{moment(certificate.made_at)} UTC",
        **_headline(certificate),
    )
    return text.encode("utf-8", "replace")


def _headline(certificate: Certificate) -> dict[str, object]:
    kills, faults = certificate.kills, certificate.faults
    return {
        "numbers": (
            ("bought twice", certificate.bought_twice, certificate.bought_twice == 0),
            ("lost", certificate.lost, certificate.lost == 0),
            ("kills", len(kills.imports) + len(kills.studio), None),
            ("faults fired", sum(fault.fired for fault in faults), None),
        ),
        "calls": sorted(certificate.calls.items(), key=lambda one: -one[1]),
        "marks": (
            *(("import", share) for share in kills.imports),
            *(("studio", share) for share in kills.studio),
        ),
    }


def _facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    file, bought = certificate.file, certificate.bought
    part = "" if file.rehearsed == file.rows else f", {file.rehearsed:,} of them drawn for this"
    yield "File", f"{file.name}: {plural(file.rows, 'row')}{part}"
    if file.stand_ins:
        yield "Stand-ins", _stand_ins_text(file.stand_ins)
    yield "Rows", counted(certificate.rows)
    yield (
        "Bought",
        f"{goods(bought.items)}, {plural(bought.failed, 'failed job')} included",
    )
    if bought.amount is not None:
        yield "Budget", f"{money(bought.amount, bought.currency)} at your prices, failed jobs charged"
    else:
        yield "Budget", "not counted: no prices are set"
    if certificate.forecast is not None:
        yield "The real import", certificate.forecast.text
    yield (
        "Driven with",
        f"{certificate.window:,} jobs in flight at most, {plural(certificate.attempts, 'attempt')} an item",
    )
    yield "Killed", _kills_text(certificate.kills)
    yield (
        "Took",
        f"{duration(certificate.seconds)}, in {plural(certificate.kills.starts, 'start')} of the import",
    )


def _kills_text(kills: Kills) -> str:
    done = len(kills.imports)
    fewer = "" if done == kills.requested else f" (of {kills.requested:,}: the file was done before the rest)"
    return f"the import {plural(done, 'time')}{fewer}, the studio {plural(len(kills.studio), 'time')}"


def _stand_ins_text(rows: int) -> str:
    return (
        f"{plural(rows, 'row')} name a category or option that only your service may have; another category stood "
        "in for theirs. `patternmill check` says whether your service has them."
    )
