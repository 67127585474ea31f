"""Which lines of the resend and poll decisions ran, by a tracer around each decision."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType
from typing import Any

import pytest

from patternmill.service import polling, resend, studio_api


def all_lines() -> set[int]:
    """Those of the functions that decide."""
    codes = [one.__code__ for one in vars(resend).values() if isinstance(one, FunctionType)]
    ours = [code for code in codes if code.co_filename == resend.__file__]
    return {line for code in ours for *_, line in code.co_lines() if line and line > code.co_firstlineno}


@contextmanager
def watched(ran: set[int]) -> Iterator[None]:
    """Collect the lines that run."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        ran.add(frame.f_lineno)
        return trace

    def watch(decide: Any) -> Any:
        def decided(*args: Any, **named: Any) -> Any:
            sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename == resend.__file__ else None)
            try:
                return decide(*args, **named)
            finally:
                sys.settrace(None)

        return decided

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(studio_api, "decide_create", watch(resend.decide_create))
        patched.setattr(polling, "decide_poll", watch(resend.decide_poll))
        yield
