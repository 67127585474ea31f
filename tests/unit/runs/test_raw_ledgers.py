"""Ledgers of versions that bought texts as they were written: what is in them is not bought again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from patternmill.catalog.row_checks import check_rows
from patternmill.catalog.rows import tidy
from patternmill.errors import ApprovalNeeded
from patternmill.ledger.records import SpendingLimits
from patternmill.planning.plan import Plan
from patternmill.runs import approval
from patternmill.runs.preview import preview
from patternmill.service import outcomes
from patternmill.states import AttemptState, RowStatus

from .fake_studio import ANSWER_LOST, Service, failed
from .workshop import Workshop

#: Each prompt as it is in the file, and as a person types it.
PROMPTS = {
    "N": ("blue\u00a0herons", "blue herons"),
    "Z": ("red\u200b kites", "red kites"),
    "Q": ("the heron\u2019s \u201creed\u201d \u2013 dawn", 'the heron\'s "reed" - dawn'),
    "C": ("one\r\ntwo", "one\ntwo"),
    "D": ("two  spaces", "two spaces"),
    "I": ("\u9752\u3044\u3000\u9ce5", "\u9752\u3044 \u9ce5"),
    "P": ("plain", "plain"),
}
OldRules = Callable[[], None]


@pytest.fixture
def by_old_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[OldRules]:
    """Until `monkeypatch.undo`: contents are the texts as written, but for outer spaces and composition."""

    for module in ("catalog.row_checks", "catalog.selections", "catalog.refinements", "planning.items"):
        monkeypatch.setattr(f"patternmill.{module}.normalised", tidy)
    yield monkeypatch.undo


def file(prompts: dict[str, str], *, edit: str | None = None, name: str = "{}") -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    header = "sku,prompt,category,option:name" + (",refine:recolor,refine:edit" if edit else "")
    more = f",#fff,{quoted(edit)}" if edit else ""
    lines = (f"{sku},{quoted(text)},Tote,{name.format(sku)}{more}" for sku, text in prompts.items())
    return "\n".join((header, *lines)) + "\n"


RAW = {sku: raw for sku, (raw, _) in PROMPTS.items()}
TYPED = {sku: typed for sku, (_, typed) in PROMPTS.items()}


@pytest.mark.parametrize("later", [RAW, TYPED], ids=["as written", "as typed"])
def test_first_run_after_the_upgrade_buys_nothing(
    shop: Workshop, service: Service, by_old_rules: OldRules, later: dict[str, str]
) -> None:
    """The same file, or the file without what nobody sees."""
    shop.run(file(RAW))
    assert "blue\u00a0herons" in service.bought
    before, creates = service.bought, len(service.creates)
    by_old_rules()
    assert set(shop.run(file(later)).statuses.values()) == {RowStatus.SUCCEEDED}
    assert service.bought == before
    assert len(service.creates) == creates


@pytest.mark.parametrize("later", [RAW, TYPED], ids=["as written", "as typed"])
def test_other_skus_share_what_was_bought_raw(
    shop: Workshop, service: Service, by_old_rules: OldRules, later: dict[str, str]
) -> None:
    """Their products alone are bought."""
    shop.run(file(RAW))
    before = service.bought
    by_old_rules()
    others = {f"{sku}-2": text for sku, text in later.items()}
    assert set(shop.run(file(others)).statuses.values()) == {RowStatus.SUCCEEDED}
    assert sorted(service.bought[len(before) :]) == sorted(others)


@pytest.mark.parametrize("later", [RAW, TYPED], ids=["as written", "as typed"])
def test_pattern_without_a_product_is_shared(
    shop: Workshop, service: Service, by_old_rules: OldRules, later: dict[str, str]
) -> None:
    """Its product failed: the row stays failed, and another one needs a product alone."""
    service.on_follow["N"] = [failed()]
    shop.run(file({"N": RAW["N"]}), attempts=1)
    by_old_rules()
    assert shop.run(file({"N": later["N"]}), attempts=1).statuses == {"N": RowStatus.FAILED}
    shop.run(file({"M": later["N"]}))
    assert service.bought == ["blue\u00a0herons", "N", "M"]


def test_failed_pattern_stays_failed_and_is_retried_as_it_was(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    """A new attempt at the same item, in its own words."""
    raw = "blue\u00a0herons"
    service.on_follow[raw] = [failed()]
    shop.run(file({"N": raw}), attempts=1)
    by_old_rules()
    assert shop.run(file({"N": "blue herons"}), attempts=1).statuses == {"N": RowStatus.FAILED}
    assert service.bought == [raw]
    again = shop.run(file({"N": "blue herons"}), attempts=1, retry=lambda row: True)
    assert again.statuses == {"N": RowStatus.SUCCEEDED}
    assert service.bought == [raw, raw, "N"]


def test_request_in_doubt_is_resent_byte_by_byte(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    raw = "blue\u00a0herons"
    service.on_create[raw] = [ANSWER_LOST]
    shop.run(file({"N": raw}))
    by_old_rules()
    assert shop.run(file({"N": "blue herons"})).statuses == {"N": RowStatus.SUCCEEDED}
    bodies = {create.body for create in service.creates if create.name == raw}
    assert len(bodies) == 1 and json.loads(bodies.pop())["prompt"] == raw
    assert service.bought == [raw, "N"]


@pytest.mark.parametrize(
    "later", [("blue\u00a0herons", "more  reeds"), ("blue herons", "more reeds")], ids=["written", "typed"]
)
def test_refinements_are_recognised(
    shop: Workshop, service: Service, by_old_rules: OldRules, later: tuple[str, str]
) -> None:
    """On a raw pattern, and with words of their own; for the same row and for another sku."""
    shop.run(file({"N": "blue\u00a0herons"}, edit="more  reeds"))
    before = service.bought
    assert len(before) == 4
    by_old_rules()
    prompt, edit = later
    assert shop.run(file({"N": prompt}, edit=edit)).statuses == {"N": RowStatus.SUCCEEDED}
    assert service.bought == before
    assert shop.run(file({"M": prompt}, edit=edit)).statuses == {"M": RowStatus.SUCCEEDED}
    assert service.bought == [*before, "M"]


def test_further_refinement_is_made_on_what_exists(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    """Only the changed edit and its product are bought."""
    shop.run(file({"N": "blue\u00a0herons"}, edit="more  reeds"))
    before = service.bought
    by_old_rules()
    shop.run(file({"N": "blue herons"}, edit="fewer reeds"))
    assert [service.names[job][0].value for job in list(service.jobs.values())[len(before) :]] == [
        "refinement",
        "product",
    ]


def test_two_spellings_bought_by_older_versions_stay_two(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    """Each row keeps its own; a failed product of one is not bought on the other's pattern."""
    service.on_follow["B"] = [failed()]
    both = {"A": "blue herons", "B": "blue\u00a0herons"}
    shop.run(file(both), attempts=1)
    before = service.bought
    by_old_rules()
    ended = shop.run(file(both), attempts=1)
    assert ended.statuses == {"A": RowStatus.SUCCEEDED, "B": RowStatus.FAILED}
    assert service.bought == before


