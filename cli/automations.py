"""`up --automations`: the Prefect server notifies about runs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from patternmill.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect.blocks.core import Block

FILE = Path(__file__).resolve().parent.parent / "deployments" / "automations.yaml"
NOTIFY_URL = "PATTERNMILL_NOTIFY_URL"
NOTIFY_BLOCK = "PATTERNMILL_NOTIFY_BLOCK"
BLOCK_NAME = "patternmill-notify"
_SLACK = "hooks.slack.com"


def apply_automations(file: Path = FILE) -> Iterator[str]:
    """Make or replace each automation of the file on the configured server; yields a line for each."""
    from prefect.client.orchestration import get_client
    from prefect.events.schemas.automations import AutomationCore

    block = notification_block()
    if block is None:
        yield f"No automations: neither {NOTIFY_URL} nor {NOTIFY_BLOCK} says where their messages go."
        return
    # It comes with Prefect, and without types.
    yaml: Any = importlib.import_module("yaml")
    text = file.read_text("utf-8").replace("block: notify", f"block_document_id: {block}")
    with get_client(sync_client=True) as client:
        for core in map(AutomationCore.model_validate, yaml.safe_load(text)["automations"]):
            existing = client.read_automations_by_name(core.name)
            if existing:
                client.update_automation(existing[0].id, core)
            else:
                client.create_automation(core)
            yield f"{'replaced' if existing else 'made'}: {core.name}"


def notification_block() -> UUID | None:
    """The block that sends messages, made from the webhook's address if that is set."""
    named, url = os.environ.get(NOTIFY_BLOCK), os.environ.get(NOTIFY_URL)
    if named:
        return _named_block(named)
    if not url:
        return None
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ConfigurationError(f"{NOTIFY_URL} is no http(s) address.", remedy="Correct it.")
    return _webhook(url)


def _webhook(url: str) -> UUID:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook
    from prefect.types import SecretDict
    from pydantic import SecretStr

    if urlsplit(url).hostname == _SLACK:
        return _saved(SlackWebhook(url=SecretStr(url)))
    # As a secret value: a webhook's address is its key, and the block's `url` would be stored in clear.
    block = CustomWebhookNotificationBlock(
        name=BLOCK_NAME,
        url="{{address}}",
        json_data={"subject": "{{subject}}", "body": "{{body}}"},
        secrets=SecretDict({"address": url}),
    )
    return _saved(block)


def _saved(block: Block) -> UUID:
    # Typed as if it might return a coroutine, which it does not outside of an event loop.
    saved: Any = block.save(BLOCK_NAME, overwrite=True)
    return UUID(str(saved))


def _named_block(name: str) -> UUID:
    from prefect.client.orchestration import get_client

    kind, _, document = name.partition("/")
    with get_client(sync_client=True) as client:
        try:
            return client.read_block_document_by_name(document, kind).id
        except Exception as error:
            raise ConfigurationError(
                f"There is no block {name!r} on the Prefect server ({type(error).__name__}).",
                remedy="Make it in the UI under Blocks, and set TYPE/NAME.",
            ) from None
