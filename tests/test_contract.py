"""What a service promises beyond its interface: columns that are refused without a promise, and chains made by one."""

import base64
import json
from pathlib import Path

import pytest

from patternmill.contract import NO_CONTRACT, Contract, read_contract
from patternmill.items import pattern_item
from patternmill.states import Outcome
from tests.spine import refuses
from tests.test_runs import HEADER, double, results, row, run, sheet  # noqa: F401

PICTURE = b"\x89PNG\r\n\x1a\n and its pixels"
PROMISE = """
repeatable = true
model = "modelName"
reference = { path = "references/create", content = "bytes", field = "referenceIds" }
refine.recolor = { path = "refine/recolor", fields = ["palette"], form = "list", parent = "of" }
fields.seed = { field = "seedNumber", is_number = true }
"""


@pytest.fixture
def promised(double, monkeypatch):  # noqa: F811
    Path("service.toml").write_text(PROMISE)
    monkeypatch.setenv("PATTERNMILL_SERVICE_FILE", "service.toml")
    return double


@pytest.mark.parametrize("column", ["model", "reference", "refine:recolor", "field:seed"])
def test_without_a_promise_a_column_is_refused_by_name(double, column, monkeypatch):  # noqa: F811
    sheet((*row(1), "x"), header=(*HEADER, column))
    end = run()
    assert (end.outcome, end.summary.causes[0].code) == (Outcome.REFUSED, "not_promised")
    Path("service.toml").write_text(PROMISE.replace("repeatable = true", ""))
    monkeypatch.setenv("PATTERNMILL_SERVICE_FILE", "service.toml")
    assert run().summary.causes[0].code == "not_promised"
    assert not double.jobs


def test_a_chain_from_picture_to_product_is_made_in_order_and_once(promised):
    Path("reeds.png").write_bytes(PICTURE)
    header = (*HEADER, "model", "reference", "refine:recolor", "field:seed")
    sheet(
        (*row(1, "herons"), "linocut", "reeds.png", "#fff, #1a2b3c", "7"),
        (*row(2, "herons", label="x"), "linocut", "reeds.png", "#fff #1a2b3c", "7"),
        (*row(3, "herons"), "", "", "", ""),
        header=header,
    )
    assert run().outcome is Outcome.COMPLETED
    assert run().outcome is Outcome.COMPLETED
    by_stage = {}
    for job in promised.jobs.values():
        by_stage.setdefault(job.stage, []).append(job)
    assert {stage: len(jobs) for stage, jobs in by_stage.items()} == {
        "reference": 1, "pattern": 2, "refinement": 1, "product": 3,
    }  # fmt: skip
    (reference,) = by_stage["reference"]
    assert base64.b64decode(reference.body["bytes"]) == PICTURE
    (pattern,) = [job for job in by_stage["pattern"] if "modelName" in job.body]
    assert pattern.body | {"requestId": ""} == {
        "requestId": "", "prompt": "herons", "modelName": "linocut", "seedNumber": 7,
        "referenceIds": [reference.result],
    }  # fmt: skip
    for refined in by_stage["refinement"]:
        assert (refined.body["of"], refined.body["palette"]) == (pattern.result, ["#fff", "#1a2b3c"])


def test_a_retry_without_the_promise_buys_nothing_else_in_its_place(promised, monkeypatch):
    sheet((*row(1, "herons [unsafe]"), "#fff"), header=(*HEADER, "refine:recolor"))
    run()
    bought = len(promised.jobs)
    monkeypatch.delenv("PATTERNMILL_SERVICE_FILE")
    assert run("retry").summary.causes[0].code == "not_promised"
    assert len(promised.jobs) == bought


def test_a_picture_that_is_gone_or_a_number_that_is_none_is_a_fault_of_its_row(promised):
    header = (*HEADER, "reference", "field:seed")
    sheet((*row(1), "gone.png", ""), (*row(2), "", "many"), (*row(3), "", "1"), header=header)
    end = run()
    codes = {sku: line["error_code"] for sku, line in results(end).items()}
    assert codes == {"A-1": "wrong_reference", "A-2": "wrong_field", "A-3": ""}


@pytest.mark.parametrize("cell", ["../secret.png", "{tmp}/secret.png", ".env", "linked.png"])
def test_a_cell_cannot_send_a_file_from_outside_its_folder_or_one_that_is_no_picture(
    promised, tmp_path, monkeypatch, cell
):
    (tmp_path / "secret.png").write_bytes(PICTURE)
    (tmp_path / "sheets").mkdir()
    monkeypatch.setenv("PATTERNMILL_SERVICE_FILE", str(tmp_path / "service.toml"))
    monkeypatch.chdir(tmp_path / "sheets")
    Path("linked.png").symlink_to(tmp_path / "secret.png")
    Path(".env").write_text("PATTERNMILL_CURRENCY=EUR")
    sheet((*row(1), cell.format(tmp=tmp_path)), header=(*HEADER, "reference"))
    assert run().summary.causes[0].code == "wrong_reference"
    assert not promised.jobs


@pytest.mark.parametrize("take", ["0", "9" * 5000, "two", "-1"])
def test_a_take_in_results_that_is_none_is_left_aside(promised, take):
    sheet(row(1, "herons"))
    end = run()
    path = Path(end.summary.folder) / "results.csv"
    path.write_text(path.read_text("utf-8-sig").replace(",1,", f",{take},"), "utf-8")
    assert run(file=str(path)).outcome is Outcome.COMPLETED
    assert len(promised.jobs) == 2


def test_a_picture_that_was_changed_since_its_row_was_read_is_not_sent(promised):
    Path("reeds.png").write_bytes(PICTURE)
    contract = read_contract(Path("service.toml"))
    extras = {"reference": contract.content_of("reference", "reeds.png", Path())}
    item = contract.pattern("production", "herons", extras, 1)
    Path("reeds.png").write_bytes(b"another one")
    with refuses("reference_gone"):
        item.parent.body(1, None)


def test_spellings_of_a_refinement_are_one_and_what_is_added_is_another_pattern():
    contract = Contract.model_validate(
        {"refine": {"crop": {"path": "refine/crop", "fields": ["x", "y"], "form": "numbers"}}, "repeatable": True,
         "fields": {"seed": {"field": "seed"}}}
    )  # fmt: skip
    plain = NO_CONTRACT.pattern("production", "herons", {}, 1)
    assert plain.id == pattern_item("production", "herons").id
    assert contract.pattern("production", "herons", {"field:seed": "1"}, 1).id != plain.id
    item = contract.refined(plain, {"refine:crop": "0,0.5"})
    assert json.loads(item.body(1, "pat_1"))["y"] == 0.5
    assert contract.fault("refine:crop", "0", Path()) == "write a number for each of x, y"


@pytest.mark.parametrize(
    "text", ["repeatable = 1x", "models = 'a'", "[picture]\npath = 'http://x'\nfield = 'a'"]
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text):
    (tmp_path / "service.toml").write_text(text)
    with refuses("wrong_service_file") as refused:
        read_contract(tmp_path / "service.toml")
    assert "service.toml" in refused.value.message
