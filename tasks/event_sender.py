"""Sends Prefect's events uncompressed: to compress each small one costs its sender more than it saves anybody."""

from __future__ import annotations

from typing import Any

from prefect.events import clients

#: How Prefect's event clients connect.
_CONNECT = "websocket_connect"
_MARK = "uncompressed"


def send_uncompressed() -> None:
    """Let the event clients of this process, made from now on, not ask for compression.

    Prefect has no setting for it. Where a later release connects otherwise, its events are compressed again.
    """
    connect = getattr(clients, _CONNECT, None)
    if connect is None or hasattr(connect, _MARK):
        return

    def uncompressed(uri: str, **options: Any) -> Any:
        return connect(uri, **{"compression": None, **options})

    setattr(uncompressed, _MARK, True)
    setattr(clients, _CONNECT, uncompressed)
