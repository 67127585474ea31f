"""How services say that they have a request ID already: status and body of each dialect, as public reports have it."""

from __future__ import annotations

from typing import Any

DIALECTS: dict[str, tuple[int, Any]] = {
    "a conflict without a word": (409, None),
    "a code of idempotency": (
        422,
        {"error": {"code": "idempotency_key_reuse", "message": "Try another key."}},
    ),
    "a duplicate request": (400, {"error": "Duplicate request"}),
    "processed": (422, {"message": "This order has already been processed."}),
    "a code of the trade": (400, {"code": "DUPLICATE_ORDER"}),
    "used before": (412, {"error": {"message": "The value was used before."}}),
    "a success that is none": (200, {"success": False, "error": "Request already submitted"}),
    "a list of details": (
        422,
        {"detail": [{"loc": ["body", "requestId"], "msg": "is not available", "type": "value_error"}]},
    ),
}
#: Words that nobody knows.
UNKNOWN = {"unknown words": (422, {"error": {"code": "E-1138", "message": "Nope."}})}
