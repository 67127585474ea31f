"""Generated requests: any body is answered as documented, and any sequence as by the tests' double."""

import asyncio
import json
import random
from typing import get_type_hints

import pytest
from pydantic import TypeAdapter

from studio.answers import ErrorAnswer
from studio.openapi import document
from studio.operations.table import OPERATIONS
from tests.double import Double, Weather
from tests.double.service import REFUSED, UNSAFE
from tests.studio.in_process import MUG, Clock, InProcess, encoded_picture

SOAK = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 100)]
STRANGE = (None, True, -1, 2**70, 0.5, "", "   ", "\u202e\0", "x" * 5000, [], {}, [[]], {"a": None})
DOCUMENTED = {200, *(int(status) for status in document()["paths"]["/jobs/get"]["post"]["responses"])}


class Bodies:
    """Draws bodies that fit a schema of the OpenAPI document, and others that nearly do."""

    def __init__(self, seed, known):
        self._dice, self._known = random.Random(seed), known
        self._models = document()["components"]["schemas"]

    def body(self, name):
        content = document()["paths"][f"/{name}"]["post"]["requestBody"]["content"]
        body = self.draw(content["application/json"]["schema"])
        for field in set(body) & set(self._known):
            if self._dice.random() < 0.8:
                body[field] = self._known[field]
        return self._spoiled(body) if self._dice.random() < 0.5 else body

    def draw(self, schema):
        dice = self._dice
        if "$ref" in schema:
            return self.draw(self._models[schema["$ref"].rsplit("/", 1)[1]])
        if "anyOf" in schema or not schema.keys() & {"type", "enum"}:
            return self.draw(dice.choice(schema["anyOf"])) if "anyOf" in schema else dice.choice(STRANGE)
        if "enum" in schema:
            return dice.choice(schema["enum"])
        return getattr(self, f"_{schema['type']}")(schema)

    def _object(self, schema):
        needed, fields = schema.get("required", ()), schema.get("properties", {})
        return {
            name: self.draw(field)
            for name, field in fields.items()
            if name in needed or self._dice.random() < 0.6
        }

    def _array(self, schema):
        least = schema.get("minItems", 0)
        return [self.draw(schema["items"]) for _ in range(self._dice.randint(least, least + 2))]

    def _string(self, schema):
        if "#" in schema.get("pattern", ""):
            return f"#{self._dice.randrange(2**24):06x}"
        if schema.get("format") == "date-time":
            return "2026-01-31T12:00:00+02:00"
        return self._dice.choice(
            [f"{self._dice.random()}", "herons \u05d0", "x" * min(200, schema.get("maxLength", 9))]
        )

    def _integer(self, schema):
        least = schema.get("minimum", 0)
        return self._dice.choice([least, least + 1, float(least)])

    def _number(self, schema):
        return self._dice.choice([schema.get("minimum", 0), 0.5])

    def _null(self, schema):
        return None

    def _spoiled(self, body):
        """Return the body with a field of it missing, or strange, or one too many."""
        field = self._dice.choice([*body, "more"])
        if self._dice.random() < 0.3:
            return {name: value for name, value in body.items() if name != field}
        return body | {field: self._dice.choice(STRANGE)}


@pytest.mark.parametrize("seed", [0, 1, *SOAK])
def test_every_body_is_answered_as_documented(studio, seed):
    """Never with a 5xx; an answer has the documented fields and no others."""
    pattern = studio.pattern(f"known-{seed}")
    product = studio.product(f"known-product-{seed}", pattern)
    lines = [{"productId": product, "quantity": 1}]
    checkout = studio.ask("checkouts/create", requestId=f"known-checkout-{seed}", lines=lines)
    known = {"patternId": pattern, "productId": product, "checkoutId": checkout["checkoutId"], "lines": lines}
    known |= MUG | {"model": "atelier", "modelId": "linocut", "referenceIds": []}
    known["data"] = encoded_picture("teal")
    bodies = Bodies(seed, known)
    accepted = set()
    for name, perform in OPERATIONS.items():
        for _ in range(8):
            body = bodies.body(name)
            answer = studio.request(name, body)
            assert answer.status_code in DOCUMENTED, (name, body, answer.text)
            shape = get_type_hints(perform)["return"] if answer.status_code == 200 else ErrorAnswer
            TypeAdapter(shape).validate_json(answer.content, strict=True, extra="forbid")
            accepted |= {name} if answer.status_code == 200 else set()
    assert len(accepted) > 12


