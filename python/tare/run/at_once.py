"""Concurrent calls to several hosts, so that all take one round trip together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run the calls concurrently; return their results in order, or raise the error of the first one that raised.

    Whatever happens, an interruption included, no call is still running afterwards, so that teardown may begin.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="at once") as pool:
        begun = [pool.submit(call) for call in calls]
    return [each.result() for each in begun]
