"""References: uploaded pictures that guide the colours and motifs of a pattern."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from studio.errors import unknown
from studio.operations.context import Answer, Caller, Context, address, identifier, listing, timestamp
from studio.reference_reading import ReferencePicture, upload
from studio.requests import CreateReference, GetReference, Page
from studio.store.records import Reference


class References:
    """`references/*`. A deleted one is not found again."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._table = context.store.references
        self.directory = context.home / "references"

    async def create(self, body: CreateReference, caller: Caller) -> Answer:
        """Read and keep an uploaded picture. It alone takes long, so others are answered meanwhile."""
        earlier = self._context.earlier(body, caller)
        if earlier is None:
            picture = await upload(body.data, self.directory)
            # The same request may have arrived again meanwhile.
            earlier = self._context.earlier(body, caller) or self._add(body, caller, picture)
        return _answer(self.find(earlier, caller), caller)

    def get(self, body: GetReference, caller: Caller) -> Answer:
        return _answer(self.find(body.referenceId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        read = partial(self._table.page, account=caller.account, deleted_at=None)
        return listing("references", body, read, lambda one: _answer(one, caller))

    def delete(self, body: GetReference, caller: Caller) -> Answer:
        """Delete a reference. Patterns that were made with it stay, and so does their file."""
        reference = self.find(body.referenceId, caller)
        sha256 = reference.sha256
        self._table.update({"deleted_at": self._context.clock()}, reference_id=reference.reference_id)
        if not (self._table.one(sha256=sha256, deleted_at=None) or self._table.one(sha256=sha256, used=1)):
            self.file_of(sha256).unlink(missing_ok=True)
        return {"referenceId": reference.reference_id, "deleted": True}

    def find(self, reference_id: str, caller: Caller) -> Reference:
        """Return the account's reference. Raises Refusal (404)."""
        reference = self._table.one(reference_id=reference_id, account=caller.account, deleted_at=None)
        if reference is None:
            raise unknown("reference", reference_id)
        return reference

    def picture(self, picture_id: str) -> Path | None:
        """Return the file of the reference at this address."""
        reference = self._table.one(picture_id=picture_id, deleted_at=None)
        return None if reference is None else self.file_of(reference.sha256)

    def file_of(self, sha256: str) -> Path:
        """Return where the picture of this digest is kept."""
        return self.directory / f"{sha256}.png"

    def _add(self, body: CreateReference, caller: Caller, picture: ReferencePicture) -> str:
        reference = Reference(
            reference_id=identifier("ref"),
            account=caller.account,
            name=body.name,
            picture_id=address(),
            created_at=self._context.clock(),
            **vars(picture),
        )
        with self._context.store.transaction():
            self._table.add(reference)
            self._context.accept(body, caller, reference.reference_id)
        return reference.reference_id


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
