"""Work on many items in several processes, whose results come in the order of the items."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from tare.errors import EnvironmentLacks

T = TypeVar("T")
R = TypeVar("R")
_CHUNK = 25
_FEW = 4 * _CHUNK
"""Items that this process does sooner than others begin to."""
_AHEAD = 8
"""Chunks for each process that wait or are done: results of all items need not fit into memory."""


def in_order(
    work: Callable[[T], R], items: Iterable[T], here: Callable[[T], bool] = lambda _: False
) -> Iterator[tuple[T, R]]:
    """Yield each item with what `work` makes of it. Raises what `work` raises, when the item's turn comes.

    `here`: whether an item must be worked on by this process, before the next item is taken.
    """
    processes = len(os.sched_getaffinity(0))
    waiting: deque[tuple[list[T], Future[list[R]]]] = deque()
    pool: ProcessPoolExecutor | None = None
    chunk, seen = list[T](), 0
    try:
        for item in items:
            seen += 1
            alone = processes == 1 or seen <= _FEW or here(item)
            if chunk and (alone or len(chunk) == _CHUNK):
                pool = pool or _pool(processes)
                waiting.append((chunk, pool.submit(_all, work, chunk)))
                chunk = []
            if alone:
                waiting.append(([item], _now(work, item)))
            else:
                chunk.append(item)
            while len(waiting) > (_AHEAD * processes if pool else 0):
                yield from _done(*waiting.popleft())
        waiting.extend(([item], _now(work, item)) for item in chunk)
        while waiting:
            yield from _done(*waiting.popleft())
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor:
    forks = multiprocessing.get_context("fork")  # another start would import everything again
    return ProcessPoolExecutor(processes, forks, _begin)


def _begin() -> None:
    """Leave interrupts to the parent, and what it has to no garbage collection: each would go through all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()


def _all(work: Callable[[T], R], items: list[T]) -> list[R]:
    return [work(item) for item in items]


def _now(work: Callable[[T], R], item: T) -> Future[list[R]]:
    done: Future[list[R]] = Future()
    try:
        done.set_result([work(item)])
    except Exception as error:  # noqa: BLE001 - raised when its turn comes
        done.set_exception(error)
    return done


def _done(items: list[T], results: Future[list[R]]) -> Iterator[tuple[T, R]]:
    try:
        made = results.result()
    except BrokenProcessPool as error:
        hint = "is memory short? `taskset -c 0 tare import ...` works in one process"
        raise EnvironmentLacks("a process that reads files was killed", hint=hint) from error
    yield from zip(items, made, strict=True)
