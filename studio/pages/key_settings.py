"""Settings -> API keys: create a key, which is shown once, and revoke one."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal, unknown
from studio.keys import Keys
from studio.pages.rendering import page, redirect
from studio.pages.sessions import Session
from studio.wire import read_form

ADDRESS = "/console/settings/api-keys"
NAME_LIMIT = 100


class KeySettings:
    """The keys of an account."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def show(self, request: Request, session: Session) -> Response:
        return self._page(request, session)

    async def create(self, request: Request, session: Session) -> Response:
        """Answer with the new key, which is kept nowhere: the page's script never sends a form again."""
        name = (await read_form(request)).get("name", "").strip()
        if not 0 < len(name) <= NAME_LIMIT:
            message = f"A key needs a name of 1 to {NAME_LIMIT} characters: what it is for."
            return self._page(request, session, Refusal(400, "invalid_name", message))
        _, key = self._keys.create(name, session.holder.account)
        return self._page(request, session, new_key=key)

    async def revoke(self, request: Request, session: Session) -> Response:
        """Revoke a key, which logs out whoever is logged in with it."""
        await read_form(request)
        key_id = request.path_params["key_id"]
        if key_id not in [key.key_id for key in self._keys.of_account(session.holder.account)]:
            raise unknown("key", key_id)
        self._keys.revoke(key_id)
        return redirect(ADDRESS)

    def _page(
        self, request: Request, session: Session, refusal: Refusal | None = None, new_key: str = ""
    ) -> Response:
        return page(
            "api_keys.html",
            request,
            refusal,
            holder=session.holder,
            keys=self._keys.of_account(session.holder.account),
            new_key=new_key,
            name_limit=NAME_LIMIT,
        )
