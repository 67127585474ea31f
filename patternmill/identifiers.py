"""The names of runs, items and requests, as types that cannot be mixed up."""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
#: Names one thing to be made, whatever the attempt.
ItemKey = NewType("ItemKey", str)
#: Names one attempt at an item: the `requestId` on the wire.
RequestId = NewType("RequestId", str)
