"""Products: a pattern on a category's thing, with the options that were selected."""

from __future__ import annotations

from studio import offer
from studio.answers import JobAnswer, ProductAnswer, ProductPage
from studio.operations import jobs
from studio.operations.call import Call, part_of, place, timestamp
from studio.operations.patterns import find_pattern
from studio.records import Article, Job, Subject
from studio.requests import CreateProduct, GetProduct, Page
from studio.wire import Refusal


def create(call: Call, body: CreateProduct) -> JobAnswer:
    """Build a product from a pattern."""

    def plan() -> tuple[Subject, str | None]:
        design = find_pattern(call, body.patternId).subject.design
        category = offer.find_category(call.studio.environment, body.categoryId)
        faults = offer.selection_faults(category, body.selections)
        if faults:
            message = "; ".join(fault.message for fault in faults)
            raise Refusal(422, "invalid_selections", f"The selections cannot be made: {message}.", faults)
        selections = category.complete(body.selections)
        article = Article(pattern_id=body.patternId, category_key=category.key, selections=selections)
        failure = None
        if "[fail product]" in design.prompt.lower():
            failure = "The product could not be built, because its pattern's prompt contains [fail product]."
        return Subject(design=design, article=article), failure

    return jobs.start(call, body, plan)


def get(call: Call, body: GetProduct) -> ProductAnswer:
    """Return a product."""
    return _answer(call, find_product(call, body.productId))


def list_products(call: Call, body: Page) -> ProductPage:
    """List all products."""
    found, cursor = part_of(body, jobs.results(call, "product", place(body)))
    return {"products": [_answer(call, job) for job in found], "nextCursor": cursor}


def find_product(call: Call, product_id: str) -> Job:
    """Return the job that built this product. Raises Refusal (404)."""
    return jobs.of_result(call, "product", product_id)


def _answer(call: Call, job: Job) -> ProductAnswer:
    article = job.article
    return {
        "productId": job.result_id,
        "patternId": article.pattern_id,
        "categoryId": article.category.category_id(call.studio.environment),
        "selections": article.selections,
        "price": offer.money(article.price),
        "imageUrl": jobs.picture_url(call, job),
        "patternImageUrl": jobs.picture_url(call, find_pattern(call, article.pattern_id)),
        "createdAt": timestamp(job.ends_at),
    }