def test_new_pattern_is_sent_as_it_is_normalised(shop: Workshop, service: Service) -> None:
    """Two spellings of one file are one pattern, and the file's cells stay as they are."""
    ended = shop.run(file({"A": RAW["Q"], "B": TYPED["Q"]}))
    assert service.bought == [TYPED["Q"], "A", "B"]
    assert ended.rows["A"].cells[1] == RAW["Q"]


def test_row_without_an_offer_is_recognised_under_its_raw_selection(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    """What is sent of a new row is normalised."""
    shop.run(file({"A": "herons"}, name="{}\u00a0 one"))
    by_old_rules()
    shop.run(file({"A": "herons"}, name="{}\u00a0 one"))
    shop.run(file({"A": "herons"}, name="{} one"))
    assert service.bought == ["herons", "A\u00a0 one"]
    shop.run(file({"B": "herons"}, name="{}\u00a0 one"))
    assert service.bought[2:] == ["B one"]


def test_visible_edit_is_bought(shop: Workshop, service: Service, by_old_rules: OldRules) -> None:
    """Case and punctuation are a person's own."""
    shop.run(file({"N": "blue\u00a0herons"}))
    by_old_rules()
    shop.run(file({"N": "Blue herons"}))
    assert service.bought == ["blue\u00a0herons", "N", "Blue herons", "N"]
    assert shop.state("Blue herons") is AttemptState.SUCCEEDED


def test_refused_request_of_an_older_version_stays_refused(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    raw = "blue\u00a0herons"
    service.on_create[raw] = [outcomes.Refused("invalid_request", "no such prompt")]
    shop.run(file({"N": raw}))
    by_old_rules()
    assert shop.run(file({"N": raw})).statuses == {"N": RowStatus.FAILED}
    assert service.bought == []


def test_rejected_plan_of_an_older_version_stays_rejected(
    shop: Workshop, service: Service, by_old_rules: OldRules
) -> None:
    """Nor does an approval lapse: what was only planned keeps its items."""
    text, again = file({"N": "blue\u00a0herons"}), file({"N": "blue herons"})
    spec = shop.spec()

    def plan_of(content: str) -> Plan:
        return preview(spec, check_rows(shop.file(content), service.offer, prompt_limit=100)).plan

    shop.run(text, limits=SpendingLimits(patterns=0))
    planned = plan_of(text)
    approval.approve(
        spec, approval.propose(spec, planned), approval.ApprovalDecision("a person", approved=False)
    )
    by_old_rules()
    assert plan_of(again).items.keys() == planned.items.keys()
    with pytest.raises(ApprovalNeeded, match="rejected by a person"):
        shop.run(again)
    assert service.bought == []
