"""A run's page: how far it is, how it ended, and cells of a sheet as text."""

import asyncio
from dataclasses import dataclass

import pytest

from cli.server import Server
from patternmill.request import End, Failure, Summary
from patternmill.states import Outcome
from tasks.page import markdown, show_end, watching


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 12 of 40", "plain text, 12 of 40"),
        ("a | b", r"a \| b"),
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("[x](https://evil.example/a)", "`[x](https://evil.example/a)`"),
        ("see www.evil.example now", "see `www.evil.example` now"),
        ("*bold* _and_ `code`", r"\*bold\* \_and\_ \`code\`"),
        ("two\nlines\u202e", r"two⏎lines\\u202e"),
    ],
)
def test_text_of_others_is_shown_literally(text: str, shown: str) -> None:
    assert markdown(text) == shown


@dataclass
class Made:
    work: int = 4
    made: int = 1


def test_progress_and_summary_are_artifacts_of_the_run(server: Server) -> None:
    from prefect import flow, get_client
    from prefect.client.schemas.filters import ArtifactFilter

    summary = Summary(outcome=Outcome.COMPLETED_WITH_FAILURES, catalog="spring", folder="results/spring/1")
    failures = tuple(Failure(row, "m-1", "refused", "no_prompt", "a | <b>") for row in range(2, 300))

    @flow(retries=0)
    async def making() -> None:
        run = Made()
        async with watching(run):
            run.made = 3
        await show_end(End(summary.outcome, "3 made, 1 refused", summary, failures))

    async def artifacts() -> dict[str, object]:
        state = await making(return_state=True)
        of_run = {"flow_run_id": {"any_": [state.state_details.flow_run_id]}}
        async with get_client() as client:
            found = await client.read_artifacts(artifact_filter=ArtifactFilter.model_validate(of_run))
        return {str(one.key).rpartition("-")[2]: one.data for one in found}

    shown = asyncio.run(artifacts())
    assert shown["progress"] == 75.0
    text = str(shown["summary"])
    assert r"| 2 | m-1 | refused | no\_prompt | a \| \<b\> |" in text
    assert "The first 200 of 298 rows" in text


def test_outside_a_flow_run_there_is_no_page() -> None:
    async def making() -> None:
        async with watching(Made()):
            pass

    asyncio.run(making())
