"""The last report of each service, kept in the home, and what the next one changes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from patternmill.addresses import checked_url
from patternmill.conformance.conformance_report import ConformanceReport, carried_over, changes
from patternmill.errors import ConfigurationError
from patternmill.files import private_folder, write_whole
from patternmill.settings import Settings, in_environment, read_settings

FOLDER = "conformance"


@dataclass(frozen=True)
class Comparison:
    #: None: this was the first report.
    before: ConformanceReport | None
    changes: tuple[str, ...]


def settings_for(url: str | None, environment: str | None = None) -> Settings:
    """The settings with the address that is to be checked and its key; None: the environment's.

    An address that is configured belongs to its environment. Raises ConfigurationError.
    """
    settings = read_settings()
    if url is None:
        return in_environment(settings, environment)
    try:
        url = checked_url(url)
    except ValueError as error:
        raise ConfigurationError(f"The address cannot be used: it {error}.") from None
    service = settings.service_at(url)
    own = [name for name, known in settings.environment_urls.items() if settings.service_at(known) == service]
    found = in_environment(settings, environment or next(iter(own), None), studio_url=url)
    if found.environment in found.environment_urls and found.environment not in own:
        raise ConfigurationError(
            f"{url} is not the address of {found.environment!r}, whose key would be sent to it.",
            code="key_at_new_address",
            remedy="Add it to PATTERNMILL_ENVIRONMENT_URLS under a name of its own, and its key to "
            "PATTERNMILL_API_KEYS. Nothing was sent.",
        )
    return found


def compare_with_last(settings: Settings, report: ConformanceReport) -> Comparison:
    """Compare with the last report of this service, and keep this one in its place.

    Raises ConfigurationError when the last one cannot be read, or this one not be kept.
    """
    path = report_path(settings, report.url)
    before = _read(path)
    kept = carried_over(before, report) if before is not None else report
    try:
        private_folder(path.parent)
        write_whole(path, [json_of(kept)])
    except OSError as error:
        raise ConfigurationError(
            f"The report cannot be kept in {path.parent} ({error.strerror}).",
            remedy="Make room, or name another home: the next report is compared with the last one that was kept.",
        ) from None
    return Comparison(before, tuple(changes(before, report)) if before is not None else ())


def json_of(report: ConformanceReport) -> bytes:
    return report.model_dump_json(indent=1).encode() + b"\n"


def report_path(settings: Settings, url: str) -> Path:
    identity = hashlib.sha256(settings.service_at(url).encode()).hexdigest()[:16]
    return settings.home / FOLDER / f"{identity}.json"


def _read(path: Path) -> ConformanceReport | None:
    try:
        return ConformanceReport.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ConfigurationError(
            f"The last report, {path}, cannot be read ({type(error).__name__}).",
            remedy="Remove it: the next report is then the first again.",
        ) from None
