"""A browser without a window: pages are opened, and forms sent, with the session as the console's script keeps it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx

from .in_process import InProcess

HOST = "http://127.0.0.1"


@dataclass
class Form:
    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """What an answer shows."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__()
        self.answer = answer
        self.status = answer.status_code
        self.path = answer.url.path
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.forms: list[Form] = []
        self._texts: list[str] = []
        self.feed(answer.text)
        self.text = " ".join(" ".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, found))
        if tag == "form":
            self.forms.append(Form(found["action"], found["method"]))
        if tag == "input" and "name" in found and self.forms:
            self.forms[-1].fields[found["name"]] = found.get("value", "")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def form(self, end: str) -> Form:
        """The form whose address ends so."""
        [found] = [form for form in self.forms if form.action.endswith(end)]
        return found

    def attributes(self, tag: str, name: str) -> list[str]:
        return [found[name] for one, found in self.tags if one == tag and name in found]


class Visitor:
    """One browser."""

    def __init__(self, studio: InProcess) -> None:
        self._studio = studio
        self.session = ""

    def get(self, address: str, headers: dict[str, str] | None = None) -> Page:
        return self._ask("GET", address, None, headers)

    def submit(self, form: Form, headers: dict[str, str] | None = None, **fields: str) -> Page:
        return self._ask("POST", form.action, {**form.fields, **fields}, headers)

    def log_in(self, key: str, page: str = "/console") -> Page:
        """Log in as the console's script does, and go on to the page."""
        answered = self.submit(self.get(page).form("/console/login"), key=key)
        if answered.status != 200:
            return answered
        self.session = answered.answer.text
        return self.get(page)

    def _ask(
        self,
        method: str,
        address: str,
        data: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Page:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self._studio.app),
                base_url=HOST,
                follow_redirects=True,
                headers={"Studio-Session": self.session},
            ) as client:
                content = None if data is None else urlencode(data)
                kind = {} if data is None else {"Content-Type": "application/x-www-form-urlencoded"}
                return await client.request(method, address, content=content, headers=kind | (headers or {}))

        return Page(asyncio.run(ask()))
