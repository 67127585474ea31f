"""Products: a pattern on a category's thing, with the options that were selected."""

from __future__ import annotations

from studio import offer
from studio.errors import Refusal, unknown
from studio.instruments import prompt_marks
from studio.operations.context import Answer, Caller, Context, timestamp
from studio.operations.jobs import Jobs, Work, picture_url
from studio.operations.patterns import Patterns
from studio.requests import CreateProduct, GetProduct, Page
from studio.store.records import Article, Job, Subject


class Products:
    """`products/*`."""

    def __init__(self, context: Context, jobs: Jobs, patterns: Patterns) -> None:
        self._context = context
        self._jobs = jobs
        self._patterns = patterns

    def create(self, body: CreateProduct, caller: Caller) -> Answer:
        return self._jobs.start(body, caller, lambda: self._work(body, caller))

    def get(self, body: GetProduct, caller: Caller) -> Answer:
        return self._answer(self.find(body.productId, caller), caller)

    def list(self, body: Page, caller: Caller) -> Answer:
        return self._jobs.listed_results("product", body, caller, lambda job: self._answer(job, caller))

    def find(self, product_id: str, caller: Caller) -> Job:
        """Return the job that built this product. Raises Refusal (404)."""
        return self._jobs.of_result("product", product_id, caller)

    def _work(self, body: CreateProduct, caller: Caller) -> Work:
        design = self._patterns.find(body.patternId, caller).subject.design
        category = offer.find_category(self._context.environment, body.categoryId)
        if category is None:
            raise unknown("category", body.categoryId)
        _check_selections(category, body.selections)
        selections = category.complete(body.selections)
        article = Article(pattern_id=body.patternId, category_key=category.key, selections=selections)
        return Work(Subject(design=design, article=article), prompt_marks.product_failure(design.prompt))

    def _answer(self, job: Job, caller: Caller) -> Answer:
        article = job.article
        return {
            "productId": job.result_id,
            "patternId": article.pattern_id,
            "categoryId": article.category.category_id(self._context.environment),
            "selections": article.selections,
            "price": offer.money(article.price),
            "imageUrl": picture_url(caller, job),
            "patternImageUrl": picture_url(caller, self._patterns.find(article.pattern_id, caller)),
            "createdAt": timestamp(job.ends_at),
        }


def _check_selections(category: offer.Category, selections: dict[str, str]) -> None:
    """Raise Refusal (422) that names every option at fault."""
    faults = offer.selection_faults(category, selections)
    if faults:
        message = "; ".join(fault.message for fault in faults)
        raise Refusal(422, "invalid_selections", f"The selections cannot be made: {message}.", faults)
