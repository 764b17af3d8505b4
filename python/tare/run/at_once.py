"""Calls to several hosts at once: what takes a round trip to each takes one in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What each returns, in their order; raises what the first of them raised.

    Whatever happens, an interruption too, nothing goes on any more when this is over: teardown may begin.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="at once") as pool:
        begun = [pool.submit(call) for call in calls]
    return [each.result() for each in begun]
