"""The run that a file is of, by its column `run`: named to people, and held to the environment that they mean."""

from __future__ import annotations

from patternmill.errors import InputRefused
from patternmill.ledger.records import RunRecord
from patternmill.settings import Settings


def require_environment(name: str, record: RunRecord, named: str | None, settings: Settings) -> None:
    """Raise InputRefused where a file's run was in another environment than the one that is named, or else configured.

    The file may be anybody's: what is bought where is not for its column `run` to say.
    """
    here = named or settings.environment
    if record.environment != here:
        raise InputRefused(
            f"{origin_note(name, record)} The environment {here!r} is {'named' if named else 'configured'}.",
            code="other_environment",
            remedy=f"To go on in {record.environment}, name it: --environment {record.environment}; for another "
            "environment, import the catalog's own file. Nothing was bought.",
        )


def origin_note(name: str, record: RunRecord) -> str:
    """Return `failures.csv has rows of run 2026…: catalog spring, environment staging.`"""
    return (
        f"{name} has rows of run {record.run_id}: catalog {record.catalog}, environment {record.environment}."
    )
