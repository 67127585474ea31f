"""References: uploaded pictures whose colours guide a pattern."""

from __future__ import annotations

import base64

from studio.answers import DeletedReference, ReferenceAnswer, ReferencePage
from studio.design import NotUsable
from studio.operations.call import Call, address, identifier, part_of, place, timestamp
from studio.pictures import PictureFault
from studio.records import Reference
from studio.requests import REFERENCE_LIMIT, CreateReference, GetReference, Page
from studio.wire import FieldFault, Refusal, unknown


async def create(call: Call, body: CreateReference) -> ReferenceAnswer:
    """Upload a picture."""
    earlier = call.earlier(body)
    if earlier is None:
        reference = await _read(call, body)
        # It alone takes long, so that others are answered meanwhile: the same request may have arrived again.
        earlier = call.earlier(body) or reference.reference_id
        if earlier == reference.reference_id:
            call.accept(body, earlier, reference)
    return _answer(call, find_reference(call, earlier))


def get(call: Call, body: GetReference) -> ReferenceAnswer:
    """Return an uploaded picture."""
    return _answer(call, find_reference(call, body.referenceId))


def list_references(call: Call, body: Page) -> ReferencePage:
    """List all uploaded pictures."""
    found, cursor = part_of(body, call.store.newest(Reference, place(body), deleted_at=None))
    return {"references": [_answer(call, one) for one in found], "nextCursor": cursor}


def delete(call: Call, body: GetReference) -> DeletedReference:
    """Delete an uploaded picture. Patterns that were made with it stay as they are."""
    reference = find_reference(call, body.referenceId)
    call.store.change(reference, deleted_at=call.now)
    call.studio.pictures.reference(reference.picture_id).unlink(missing_ok=True)
    return {"referenceId": reference.reference_id, "deleted": True}


def find_reference(call: Call, reference_id: str) -> Reference:
    """Return the reference. Raises Refusal (404)."""
    reference = call.store.find(Reference, reference_id=reference_id, deleted_at=None)
    if reference is None:
        raise unknown("reference", reference_id)
    return reference


async def _read(call: Call, body: CreateReference) -> Reference:
    """Keep the picture of a request. Raises Refusal (413, 422)."""
    picture_id = address()
    try:
        raw = base64.b64decode(body.data, validate=True)
        if len(raw) > REFERENCE_LIMIT:
            raise Refusal(413, "too_large", f"The picture is larger than {REFERENCE_LIMIT} bytes.")
        found = await call.studio.pictures.read_reference(raw, picture_id)
    except (NotUsable, PictureFault, ValueError) as error:
        reasons = {NotUsable: str(error), PictureFault: "takes too much time or memory to be read"}
        reason = reasons.get(type(error), "is not in base64")
        fault = FieldFault("data", reason)
        raise Refusal(422, "invalid_picture", f"The picture cannot be used: it {reason}.", (fault,)) from None
    return Reference(
        reference_id=identifier("ref"), name=body.name, picture_id=picture_id, created_at=call.now, **found
    )


def _answer(call: Call, reference: Reference) -> ReferenceAnswer:
    return {
        "referenceId": reference.reference_id,
        "name": reference.name,
        "sha256": reference.sha256,
        "width": reference.width,
        "height": reference.height,
        "imageUrl": f"{call.origin}/references/{reference.picture_id}.png",
        "createdAt": timestamp(reference.created_at),
    }
