"""Products: a pattern on a category's thing, with the options that were selected."""

from __future__ import annotations

from dataclasses import dataclass

from studio import offer
from studio.errors import FieldFault, Refusal, unknown
from studio.instruments import prompt_marks
from studio.operations.context import Answer, Caller, Context, timestamp
from studio.operations.jobs import Jobs, Work, picture_url
from studio.operations.patterns import Patterns, parts
from studio.requests import CreateProduct, GetProduct, Page
from studio.store import Job


@dataclass(frozen=True)
class Article:
    """What is sold: the category, every option's value, and what follows from them."""

    category: offer.Category
    selections: dict[str, str]

    @property
    def price(self) -> int:
        """In minor units."""
        return self.category.price(self.selections)

    @property
    def description(self) -> str:
        return f"{self.category.name}, {', '.join(self.selections.values())}"


class Products:
    """`products/*`."""

    def __init__(self, context: Context, jobs: Jobs, patterns: Patterns) -> None:
        self._context = context
        self._jobs = jobs
        self._patterns = patterns

    def create(self, body: CreateProduct, caller: Caller) -> Answer:
        return self._jobs.start("products/create", body, caller, lambda: self._work(body, caller))

    def get(self, body: GetProduct, caller: Caller) -> Answer:
        return self._answer(self.find(body.productId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        return self._jobs.listed_results("product", body, caller, lambda job: self._answer(job, caller))

    def find(self, product_id: str, caller: Caller) -> Job:
        """The job that built this product. Raises Refusal (404): until it has succeeded, a product is unknown."""
        return self._jobs.of_result("product", product_id, caller)

    def _work(self, body: CreateProduct, caller: Caller) -> Work:
        pattern = self._patterns.find(body.patternId, caller)
        category = offer.find_category(self._context.environment, body.categoryId)
        if category is None:
            raise unknown("category", body.categoryId)
        _check_selections(category, body.selections)
        subject: dict[str, object] = {
            **parts(pattern.subject, "prompt", "design"),
            "pattern": body.patternId,
            "category": category.key,
            "selections": category.complete(body.selections),
        }
        return Work("product", subject, prompt_marks.product_failure(str(pattern.subject["prompt"])))

    def _answer(self, job: Job, caller: Caller) -> Answer:
        article = article_of(job)
        pattern_id = str(job.subject["pattern"])
        pattern = self._patterns.find(pattern_id, caller)
        return {
            "productId": job.result_id,
            "patternId": pattern_id,
            "categoryId": article.category.category_id(self._context.environment),
            "selections": article.selections,
            "price": offer.money(article.price),
            "imageUrl": picture_url(caller, job.picture_id),
            "patternImageUrl": picture_url(caller, pattern.picture_id),
            "createdAt": timestamp(job.ends_at),
        }


def article_of(job: Job) -> Article:
    """What the product of this job is."""
    key, selections = job.subject["category"], job.subject["selections"]
    assert isinstance(selections, dict)
    category = next(one for one in offer.CATEGORIES if one.key == key)
    return Article(category, selections)


def _check_selections(category: offer.Category, selections: dict[str, str]) -> None:
    faults = offer.selection_faults(category, selections)
    if faults:
        message = "; ".join(fault.message for fault in faults)
        fields = tuple(FieldFault(f"selections.{fault.option}", fault.message) for fault in faults)
        raise Refusal(422, "invalid_selections", f"The selections cannot be made: {message}.", fields)
