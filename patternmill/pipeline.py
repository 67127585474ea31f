"""A run from its sheet to its results, step by step: what flows and commands carry out."""

import asyncio

from patternmill.agreement import agree, plan_lines, plan_run
from patternmill.ending import finish
from patternmill.errors import Refusal
from patternmill.fanout import UNSHOWN, Maker
from patternmill.halt import stops
from patternmill.logs import tell
from patternmill.request import End, Request, Summary, end_of
from patternmill.run import Run, begin, check_sheet, make_rows, open_run
from patternmill.states import Outcome


async def carry_out(request: Request, maker: Maker = UNSHOWN) -> End:
    """Carry out a request from its sheet to its results. An expected refusal is an end too."""
    about = {"catalog": request.catalog or "", "environment": request.environment or ""}
    try:
        async with open_run(request) as run:
            about["environment"] = run.settings.service
            checked = await maker.step(check_sheet)(run)
            about["catalog"] = run.catalog
            await maker.named(run)
            plan = plan_run(run, checked)
            if request.plan_only:
                return _planned(run, "\n".join(plan_lines(run, plan)))
            if agreed := await agree(run, plan, maker):
                run.request = request.model_copy(update=agreed.model_dump(exclude_none=True))
                plan = plan_run(run, checked)
            await begin(run, checked, plan)
            await maker.begun(run, "\n".join(plan_lines(run, plan)))
            await make_rows(run, plan, maker)
            end: End = await maker.step(finish)(run, checked, plan)
    except Refusal as refusal:
        end = end_of(refusal, **about)
    ended = end.summary.model_dump(mode="json")
    tell([{"event": "run_ended", "run_id": ended.pop("run"), **ended, "message": end.message}])
    # Whoever handled a signal before, or cancelled this run, has it now that the results are written.
    if (task := asyncio.current_task()) and task.cancelling() and not stops.is_stopped:
        raise asyncio.CancelledError
    stops.pass_on()
    return end


def _planned(run: Run, text: str) -> End:
    summary = Summary(outcome=Outcome.COMPLETED, catalog=run.catalog, environment=run.settings.service)
    return End(Outcome.COMPLETED, text or "There is nothing to do.", summary)
