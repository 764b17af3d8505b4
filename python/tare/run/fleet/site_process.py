"""The process of one site: a Dask worker whose tasks run in the main thread, where signals can interrupt them.

It ends when its scheduler or the tare that started it disappears, after tearing down its block.
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.run.between.reaching import reached_site
from tare.run.fleet.block_task import ConnectedMaker, Maker
from tare.run.fleet.fork_server import is_fork_server, tend
from tare.run.fleet.outbox import Outbox
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import local_engine, local_machine
from tare.run.machine import Machine
from tare.sites.file import SiteSpec
from tare.sites.layout import default_layout, make_directory
from tare.sites.scratch import scratch_directory
from tare.sites.sqlite_ledger import SqliteLedger

if TYPE_CHECKING:
    from distributed import Worker

_FREE_S = 180.0
"""How long an earlier process of the site may take to clear up: an agent's lease is two minutes."""
_POLL_S = 0.2
_UNWANTED_S = 1.0
_END_S = 30.0


def resource_of(site: str) -> str:
    """Name of the Dask resource that a block on the site takes; its worker has one unit."""
    return f"tare-site:{site}"


@dataclass(frozen=True)
class Orders:
    """Orders for the process of a site. `security`: of the scheduler's TLS, as for Dask's `Security`.

    `name`: of the worker at the scheduler, if it differs from the site's.
    """

    scheduler: str
    site: Mapping[str, Any]
    security: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None

    @property
    def spec(self) -> SiteSpec:
        """The site."""
        return SiteSpec.model_validate(self.site)


BREAK_OFF = signal.SIGUSR1
"""Interrupts a block that nobody waits for any more; the process continues."""


class MainThreadPoolExecutor(Executor):
    """Runs calls one after the other in the thread that calls `serve`.

    Dask gives a task its context only in executors with `ThreadPoolExecutor` in the name of their type.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._serving, self._lock = False, threading.Lock()
        self._over = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call."""
        future: Future[Any] = Future()
        self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as the base class has it
        """Let `serve` return after the queued calls."""
        self._over.set()  # the signal of `break_off` may come just after the queue has given `None`
        self._calls.put(None)

    def break_off(self) -> None:
        """Interrupt the call in progress. Called in any thread."""
        with self._lock:  # once `serve` is over, nobody would handle the signal
            if self._serving:
                os.kill(os.getpid(), BREAK_OFF)

    def serve(self, interrupts: Interrupts) -> None:
        """Run calls until `shutdown`. Raises `Interrupted`, except for `BREAK_OFF`, which ends one call only."""
        with self._lock:
            self._serving = True
        try:
            self._serve(interrupts)
        finally:
            with self._lock:
                self._serving = False

    def _serve(self, interrupts: Interrupts) -> None:
        while True:
            try:
                with interrupts.allowed():
                    call = self._next()
            except Interrupted as interrupted:
                _raise_unless_break_off(interrupted, interrupts)  # the block was over already
                continue
            if call is None:
                return
            future, function = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except Interrupted as interrupted:
                future.set_exception(EnvironmentLacks(f"the site's process was ended by {interrupted}"))
                _raise_unless_break_off(interrupted, interrupts)
            except BaseException as error:  # noqa: BLE001 - passed to the caller
                future.set_exception(error)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """Wait for the next call in short steps: signals are handled between them."""
        while True:
            try:
                return self._calls.get(timeout=_POLL_S)
            except queue.Empty:
                if self._over.is_set():
                    return None


def _raise_unless_break_off(interrupted: Interrupted, interrupts: Interrupts) -> None:
    if interrupted.number != BREAK_OFF:
        raise interrupted
    interrupts.forget()


@contextmanager
def reached(spec: SiteSpec, plan: Plan, store: Path, interrupts: Interrupts) -> Iterator[Machine]:
    """Connect to a site of a sites file and check it against the plan."""
    with local_engine() as engine, reached_site(spec, store) as found:
        found.refuse(plan)
        yield found.machine(plan, local_machine(plan, engine, interrupts), interrupts)


Makers = Callable[[SiteSpec, Interrupts], Maker]
"""Site and signals → what makes blocks there."""


def by_ssh(spec: SiteSpec, interrupts: Interrupts) -> Maker:
    """Return the maker of blocks for a site reached by SSH."""
    return ConnectedMaker(spec, reached, interrupts)


