"""The names of runs, items and requests, as types that cannot be mixed up."""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
#: The name of one thing to be made, the same for every attempt.
ItemKey = NewType("ItemKey", str)
#: The name of one attempt at an item: the `requestId` on the wire.
RequestId = NewType("RequestId", str)
