"""The flows, by the verb that each carries out."""

from typing import Any

from flows.bulk_import import bulk_import
from flows.catalog_refresh import catalog_refresh
from flows.remake_patterns import remake_patterns
from flows.retry_failed import retry_failed

FLOWS: dict[str, Any] = {
    "import": bulk_import,
    "refresh": catalog_refresh,
    "retry": retry_failed,
    "remake": remake_patterns,
}
