"""A browser without a window: pages are opened, and forms sent, with the key as the console's script keeps it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Form:
    action: str
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """The page that an answer shows."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.status = answer.status_code
        self.path = answer.url.path
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.forms: list[Form] = []
        self._texts: list[str] = []
        self.feed(answer.text)
        self.text = " ".join(" ".join(self._texts).split())

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        if tag == "form":
            self.forms.append(Form(attributes.get("action", "")))
        if tag == "input" and "name" in attributes and self.forms:
            self.forms[-1].fields[attributes["name"]] = attributes.get("value", "")

    def handle_data(self, data):
        self._texts.append(data)

    def form(self, end):
        """Return the form whose address ends so."""
        [form] = [form for form in self.forms if form.action.endswith(end)]
        return form

    def attributes(self, tag, name):
        return [
            attributes[name] for its_tag, attributes in self.tags if its_tag == tag and name in attributes
        ]


class Visitor:
    """One browser."""

    def __init__(self, studio):
        self._studio = studio
        self.key = ""

    def get(self, address, headers=None):
        return self._ask("GET", address, b"", headers)

    def submit(self, form, headers=None, **fields: str):
        raw = urlencode({**form.fields, **fields}).encode()
        return self._ask("POST", form.action, raw, {**FORM, **(headers or {})})

    def log_in(self, key, page="/console"):
        """Log in as the console's script does, and go on to the page."""
        self.key = key
        return self.get(page)

    def _ask(self, method, address, raw, headers):
        own = {"Authorization": f"Bearer {self.key}".encode() if self.key else "", **(headers or {})}
        return Page(asyncio.run(self._studio.send(method, address, raw, own, follow_redirects=True)))
