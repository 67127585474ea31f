"""A catalog written straight into a ledger, with rows in each state: what tests of the page look at."""

import json
import time
from uuid import NAMESPACE_OID, uuid5

from patternmill.items import pattern_item
from patternmill.ledger.catalogs import write_rows

RUN = "20260101-000000-abcdef"
PLACE = {"environment": "production", "catalog": "spring"}
#: What became of the product of a row, or of its pattern.
_ENDS = {
    "succeeded": {"state": "succeeded", "result_id": "prd"},
    "failed": {"state": "failed", "code": "job_failed", "message": "no ink"},
    "held": {"state": "held", "code": "contradiction", "message": "two jobs"},
    "in_doubt": {"state": "intended", "job_id": None},
    "waiting": {"state": "accepted"},
}


def shelved(database, *rows, catalog="spring"):
    """Write rows of prompt and status, and return their patterns. `refused` and `not_started` have no attempt."""
    place, records, made = {**PLACE, "catalog": catalog}, [], {}
    for number, (prompt, status) in enumerate(rows, 2):
        pattern = "" if status == "refused" else pattern_item("production", prompt).id
        wants = str(uuid5(NAMESPACE_OID, f"{catalog} {number}")) if pattern else ""
        said = {"prompt": prompt, "category": "Mug" if number % 2 else "Tote", "selections": {"size": "m"}}
        refusal = {
            "code": "unknown_value",
            "message": "no size `huge`",
            "remedy": "write s or m",
            "column": "size",
        }
        records.append({
            "key": f"a-{number}", "sku": f"A-{number}", "position": number, "number": number, "run": RUN, "cells": "[]",
            "corrects": "",
            "content": json.dumps(said), "likeness": wants, "pattern": pattern, "take": 1, "wants": wants,
            "refusal": json.dumps(refusal) if status == "refused" else "", "built_on": pattern,
        })  # fmt: skip
        if status in _ENDS:
            if pattern not in made:
                made[pattern] = attempt(
                    pattern, "pattern", f"pat_{prompt.replace(' ', '-')}", {}, state="succeeded"
                )
            made[wants] = attempt(wants, "product", f"prd_{wants[:8]}", {"patternId": "pat"}, **_ENDS[status])

    def write(connection):
        write_rows(connection, place["environment"], place["catalog"], records)
        for one in made.values():
            connection.execute(
                "DELETE FROM attempts WHERE request_id = :request_id", request_id=one["request_id"]
            )
            connection.insert("attempts", **one)

    database.change(write)
    return list(dict.fromkeys(one["pattern"] for one in records))


def attempt(item, stage, name, body, state, **learned):
    """Return an attempt at an item whose result, if it has one, is `name`."""
    result = {"result_id": name} if state == "succeeded" else {}
    return {
        "request_id": f"r {item}", "item_id": item, "number": 1, "stage": stage, "operation": f"{stage}s/create",
        **PLACE, "driver": RUN, "label": name, "body": json.dumps(body), "job_id": f"j {item}",
        "intended_at": time.time(), "state": state, **learned, **result,
    }  # fmt: skip


def ended(connection, sku, status):
    """Give the product of a row another end."""
    end = {"result_id": None, "job_id": f"j {sku}", "code": "", "message": "", **_ENDS[status]}
    sets = ", ".join(f"{name} = :{name}" for name in end)
    wants = connection.row("SELECT wants FROM catalog_rows WHERE sku = :sku", sku=sku).wants
    connection.execute(f"UPDATE attempts SET {sets} WHERE item_id = :wants", wants=wants, **end)
