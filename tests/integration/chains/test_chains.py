"""Rows with refinements, references and models at a real studio, judged by its meter."""

from __future__ import annotations

from patternmill.planning.problems import RowCode
from patternmill.states import Outcome, RowStatus
from tests.integration.chains.conftest import Chains

HEADER = "sku,prompt,category,option:size,option:fabric,reference,model,refine:recolor,refine:crop\n"
ROW = "{sku},{prompt},Cushion,50x50,linen,{reference},{model},{recolor},{crop}\n"


def row(
    sku: str = "S-1",
    prompt: str = "a heron",
    reference: str = "",
    model: str = "",
    recolor: str = "",
    crop: str = "",
) -> str:
    crop, recolor = (f'"{cell}"' if "," in cell and '"' not in cell else cell for cell in (crop, recolor))
    return ROW.format(sku=sku, prompt=prompt, reference=reference, model=model, recolor=recolor, crop=crop)


WHOLE = HEADER + (
    row("S-1", reference="heron.png", model="linocut", recolor="#1f3a5f #f2e8cf", crop="0,0,0.5,0.5")
    + row("S-2", reference="heron.png", model="linocut", recolor="#1F3A5F, #F2E8CF")
    + row("S-3")
)


def test_chain_is_made_and_shared(chains: Chains) -> None:
    """One picture, two patterns (one guided, one plain), one recolouring for both rows, one crop, three products."""
    ended = chains.make(WHOLE)
    assert ended.ending.outcome is Outcome.COMPLETED
    bought = {"patterns/create": 2, "refine/recolor": 1, "refine/crop": 1, "products/create": 3}
    assert chains.bought == bought
    assert ended.ending.spent.items == {"reference": 1, "pattern": 2, "refinement": 2, "product": 3}
    assert not chains.studio.meter.double_purchases
    first = ended.rows["S-1"]
    stages = [item.stage.value for item in first.items]
    assert stages == ["reference", "pattern", "refinement", "refinement", "product"]
    _, record = chains.studio.ask("products/get", productId=first.product_id)
    assert record["patternId"] == first.pattern_id
    _, cropped = chains.studio.ask("patterns/get", patternId=first.pattern_id)
    assert cropped["change"]["width"] == 0.5
    assert cropped["parentPatternId"] == ended.rows["S-2"].pattern_id
    again = chains.make(WHOLE)
    assert again.ending.rows == {RowStatus.SUCCEEDED: 3} and not again.ending.spent.items
    assert chains.bought == bought


def test_lost_answers_buy_nothing_twice(chains: Chains) -> None:
    """The first answer of every create is lost after it was carried out."""
    chains.know(repeatable=True)
    operations = ("references/create", "patterns/create", "refine/recolor", "refine/crop", "products/create")
    lost = {"repeated": False, "first": 1, "effect": {"kind": "close"}}
    chains.studio.faults.use(*({"name": operation, "on": operation, **lost} for operation in operations))
    ended = chains.make(WHOLE)
    assert not chains.studio.faults.unfired
    assert ended.ending.outcome is Outcome.COMPLETED
    assert not chains.studio.meter.double_purchases
    assert chains.bought["refine/recolor"] == chains.bought["refine/crop"] == 1
    _, listed = chains.studio.ask("references/list")
    assert len(listed["references"]) == 1


def test_forgotten_reference_fails_its_row_once(chains: Chains) -> None:
    """A pattern that is refused for an unknown reference fails its row; nothing loops."""
    chains.make(HEADER + row(reference="heron.png"))
    _, listed = chains.studio.ask("references/list")
    chains.studio.ask("references/delete", referenceId=listed["references"][0]["referenceId"])
    ended = chains.make(HEADER + row(reference="heron.png") + row("S-2", "two herons", reference="heron.png"))
    assert ended.rows["S-1"].status is RowStatus.SUCCEEDED
    assert ended.rows["S-2"].status is RowStatus.FAILED
    assert "save the picture anew" in (ended.rows["S-2"].remedy or "")


def test_operation_that_the_service_lacks_is_refused_by_name(chains: Chains) -> None:
    """Rows that need it are refused before anything is spent on them; the others are made."""
    chains.studio.faults.use({"on": "refine/recolor", "effect": {"kind": "refuse", "status": 404}})
    ended = chains.make(HEADER + row("S-1", recolor="#1f3a5f") + row("S-2", prompt="two herons"))
    assert ended.rows["S-1"].error_code == RowCode.UNAVAILABLE_OPERATION
    assert "refine/recolor" in (ended.rows["S-1"].error or "")
    assert chains.bought == {"patterns/create": 1, "products/create": 1}


def test_corrected_operations_reach_what_was_refused(chains: Chains) -> None:
    """A refused request made nothing: it goes out as it is written now, and no pattern is bought once more."""
    chains.know(fields={"palette": "colours"})
    refused = chains.make(HEADER + row(recolor="#1f3a5f"))
    assert refused.rows["S-1"].error_code == "unclear_refusal"
    chains.know()
    assert chains.retry() and chains.work.ended.rows == {RowStatus.SUCCEEDED: 1}
    assert chains.bought == {"patterns/create": 1, "refine/recolor": 1, "products/create": 1}
