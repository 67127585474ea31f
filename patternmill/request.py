"""What is asked of a run, what was agreed to, and how a run ends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from patternmill.errors import Overlap, Refusal
from patternmill.states import CatalogRow, Outcome
from patternmill.text import parse_amount, sku_key


def _is_amount(text: str) -> str:
    parse_amount(text)
    return text


Count = Annotated[int, Field(ge=0)]


class Agreement(BaseModel):
    """What a person agreed to: items, money (as people write it), replaced products, retired rows, renames."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_items: Count | None = None
    budget: Annotated[str, AfterValidator(_is_amount)] | None = None
    change: Count | None = None
    retire: Count | None = None
    rename: Count | None = None


class Request(Agreement):
    """What a person, a schedule or a program asks for. The parameters of flows are these fields."""

    verb: Literal["import", "refresh", "retry", "remake"] = "import"
    #: A path, an address, or the name of a source of the settings.
    file: (
        Annotated[str, BeforeValidator(lambda file: str(file) if isinstance(file, Path) else file)] | None
    ) = None
    catalog: str | None = None
    environment: str | None = None
    mapping: Path | None = None
    out: Path | None = None
    plan_only: bool = False
    #: The rows of a retry or remake; all that need it where none is named.
    sku: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    #: The take that a remake goes to; without it, another one.
    take: Annotated[int, Field(ge=1)] | None = None

    @property
    def is_of_record(self) -> bool:
        """Return whether its rows are those on record, and not those of a sheet."""
        return self.verb in ("retry", "remake")

    @property
    def names_rows(self) -> bool:
        return bool(self.sku or self.status or self.code)

    def chooses(self, row: CatalogRow) -> bool:
        """Return whether a row is one of those that are named."""
        skus = {sku_key(sku) for sku in self.sku}
        return (
            (not skus or sku_key(row.sku) in skus)
            and (not self.status or row.status in self.status)
            and (not self.code or row.code in self.code)
        )


@dataclass(frozen=True)
class Question:
    """What a plan asks of a person: its text, what it would buy, and the agreement that would allow it."""

    catalog: str
    environment: str
    text: str
    digest: str
    proposed: Agreement


class Cause(BaseModel):
    """A reason why rows have no product, with the number of rows."""

    code: str
    rows: int
    message: str


class Summary(BaseModel):
    """What came of a run. Amounts are texts such as `40.00`, in `currency`."""

    run: str = ""
    catalog: str = ""
    environment: str = ""
    outcome: Outcome
    counts: dict[str, int] = {}
    spent: str = ""
    currency: str = ""
    folder: str = ""
    causes: list[Cause] = []


class RowsFailed(Exception):
    """Rows of a run were refused or failed; `summary` says how many and why."""

    def __init__(self, summary: Summary) -> None:
        super().__init__(summary)
        self.summary = summary

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {status}" for status, count in self.summary.counts.items())
        return f"{self.summary.outcome}: {counts} ({self.summary.folder})"


@dataclass(frozen=True)
class Failure:
    """A row that needs a person."""

    row: int
    sku: str
    status: str
    code: str
    error: str


@dataclass(frozen=True)
class End:
    """How a run ended, what a person is told, and what programs read of it."""

    outcome: Outcome
    message: str
    summary: Summary
    failures: tuple[Failure, ...] = ()


def end_of(refusal: Refusal, **about: Any) -> End:
    """Return the end of a run that was refused, or lost its lease."""
    outcomes = {Overlap.exit_code: Outcome.SKIPPED_OVERLAP, 2: Outcome.REFUSED, 3: Outcome.PAUSED}
    outcome = getattr(refusal, "outcome", None) or outcomes.get(refusal.exit_code, Outcome.FAILED)
    causes = [Cause(code=refusal.code, rows=0, message=refusal.message)]
    return End(outcome, f"{refusal} [{refusal.code}]", Summary(outcome=outcome, causes=causes, **about))
