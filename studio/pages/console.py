"""The console: logging in, patterns with their lineage, products, orders, jobs, and the inspector.

Each account sees its own. Requests without a valid key belong to nobody; the account `default`, which is that of the
keys the studio was started with, sees them too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from studio.errors import Refusal, unknown
from studio.inspector import BODY_LIMIT, Inspector
from studio.offer import CATEGORIES
from studio.operations.checkouts import order_body
from studio.operations.context import Answer, Caller, listing
from studio.operations.table import OPERATIONS
from studio.pages.forms import FormTokens, read_form
from studio.pages.lineage import lineage
from studio.pages.rendering import page, redirect
from studio.pages.sessions import PATH, Session, Sessions
from studio.requests import GetPattern, Page
from studio.service import Service
from studio.store import DEFAULT_ACCOUNT, Account, Checkout, Order
from studio.store.exchange_table import Filter, KeptExchange

PAGE_LIMIT = 24
Show = Callable[[Request, Session], Awaitable[Response]]


class Gate:
    """Lets in who is logged in, and asks all others to."""

    def __init__(self, sessions: Sessions, tokens: FormTokens) -> None:
        self._sessions = sessions
        self._tokens = tokens

    def guarded(self, show: Show) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint for this page of somebody who is logged in; a form has to be from their session."""

        async def answer(request: Request) -> Response:
            session = self._sessions.find(request, _origin(request))
            if session is None:
                return redirect(request, f"{PATH}/login?{urlencode({'next': _wanted(request)})}")
            if request.method == "POST":
                request.state.form = await self._tokens.read(request, session.purpose)
            request.state.form_token = self._tokens.token(session.purpose)
            return await show(request, session)

        return answer

    async def show_login(self, request: Request) -> Response:
        return page("login.html", request, next=request.query_params.get("next", ""), refusal=None)

    async def log_in(self, request: Request) -> Response:
        form = await read_form(request)
        wanted = form.get("next", "")
        answer = redirect(request, wanted if wanted.startswith(f"{PATH}/") else f"{PATH}/patterns")
        try:
            self._sessions.open(form.get("key", ""), request, answer)
        except Refusal as refusal:
            return page("login.html", request, refusal.status, next=wanted, refusal=refusal)
        return answer

    async def log_out(self, request: Request, session: Session) -> Response:
        answer = redirect(request, f"{PATH}/login")
        self._sessions.close(session, request, answer)
        return answer


class Console:
    """The pages of what an account has."""

    def __init__(self, service: Service, inspector: Inspector | None) -> None:
        self._service = service
        self._inspector = inspector

    async def first(self, request: Request, session: Session) -> Response:
        return redirect(request, f"{PATH}/patterns")

    async def patterns(self, request: Request, session: Session) -> Response:
        found = self._service.patterns.list(asked_page(request), session.caller)
        return console_page("patterns.html", request, session, found)

    async def pattern(self, request: Request, session: Session) -> Response:
        pattern_id = str(request.path_params["pattern_id"])
        found = self._service.patterns.get(GetPattern(patternId=pattern_id), session.caller)
        tree = lineage(self._service, pattern_id, session.caller)
        return console_page("pattern.html", request, session, {"pattern": found, "lineage": tree})

    async def products(self, request: Request, session: Session) -> Response:
        found = self._service.products.list(asked_page(request), session.caller)
        return console_page(
            "products.html", request, session, {**found, "categories": self._category_names()}
        )

    async def orders(self, request: Request, session: Session) -> Response:
        found = self._orders(asked_page(request), session.caller)
        return console_page("orders.html", request, session, found)

    async def jobs(self, request: Request, session: Session) -> Response:
        found = self._service.jobs.list(asked_page(request), session.caller)
        return console_page("jobs.html", request, session, found)

    async def inspector(self, request: Request, session: Session) -> Response:
        which = asked_filter(request, session.caller.account)
        read = self._exchanges(which)
        found = listing("exchanges", asked_page(request, 50), read, lambda one: {"exchange": one})
        names = [one.name for one in OPERATIONS]
        return console_page(
            "inspector.html", request, session, {**found, "which": which, "operations": names}
        )

    async def exchange(self, request: Request, session: Session) -> Response:
        seq = str(request.path_params["seq"])
        number = int(seq) if seq.isascii() and seq.isdigit() and len(seq) < 19 else 0
        found = self._inspector and self._inspector.get(Filter(_seen_by(session.caller.account)), number)
        if not found:
            raise unknown("request", seq)
        return console_page("exchange.html", request, session, {"exchange": found, "body_limit": BODY_LIMIT})

    def _category_names(self) -> dict[str, str]:
        environment = self._service.range.environment
        return {category.category_id(environment): category.name for category in CATEGORIES}

    def _orders(self, asked: Page, caller: Caller) -> Answer:
        def shown(pair: tuple[Order, Checkout]) -> Answer:
            return {**order_body(*pair, self._service.now()), "path": f"/checkout/{pair[1].page_id}/order"}

        read = partial(self._service.store.checkouts.orders, caller.account)
        return listing("orders", asked, read, shown)

    def _exchanges(self, which: Filter) -> Callable[[int | None, int], list[tuple[int, KeptExchange]]]:
        def read(before: int | None, limit: int) -> list[tuple[int, KeptExchange]]:
            if self._inspector is None:
                return []
            return [(one.seq, one) for one in self._inspector.page(which, before, limit)]

        return read


def console_page(
    template: str, request: Request, session: Session, values: Mapping[str, object], status: int = 200
) -> Response:
    """A page of the console, with what its frame shows."""
    return page(
        template,
        request,
        status,
        holder=session.holder,
        form_token=request.state.form_token,
        is_first_page="cursor" not in request.query_params,
        query=without_cursor(request),
        **values,
    )


def asked_page(request: Request, limit: int = PAGE_LIMIT) -> Page:
    """Raises Refusal (404) when the cursor is too long for one."""
    cursor = request.query_params.get("cursor", "")
    if len(cursor) > 200:
        raise unknown("cursor", cursor[:20])
    return Page(limit=limit, cursor=cursor)


def asked_filter(request: Request, account: Account) -> Filter:
    """What is chosen above the list of requests; what cannot be chosen there counts as nothing."""
    asked = request.query_params
    status = asked.get("status", "")
    return Filter(
        _seen_by(account),
        operation=asked.get("operation", ""),
        request_id=asked.get("requestId", "").strip(),
        status=status if status in ("0", "2", "3", "4", "5") else "",
        only_faults=asked.get("faults") == "1",
    )


def without_cursor(request: Request) -> str:
    """The query of the next page's address, up to its cursor."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{urlencode(kept)}&" if kept else ""


def _seen_by(account: Account) -> tuple[str, ...]:
    return (account, "") if account == DEFAULT_ACCOUNT else (account,)


def _wanted(request: Request) -> str:
    """Where to go on after the login: only a page can be asked again."""
    return request.url.path if request.method == "GET" and request.url.path != PATH else ""


def _origin(request: Request) -> str:
    # Addresses in pages are relative to the studio's root.
    return str(request.scope.get("root_path", ""))
