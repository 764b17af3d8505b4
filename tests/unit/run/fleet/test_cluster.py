"""Blocks on the workers of a cluster that is there: with TLS, killed, given up, missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded
from tests.unit.run.fleet.schedulers import FAKES, ended, started_scheduler, started_worker, tls_files

from tare.errors import EnvironmentLacks, StudyError
from tare.plan.model import Plan
from tare.record.run_record import Phase, RunRecord
from tare.run.events import Event, FromSite, Notice, PhaseStarted
from tare.run.execute import Destination
from tare.run.fleet.cluster import ClusterWorkers, Scheduler
from tare.run.fleet.coordinator import execute_on
from tare.run.fleet.delivery import WorkerLink
from tare.run.fleet.dispatcher import Fleet
from tare.run.resume import StudyState
from tare.store import open_store, resume_store, verify

ROOT = Path(__file__).resolve().parents[4]
SITES = ("north", "south")
BOUND_BYTES = 64 << 20
"""Of some pieces at once, in several copies, and of what Dask loads for the first of them."""


class Cluster:
    """A scheduler with workers, and a study that is run by it."""

    def __init__(self, room: Path, processes: list[subprocess.Popen[bytes]], *, tls: bool = False) -> None:
        self.store, self._processes = room / "store", processes
        files = tls_files(room) if tls else ()
        names = ("--tls-ca-file", "--tls-cert", "--tls-key")
        options = [word for name, path in zip(names, files, strict=False) for word in (name, str(path))]
        self.process, address = started_scheduler(room, *options)
        processes.append(self.process)
        ca, cert, key = files or (None, None, None)
        self.scheduler = Scheduler(address, ca, cert, key, wait_s=60.0)
        self.events: list[Event] = []

    def worker(self, site: str, command: tuple[str, ...] = FAKES) -> subprocess.Popen[bytes]:
        process = started_worker(self.scheduler, site, command)
        self._processes.append(process)
        return process

    def run(
        self, plan: Plan, scheduler: Scheduler | None = None, between: Callable[[], None] = lambda: None
    ) -> Generator[RunRecord]:
        """Each record once it is committed. `between`: called before the first block, with workers there."""
        with resume_store(self.store, plan) as writer:
            made = writer.records()
            workers = ClusterWorkers(SITES, scheduler or self.scheduler)
            while not any(workers.ready(site) for site in SITES):
                workers.lost()
                time.sleep(0.1)
            between()
            fleet = Fleet(SITES, workers, self.store, patience_s=0.05)
            destination = Destination(writer.id, StudyState.from_records(made), writer.staging)
            for kept in execute_on(fleet, plan, destination, made, self.events.append):
                writer.commit_all(kept)
                yield from kept

    def check(self, plan: Plan) -> None:
        """Every run once, with its raw files, and nothing staged."""
        store = open_store(self.store)
        good = Counter(record.run_id for record in store.records() if record.outcome.ok)
        assert good == Counter(run.id for run in plan.runs)
        assert not verify(store)
        assert all(record.raw for record in store.records())
        assert list((self.store / "staging").iterdir()) == []


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAKE_SITES", str(tmp_path / "sites"))
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


@pytest.fixture
def clusters(room: Path) -> Iterator[Callable[..., Cluster]]:
    with ended([]) as processes:
        yield lambda **given: Cluster(room, processes, **given)


def test_workers_that_are_there_make_every_run_once_by_tls_and_their_raw_files_arrive(
    room: Path, clusters: Any, plans: Any
) -> None:
    cluster, plan = clusters(tls=True), plans(blocks=4, arms=("a", "b"))
    assert cluster.scheduler.address.startswith("tls://")
    for site in SITES:
        cluster.worker(site)
    assert {record.site for record in cluster.run(plan)} == set(SITES)
    cluster.check(plan)
    assert list((room / "home" / "fleet").glob("*.outbox/*")) == []


def test_a_killed_worker_loses_nothing_once_another_one_comes(clusters: Any, plans: Any) -> None:
    cluster, plan = clusters(), plans(blocks=2, arms=("a", "b", "c"), measure_s=0.3)
    workers = {site: cluster.worker(site) for site in SITES}
    for n, record in enumerate(cluster.run(plan)):
        if n == 0:
            workers[record.site or ""].kill()
            cluster.worker(record.site or "")
    cluster.check(plan)
    assert any("has disappeared" in event.text for event in cluster.events if isinstance(event, Notice)), (
        cluster.events
    )


def test_a_block_that_nobody_waits_for_any_more_is_broken_off_and_its_worker_serves_the_next(
    room: Path, clusters: Any, plans: Any
) -> None:
    cluster, plan = clusters(), plans(blocks=2, arms=("a",), measure_s=900.0)
    workers = [cluster.worker(site) for site in SITES]
    short = plans(blocks=2, arms=("a",))
    script = "import sys; from tests.unit.run.fleet import test_cluster as t; t.run_as_process(*sys.argv[1:])"
    tare = preloaded.Popen(
        [sys.executable, "-c", script, str(room / "long"), cluster.scheduler.address, plan.model_dump_json()],
        stdout=subprocess.PIPE,
    )
    assert tare.stdout is not None
    assert tare.stdout.readline() == b"measuring\n"
    tare.kill()
    tare.wait()
    tare.stdout.close()
    assert len(list(cluster.run(short))) == 2
    cluster.check(short)
    assert [worker.poll() for worker in workers] == [None, None]


def run_as_process(store: str, address: str, plan_json: str) -> None:
    """A tare to kill: tells when a run measures."""
    plan = Plan.model_validate_json(plan_json)

    def tell(event: Event) -> None:
        inner = event.event if isinstance(event, FromSite) else event
        if isinstance(inner, PhaseStarted) and inner.phase is Phase.MEASURE:
            os.write(1, b"measuring\n")

    with resume_store(Path(store), plan) as writer:
        fleet = Fleet(SITES, ClusterWorkers(SITES, Scheduler(address)), writer.path)
        for kept in execute_on(fleet, plan, Destination(writer.id, StudyState(), writer.staging), (), tell):
            writer.commit_all(kept)


def test_a_site_without_a_worker_is_set_aside_in_the_end(clusters: Any, plans: Any) -> None:
    cluster, plan = clusters(), plans(blocks=3)
    cluster.worker("north")
    impatient = Scheduler(cluster.scheduler.address, wait_s=6.0)
    assert {record.site for record in cluster.run(plan, impatient)} == {"north"}
    cluster.check(plan)
    notices = [event.text for event in cluster.events if isinstance(event, Notice)]
    assert any(text.startswith("south is set aside") and "tare worker" in text for text in notices), notices


def test_a_scheduler_that_goes_ends_the_study_with_a_way_on_and_nothing_is_lost(
    room: Path, clusters: Any, plans: Any
) -> None:
    cluster, plan = clusters(), plans(blocks=4, arms=("a", "b"), measure_s=0.5)
    workers = [cluster.worker(site) for site in SITES]
    going = cluster.run(plan)
    next(going)
    os.kill(cluster.process.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentLacks, match=r"the scheduler at tcp://.* has disappeared.*resume"):
        list(going)
    assert [worker.wait(60) for worker in workers] == [0, 0]
    kept = len(open_store(cluster.store).records())
    again = clusters()
    for site in SITES:
        again.worker(site)
    assert len(list(again.run(plan))) == len(plan.runs) - kept
    again.check(plan)


def test_a_scheduler_out_of_reach_is_one_sentence(room: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=r"tcp://127\.0\.0\.1:1 cannot be reached"):
        ClusterWorkers(SITES, Scheduler("tcp://127.0.0.1:1"))


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://a:1", "tcp://a", "tls://:1", "tcp://a:b"])
def test_an_address_of_no_scheduler_is_refused(address: str) -> None:
    with pytest.raises(StudyError, match="not an address of a scheduler"):
        Scheduler(address)


def test_the_files_of_tls_belong_together_and_are_there(tmp_path: Path) -> None:
    (tmp_path / "pem").touch()
    with pytest.raises(StudyError, match="must be given together"):
        Scheduler("tls://a:1", tmp_path / "pem")
    with pytest.raises(StudyError, match="tls:// address"):
        Scheduler("tcp://a:1", tmp_path / "pem", tmp_path / "pem", tmp_path / "pem")
    with pytest.raises(StudyError, match="there is no file"):
        Scheduler("tls://a:1", tmp_path / "pem", tmp_path / "pem", tmp_path / "none")


def most_memory(pid: int) -> int:
    """Bytes of a process's memory at its highest."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("direct", [True, False], ids=["straight", "through the scheduler"])
@pytest.mark.parametrize("size", [96 << 20, pytest.param(2 << 30, marks=pytest.mark.slow)], ids=["96 MB", "2 GB"])
def test_a_trace_goes_through_nobody_s_memory_as_a_whole(
    clusters: Any, plans: Any, monkeypatch: pytest.MonkeyPatch, size: int, direct: bool
) -> None:
    monkeypatch.setenv("BIG_BYTES", str(size))
    if not direct:
        monkeypatch.setattr(WorkerLink, "_reached", lambda _: False)
    cluster, plan = clusters(), plans(blocks=1)
    workers = [cluster.worker(site, ("-m", "tests.unit.run.fleet.big_site")) for site in SITES]
    pids = [os.getpid(), cluster.process.pid, *(worker.pid for worker in workers)]
    watched: dict[int, int] = {}
    going = cluster.run(plan, between=lambda: watched.update({pid: most_memory(pid) for pid in pids}))
    (record,) = list(going)
    assert (cluster.store / "raw" / f"{record.run_id}-1" / "trace").stat().st_size == size
    cluster.check(plan)
    grown = {pid: most_memory(pid) - before for pid, before in watched.items()}
    assert len(grown) == 4
    assert max(grown.values()) < BOUND_BYTES, grown
