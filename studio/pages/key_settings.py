"""Settings -> API keys: create a key, which is shown once, and revoke one."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal, unknown
from studio.keys import Keys
from studio.pages.console import console_page
from studio.pages.rendering import redirect
from studio.pages.sessions import PATH, Session
from studio.store import ApiKey

ADDRESS = f"{PATH}/settings/api-keys"
NAME_LIMIT = 100
#: New keys wait for the page that shows them; of those that nobody fetched, the oldest are forgotten.
WAITING_LIMIT = 100


class KeySettings:
    """The keys of an account. A new key is held in memory until its page is fetched, and nowhere else."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        #: By session and key ID.
        self._new: dict[tuple[str, str], str] = {}

    async def show(self, request: Request, session: Session) -> Response:
        created = request.query_params.get("created", "")
        new_key = self._new.pop((session.token_sha256, created), None)
        return self._page(request, session, created=created, new_key=new_key)

    async def create(self, request: Request, session: Session) -> Response:
        name = request.state.form.get("name", "").strip()
        if not 0 < len(name) <= NAME_LIMIT:
            message = f"A key needs a name of 1 to {NAME_LIMIT} characters: what it is for."
            return self._page(request, session, refusal=Refusal(400, "invalid_name", message))
        record, key = self._keys.create(name, session.caller.account, datetime.now(UTC))
        self._new[session.token_sha256, record.key_id] = key
        if len(self._new) > WAITING_LIMIT:
            del self._new[next(iter(self._new))]
        return redirect(request, f"{ADDRESS}?created={record.key_id}")

    async def revoke(self, request: Request, session: Session) -> Response:
        """Whoever is logged in with it is logged out by that."""
        key_id = str(request.path_params["key_id"])
        if key_id not in [key.key_id for key in self._own(session)]:
            raise unknown("key", key_id)
        self._keys.revoke(key_id, datetime.now(UTC))
        return redirect(request, ADDRESS)

    def _own(self, session: Session) -> list[ApiKey]:
        return [key for key in reversed(self._keys.list()) if key.account == session.caller.account]

    def _page(
        self,
        request: Request,
        session: Session,
        *,
        created: str = "",
        new_key: str | None = None,
        refusal: Refusal | None = None,
    ) -> Response:
        values = {
            "keys": self._own(session),
            "created": created,
            "new_key": new_key,
            "refusal": refusal,
            "name_limit": NAME_LIMIT,
        }
        status = 200 if refusal is None else refusal.status
        return console_page("api_keys.html", request, session, values, status)
