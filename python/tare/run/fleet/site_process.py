"""The process of one site: a Dask worker whose tasks run in the main thread, where signals can break them off.

It ends when its scheduler or the tare that started it has gone, after taking down what it had under way.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.run.between.reaching import reached_site
from tare.run.fleet.block_task import Machines, Post
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine, local_machine
from tare.run.machine import Machine
from tare.sites.file import SiteSpec
from tare.sites.layout import default_layout

_FREE_S = 180.0
"""How long an earlier process of the site may take to clear up: an agent's lease is two minutes."""
_POLL_S = 0.2


def resource_of(site: str) -> str:
    """The Dask resource that a block on the site takes; its worker has one of it."""
    return f"tare-site:{site}"


@dataclass(frozen=True)
class Orders:
    """What the process of a site is to do. `security`: of the scheduler's TLS, as Dask's `Security` takes it."""

    scheduler: str
    site: Mapping[str, Any]
    security: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> SiteSpec:
        """The site."""
        return SiteSpec.model_validate(self.site)


class MainThreadPoolExecutor(Executor):
    """Runs calls one after the other in the thread that calls `serve`.

    Dask gives a task its context only in executors with `ThreadPoolExecutor` in the name of their type.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have it called later."""
        future: Future[Any] = Future()
        self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as the base class has it
        """Let `serve` return after the calls that are there."""
        self._calls.put(None)

    def serve(self, interrupts: Interrupts) -> None:
        """Until `shutdown`. Raises `Interrupted`."""
        while True:
            with interrupts.allowed():
                call = self._next()
            if call is None:
                return
            future, function = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except Interrupted as interrupted:
                future.set_exception(EnvironmentLacks(f"the site's process was ended by {interrupted}"))
                raise
            except BaseException as error:  # noqa: BLE001 - the caller's to judge
                future.set_exception(error)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """In short waits: a signal is handled between them."""
        while True:
            try:
                return self._calls.get(timeout=_POLL_S)
            except queue.Empty:
                continue


@contextmanager
def reached(spec: SiteSpec, plan: Plan, store: Path, interrupts: Interrupts) -> Iterator[Machine]:
    """The site of a file of sites, connected and found fit for the plan."""
    with local_engine() as engine, reached_site(spec, store) as found:
        found.refuse(plan)
        yield found.machine(plan, local_machine(plan, engine, interrupts), interrupts)


def serve(orders: Orders, machines: Machines = reached) -> None:
    """Make blocks on the site until the scheduler has gone or a signal comes. Raises `EnvironmentLacks`."""
    _quiet()
    interrupts = Interrupts()
    calls = MainThreadPoolExecutor()
    post = Post(orders.spec, machines, interrupts)
    with interrupts.installed(), _alone(orders.spec), TemporaryDirectory(prefix="tare-site-") as scratch:
        trouble: list[BaseException] = []
        life = threading.Thread(target=_live, args=(orders, post, calls, scratch, trouble), daemon=True)
        life.start()
        try:
            calls.serve(interrupts)
        except Interrupted:
            pass
        finally:
            post.leave()
        if trouble:
            what = f"the scheduler at {orders.scheduler} cannot be reached: {trouble[0]}"
            raise EnvironmentLacks(what, hint="is it running, and is its address the one that it printed?")


def _live(
    orders: Orders, post: Post, calls: MainThreadPoolExecutor, scratch: str, trouble: list[BaseException]
) -> None:
    """The worker's own thread and event loop."""
    from distributed import Worker
    from distributed.security import Security

    async def live() -> None:
        worker = await Worker(
            orders.scheduler,
            nthreads=1,
            name=orders.spec.name,
            resources={resource_of(orders.spec.name): 1},
            executor={"default": calls},
            extensions={"site": lambda _: post},  # type: ignore[dict-item] # called with the worker, as a type is
            security=Security(**orders.security) if orders.security else None,
            local_directory=scratch,
            memory_limit=0,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            death_timeout=30,
        )
        await worker.finished()

    try:
        asyncio.run(live())
    except Exception as error:  # noqa: BLE001 - told by the main thread
        trouble.append(error)
    finally:
        calls.shutdown()


@contextmanager
def _alone(spec: SiteSpec) -> Iterator[None]:
    """One process a site on this machine: an earlier one may still be clearing up."""
    digest = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:12]
    path = default_layout().home / "fleet" / f"{spec.name}-{digest}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + _FREE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    what = f"the site {spec.name} is in use by another tare on this machine"
                    raise EnvironmentLacks(what, hint="wait for it to end") from error
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _quiet() -> None:
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def end_with_parent() -> None:
    """Read standard input until it ends, as it does when the tare that started this one has gone; then end too."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main(machines: Machines = reached) -> int:
    """The process as tare starts it: one line of JSON on standard input says what to do."""
    orders = Orders(**json.loads(sys.stdin.buffer.readline()))
    end_with_parent()
    try:
        serve(orders, machines)
    except EnvironmentLacks as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
