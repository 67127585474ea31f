"""Forms: how they are read, and how one is known to come from the page that the studio sent."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from studio.errors import Refusal
from studio.store import Store

#: Of a form, in bytes and in fields.
SIZE_LIMIT = 16_000
FIELDS_LIMIT = 20
#: The field that carries the form's token, and the setting that keeps the secret of this home.
TOKEN = "form_token"  # noqa: S105
SECRET = "form_secret"  # noqa: S105
Form = dict[str, str]


class FormTokens:
    """Tokens that only a page of this studio has: each is of one purpose, a checkout."""

    def __init__(self, store: Store) -> None:
        self._settings = store.settings

    def token(self, purpose: str) -> str:
        return hmac.new(self._secret(), purpose.encode(), hashlib.sha256).hexdigest()

    async def read(self, request: Request, purpose: str) -> Form:
        """The form that was sent. Raises Refusal: 403 unless it carries the token of this purpose."""
        form = await read_form(request)
        if not hmac.compare_digest(form.get(TOKEN, "").encode(), self.token(purpose).encode()):
            raise Refusal(
                403, "invalid_form", "This form is too old, or not from this page. Open the page again."
            )
        return form

    def _secret(self) -> bytes:
        secret = self._settings.get(SECRET)
        if secret is None:
            secret = secrets.token_hex(32)
            self._settings.set(SECRET, secret)
        return bytes.fromhex(secret)


async def read_form(request: Request) -> Form:
    """The fields of a form. Raises Refusal: 403 from another site, 413, 415, or 400 when it cannot be read."""
    _check_origin(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "not_a_form", "This page is sent as a form.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > SIZE_LIMIT:
            raise Refusal(413, "too_large", "The form is too large.")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_LIMIT)
    except ValueError as error:
        raise Refusal(400, "malformed_form", "The form cannot be read.") from error
    return dict(fields)


def _check_origin(request: Request) -> None:
    """A browser says from which site a form was sent."""
    sent = request.headers.get("origin")
    if sent is not None and urlsplit(sent).netloc != request.headers.get("host"):
        raise Refusal(403, "foreign_origin", "This form was sent from another site.")