class Both:
    """The double and the studio, which are sent the same; the double's names are translated into the studio's."""

    def __init__(self, studio, clock):
        self.studio, self.clock = studio, clock
        calm = Weather(latency=0.0, pattern_time=90.0, product_time=10.0, spread=0.0)
        self.double = Double(calm, clock=lambda: clock.now.timestamp())
        self.names = {"nobody": "nobody", "cat_mug": "cat_stg_mug"}

    def ask(self, operation, **body):
        """Return the double's answer once it was compared with the studio's; None if both refuse."""
        ours = asyncio.run(self.double.exchange(operation, json.dumps(body).encode()))
        theirs = self.studio.request(operation, self.translated(body))
        assert (ours.status >= 400) == (theirs.status_code >= 400), (operation, body, ours, theirs.text)
        if ours.status >= 400:
            return None
        self.compare(ours.body, theirs.json())
        return ours.body

    def translated(self, value):
        if isinstance(value, list):
            return [self.translated(one) for one in value]
        if isinstance(value, dict):
            # The double's products have other options.
            own = MUG["selections"] if "label" in value else value
            return {name: self.translated(one) for name, one in own.items()}
        return self.names.get(value, value) if isinstance(value, str) else value

    def compare(self, ours, theirs):
        """Hold them to the same fields, where both have them, to one name for each thing, and to the same states."""
        assert ours.keys() <= theirs.keys()
        for name in ours.keys() & {"jobId", "patternId", "productId", "checkoutId", "orderId", "referenceId"}:
            assert self.names.setdefault(ours[name], theirs[name]) == theirs[name]
            assert len(set(self.names.values())) == len(self.names), "two things with one name"
        if "jobId" in ours:
            assert (ours["kind"], ours["status"]) == (theirs["kind"], theirs["status"])
        for name in ours.keys() & {"result", "error"}:
            assert bool(ours[name]) == bool(theirs[name])
            if ours[name]:
                self.compare(ours[name], theirs[name])


class Client:
    """Does by chance what clients do, in an order that makes sense or not."""

    def __init__(self, both, seed):
        self.both, self.dice = both, random.Random(seed)
        self.jobs, self.checkouts = [], ["nobody"]
        self.made = {"patternId": ["nobody"], "productId": ["nobody"]}

    def step(self):
        names = "pattern", "product", "recolor", "poll", "poll", "checkout", "order", "wait"
        getattr(self, self.dice.choice(names))()

    def create(self, operation, **body):
        """Send a create; the same content has the same ID, so that many are sent again."""
        return self.both.ask(operation, requestId=json.dumps([operation, body]), **body)

    def begin(self, operation, **body):
        if job := self.create(operation, **body):
            assert job["status"] == "running" or job["jobId"] in self.jobs
            self.jobs.append(job["jobId"])

    def pattern(self):
        words = ["herons", "ferns", "owls", f"{UNSAFE} [fail]", f"{REFUSED} [refuse]"]
        self.begin("patterns/create", prompt=self.dice.choice(words))

    def product(self):
        chosen = {"size": self.dice.choice(["s", "m"]), "label": ""}
        category = self.dice.choice(["cat_mug", "cat_mug", "nobody"])
        built_on = self.dice.choice(self.made["patternId"])
        self.begin("products/create", patternId=built_on, categoryId=category, selections=chosen)

    def recolor(self):
        parent = self.dice.choice(self.made["patternId"])
        if parent != "nobody":  # the double does not look
            self.begin("refine/recolor", patternId=parent, palette=["#102030", "#ffd84d"])

    def poll(self):
        job = self.both.ask("jobs/get", jobId=self.dice.choice([*self.jobs, "nobody"]))
        for name, value in ((job or {}).get("result") or {}).items():
            self.made[name].append(value)

    def checkout(self):
        product = self.dice.choice(self.made["productId"])
        if product != "nobody":
            made = self.create("checkouts/create", lines=[{"productId": product, "quantity": 2}])
            self.checkouts.append(made["checkoutId"])

    def order(self):
        checkout = self.dice.choice(self.checkouts)
        if checkout != "nobody" and self.dice.random() < 0.5:
            self.both.double.paid.add(checkout)
            ours = self.both.studio.ask("checkouts/get", checkoutId=self.both.names[checkout])
            self.both.studio.pay(ours)
        self.both.ask("orders/get", checkoutId=checkout)

    def wait(self):
        self.both.clock.pass_time(self.dice.choice([0.0, 200.0]))


@pytest.mark.parametrize("seed", [0, 1, *SOAK])
def test_any_sequence_is_answered_as_by_the_double(tmp_path, seed):
    clock = Clock()
    with InProcess.open(tmp_path, "realistic", clock) as studio:
        both = Both(studio, clock)
        client = Client(both, seed)
        for _ in range(250):
            client.step()
        for _ in range(2):
            assert both.ask("references/create", requestId="ref", data=encoded_picture("teal"))
        assert client.made["productId"][1:] and client.checkouts[1:] and both.double.paid, "it got not far"