def serve(orders: Orders, makers: Makers = by_ssh) -> None:
    """Make blocks on the site until the scheduler disappears or a signal comes. Raises `EnvironmentLacks`."""
    quiet()
    interrupts = Interrupts()
    calls = MainThreadPoolExecutor()
    maker = makers(orders.spec, interrupts)
    outbox = Outbox(_home_of(orders.spec, "outbox"))
    with (
        interrupts.installed(also=(BREAK_OFF,)),
        _site_lock(orders.spec),
        scratch_directory(SqliteLedger(default_layout().ledger), "site") as scratch,
    ):
        outbox.clear()
        trouble: list[BaseException] = []
        extensions = {"site": maker, "outbox": partial(outbox.of, interrupts=interrupts)}
        held = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # closed by the thread
        life = threading.Thread(
            target=_run_worker, args=(orders, extensions, outbox.calls(), calls, held, trouble), daemon=True
        )
        life.start()
        try:
            calls.serve(interrupts)
            life.join(_END_S)  # its event loop is closing: Python aborts if it still runs at exit
        except Interrupted:
            pass
        finally:
            maker.leave()
        if trouble and isinstance(trouble[0], FileNotFoundError):
            what = f"the worker of the site {orders.spec.name} cannot start: {trouble[0]}"
            raise EnvironmentLacks(what, hint=f"were its files removed, such as {scratch}? Start it again")
        if trouble:
            what = f"the scheduler at {orders.scheduler} cannot be reached: {trouble[0]}"
            raise EnvironmentLacks(what, hint="is it running, and is its address the one that it printed?")


def _run_worker(  # noqa: PLR0913, PLR0917 - all that a worker is made of
    orders: Orders,
    extensions: Mapping[str, object],
    answers: Mapping[str, Callable[..., Any]],
    calls: MainThreadPoolExecutor,
    scratch: int,
    trouble: list[BaseException],
) -> None:
    """Run the Dask worker in its own thread and event loop. `scratch`: open directory for its temporary files.

    Dask makes a directory that lacks, with its parents. The path by the descriptor cannot be made again once the
    main thread has removed the directory, so nothing is left that no ledger names.
    """
    from distributed import Worker
    from distributed.security import Security

    async def live() -> None:
        worker = await Worker(
            orders.scheduler,
            nthreads=1,
            name=orders.name or orders.spec.name,
            resources={resource_of(orders.spec.name): 1},
            executor={"default": calls},
            extensions={name: _given(each) for name, each in extensions.items()},
            security=Security(**orders.security) if orders.security else None,
            local_directory=f"/proc/self/fd/{scratch}",
            memory_limit=0,
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            death_timeout=30,
        )
        worker.handlers.update(answers)
        watch = asyncio.create_task(_break_off_unwanted(worker, calls))
        await worker.finished()
        watch.cancel()

    try:
        asyncio.run(live())
    except Exception as error:  # noqa: BLE001 - the main thread reports it
        trouble.append(error)
    finally:
        calls.break_off()  # without the scheduler, nobody waits for the block
        calls.shutdown()
        os.close(scratch)


def _given(extension: object) -> Any:
    """Wrap an extension for Dask, which calls it with the worker as if it were a type."""
    return lambda _: extension


async def _break_off_unwanted(worker: Worker, calls: MainThreadPoolExecutor) -> None:
    """Interrupt a block that its tare gave up, or whose tare has disappeared."""
    announced: frozenset[object] = frozenset()
    while True:
        await asyncio.sleep(_UNWANTED_S)
        state = worker.state.tasks.values()
        unwanted = frozenset[object](
            task.key for task in state if task.state == "cancelled" and task.previous == "executing"
        )
        if unwanted - announced:
            calls.break_off()
        announced = unwanted


def _home_of(spec: SiteSpec, what: str) -> Path:
    """Path of what the processes of a site keep on this machine."""
    digest = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:12]
    return default_layout().home / "fleet" / f"{spec.name}-{digest}.{what}"


@contextmanager
def _site_lock(spec: SiteSpec) -> Iterator[None]:
    """Hold the site's lock on this machine: an earlier process may still be clearing up."""
    path = _home_of(spec, "lock")
    make_directory(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + _FREE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > end:
                    what = f"another tare on this machine is using the site {spec.name}"
                    raise EnvironmentLacks(what, hint="wait for it to end") from error
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def quiet() -> None:
    """Silence Dask's logs, which are no messages of tare, and its self-monitoring 50 times a second."""
    import distributed  # noqa: F401 - it sets levels of its own when it is first imported
    from dask import config

    config.set(
        {
            "distributed.worker.profile.enabled": False,
            "distributed.scheduler.work-stealing": False,
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
        }
    )
    for name in ("distributed", "distributed.client", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _prepare() -> None:
    """Import what every site needs, so that each fork shares it."""
    quiet()
    import distributed.protocol.serialize
    import distributed.worker  # noqa: F401 - all the same for every site


def end_with_parent() -> None:
    """End this process when standard input ends, because the tare that started it has disappeared."""

    def watch() -> None:
        while os.read(0, 1):  # `sys.stdin` has a lock, which a thread must not hold when Python ends
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def main(makers: Makers = by_ssh) -> int:
    """Run the process as tare starts it: a line of JSON on standard input gives its orders.

    If standard input is a socket, the process is a fork server of site processes.
    """
    if is_fork_server() and not tend(_prepare):
        return 0
    orders = Orders(**json.loads(sys.stdin.buffer.readline()))
    end_with_parent()
    try:
        serve(orders, makers)
    except EnvironmentLacks as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
