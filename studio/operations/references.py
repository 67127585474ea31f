"""References: uploaded pictures that guide the colours and motifs of a pattern."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from studio.errors import unknown
from studio.operations.context import (
    Answer,
    Caller,
    Context,
    Creation,
    address,
    identifier,
    listing,
    timestamp,
)
from studio.reference_reading import ReferencePicture, upload
from studio.requests import CreateReference, GetReference, Page
from studio.store import Reference


class References:
    """`references/*`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.directory = context.home / "references"

    async def create(self, body: CreateReference, caller: Caller) -> Answer:
        """The only operation that takes long itself: other requests are answered meanwhile."""
        creation = Creation(self._context, "references/create", body, caller)
        earlier = creation.earlier()
        if earlier is not None:
            return self._answer_to(earlier, caller)
        picture = await upload(body.data, self.directory)
        return self._keep(creation, body, caller, picture)

    def get(self, body: GetReference, caller: Caller) -> Answer:
        return self._answer_to(body.referenceId, caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._context.store.references.page, caller.account)
        return listing("references", body, read, lambda one: _answer(one, caller))

    def delete(self, body: GetReference, caller: Caller) -> Answer:
        """It cannot be used any more; patterns that were made with it stay as they are, and so does their file."""
        reference = self.find(body.referenceId, caller)
        if self._context.store.references.delete(reference, self._context.clock()):
            self.file_of(reference.sha256).unlink(missing_ok=True)
        return {"referenceId": reference.reference_id, "deleted": True}

    def find(self, reference_id: str, caller: Caller) -> Reference:
        """Raises Refusal (404)."""
        reference = self._context.store.references.get(caller.account, reference_id)
        if reference is None:
            raise unknown("reference", reference_id)
        return reference

    def picture(self, picture_id: str) -> Path | None:
        """The file of the reference at this address."""
        reference = self._context.store.references.of_picture(picture_id)
        return None if reference is None else self.file_of(reference.sha256)

    def file_of(self, sha256: str) -> Path:
        """Where the picture of this digest is kept."""
        return self.directory / f"{sha256}.png"

    def _keep(
        self, creation: Creation, body: CreateReference, caller: Caller, picture: ReferencePicture
    ) -> Answer:
        earlier = creation.earlier()  # the same request may have come in again meanwhile
        if earlier is not None:
            return self._answer_to(earlier, caller)
        reference = Reference(
            identifier("ref"),
            caller.account,
            body.name,
            address(),
            picture.sha256,
            picture.width,
            picture.height,
            self._context.clock(),
        )
        with self._context.store.transaction():
            self._context.store.references.add(reference)
            creation.accept(reference.reference_id)
        return _answer(reference, caller)

    def _answer_to(self, reference_id: str, caller: Caller) -> Answer:
        return _answer(self.find(reference_id, caller), caller)


def _answer(reference: Reference, caller: Caller) -> Answer:
    return {
        "referenceId": reference.reference_id,
        "name": reference.name,
        "sha256": reference.sha256,
        "width": reference.width,
        "height": reference.height,
        "imageUrl": f"{caller.origin}/references/{reference.picture_id}.png",
        "createdAt": timestamp(reference.created_at),
    }
