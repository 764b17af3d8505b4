"""The passwords and keys of real servers are in nothing that a run leaves, shows or tells the engine."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from types import SimpleNamespace
from typing import Any

import docker
import pytest
from docker.api.client import APIClient
from tests.integration.runs.command import tare
from tests.integration.runs.failing import signalled

from tare.images import Image
from tare.images.prepare import prepare
from tare.plan.expand import expand
from tare.record.run_record import Phase, RunRecord
from tare.run.attempt import raw_files
from tare.run.attempt.certificates import new_certificate
from tare.run.attempt.context import RunContext
from tare.run.attempt.server import Server
from tare.run.events import Event, PhaseStarted
from tare.run.execute import Destination, execute
from tare.run.interrupts import Interrupts
from tare.run.local import local_engine, local_machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.engine import connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import resume_store
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.workloads import Target

pytestmark = [pytest.mark.engine, pytest.mark.slow]

STUDY = """\
format: 1
name: secret
question: What is left of a password?
sut:
  image: {image}
  database: {database}
  deployment: bare
  settings: {settings}
client: {{image: {client}, deployment: bare}}
workload:
  name: {work}
  measure_s: {measure_s}
protocol: {{name: fixed, blocks: 1, retries: 0, control: false}}
factors:
  arm:
    sets: [{sets}sut.deployment, client.deployment, client.network, sut.network]
    levels:
      bare: {{}}
      container:
        {tls}
        sut.deployment: container
        sut.network: bridge
        client.deployment: container
        client.network: bridge
baseline: bare
"""
MYSQL = "{innodb_buffer_pool_size: 32M}"
MARIADB = "{innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}"
POSTGRESQL = "{shared_buffers: 32MB}"
SYSBENCH = "sysbench\n  script: oltp_read_only\n  tables: 1\n  table_size: 1000\n  threads: 2"
OLTP = "tare-load\n  connections: 2\n  sysbench: {script: oltp_read_only, tables: 1, table_size: 1000}"
CORE = "tare-load\n  connections: 2\n  ycsb: {core_workload: a, records: 200, properties: {fieldcount: 2}}"
YCSB = "ycsb\n  core_workload: a\n  records: 200\n  threads: 2"
CASES = {
    "mariadb, sysbench": ("mariadb", "mariadb", MARIADB, "sysbench", SYSBENCH),
    "mariadb, tare-load": ("mariadb", "mariadb", MARIADB, "tare-load", OLTP),
    "mariadb, ycsb": ("mariadb", "mariadb", MARIADB, "ycsb", YCSB),
    "mysql, tare-load": ("mysql", "mysql", MYSQL, "tare-load", OLTP),
    "postgresql, sysbench": ("postgresql-15", "postgresql", POSTGRESQL, "sysbench", SYSBENCH),
    "postgresql, tare-load": ("postgresql-15", "postgresql", POSTGRESQL, "tare-load", OLTP),
    "redis, tare-load": ("redis-7", "redis", "{appendonly: yes}", "tare-load", CORE),
    "redis, ycsb": ("redis-7", "redis", "{appendonly: yes}", "ycsb", YCSB),
    "valkey, tare-load": ("valkey-8", "valkey", "{appendonly: yes}", "tare-load", CORE),
    "cassandra, tare-load": ("cassandra-3.11", "cassandra", "{heap: 256M}", "tare-load", CORE),
    "cassandra 5, tare-load": ("cassandra-5.0", "cassandra-5", "{heap: 256M}", "tare-load", CORE),
    "ferretdb, tare-load": ("ferretdb-2", "ferretdb", POSTGRESQL, "tare-load", CORE),
}
"""Each server that takes a password or a certificate, under each generator that logs in to it."""
WITH_TLS = frozenset({"mariadb", "postgresql", "redis", "cassandra", "cassandra-5", "ferretdb"})
"""Of these one arm is encrypted by tare-load, and its key is a secret."""
KILLED_INTO_S = 1.5
POLL_S = 0.2
ENGINE_S = ("/var/lib/docker/containers", "/var/lib/docker/volumes", "/run/docker", "/run/tare", "/run/tare-task")
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/var/log")
LONGEST_FILE = 512 << 20


@dataclass
class Watch:
    """The secrets that were made, and who showed one."""

    made: list[bytes] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.time)

    def note(self, secret: str) -> None:
        """As it is, and as it may be encoded."""
        plain = secret.encode()
        self.made += [plain, plain.upper(), base64.b64encode(plain).rstrip(b"="), plain.hex().encode()]

    def holds(self, content: bytes) -> bool:
        return any(each in content for each in tuple(self.made))

    def look(self, where: str, content: bytes) -> None:
        if self.holds(content):
            self.shown.add(where)

    def look_at_processes(self) -> None:
        for path in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                with contextlib.suppress(OSError):  # it has ended
                    comm = (path / "comm").read_text(errors="replace").strip()
                    self.look(f"{name} of {comm}", (path / name).read_bytes())

    def holding(self, place: Path, since: float = 0.0) -> Iterator[Path]:
        """Files below a place, changed since then, that have one in their name or in themselves."""
        for directory, below, names in os.walk(place):
            below[:] = [name for name in below if not Path(directory, name).is_mount()]
            for path in (Path(directory, name) for name in (*names, *below)):
                try:
                    about = path.lstat()
                    known = path.is_symlink() or not path.is_file() or about.st_size > LONGEST_FILE
                    content = b"" if known or about.st_ctime < since else path.read_bytes()
                except OSError:
                    continue
                if self.holds(content) or self.holds(os.fsencode(path)):
                    yield path

    def holding_new(self, place: Path) -> Iterator[Path]:
        """Likewise in what was made or changed directly below a place since the first secret."""
        for entry in place.iterdir():
            try:
                about = entry.lstat()
                if about.st_ctime < self.began or entry.name.startswith("pytest-of-"):
                    continue
                content = entry.read_bytes() if S_ISREG(about.st_mode) and about.st_size <= LONGEST_FILE else b""
            except OSError:  # another program has removed it
                continue
            if self.holds(os.fsencode(entry)) or self.holds(content):
                yield entry
            yield from self.holding(entry, self.began)


_WATCH: list[Watch] = []


def _started(event: str, arguments: tuple[Any, ...]) -> None:
    """Programs that tare itself starts, however short they live."""
    if _WATCH and event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        _WATCH[-1].look(f"started by tare: {arguments[0]}", repr(arguments).encode())


sys.addaudithook(_started)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Every secret from here on, what tare starts, what it asks of the engine, and what any process shows."""
    watch, over = Watch(), threading.Event()

    def password(size: int) -> str:
        made = secrets.token_hex(size)
        watch.note(made)
        return made

    certify = new_certificate

    def certificate(*words: Any, **more: Any) -> Any:
        made = certify(*words, **more)
        for line in made.key.splitlines():
            if len(line) > 30 and not line.startswith("-"):
                watch.note(line)
        return made

    post = APIClient.post

    def posted(client: APIClient, url: str, **more: Any) -> Any:
        watch.look(f"asked of the engine: {url}", repr(more).encode())
        return post(client, url, **more)

    def poll() -> None:
        while not over.wait(POLL_S):
            watch.look_at_processes()

    monkeypatch.setattr(raw_files, "secrets", SimpleNamespace(token_hex=password))
    monkeypatch.setattr(raw_files, "new_certificate", certificate)
    monkeypatch.setattr(APIClient, "post", posted)
    poller = threading.Thread(target=poll)
    _WATCH.append(watch)
    poller.start()
    try:
        yield watch
    finally:
        over.set()
        poller.join()
        _WATCH.clear()


def open_to_others(home: Path, path: Path) -> bool:
    """Whether a user who may enter `home` could read a file below it; one that is gone by now could not be read."""
    way = [each for each in path.parents if each.is_relative_to(home) and each != home]
    try:
        return bool(path.stat().st_mode & 0o004) and all(each.stat().st_mode & 0o001 for each in way)
    except FileNotFoundError:
        return False


def study(case: str, measure_s: int) -> str:
    image, database, settings, client, work = CASES[case]
    encrypted = database in WITH_TLS and client == "tare-load"
    return STUDY.format(
        image=image,
        database=database,
        settings=settings,
        client=client,
        work=work,
        measure_s=measure_s,
        sets="sut.tls, " if encrypted else "",
        tls="sut.tls: true" if encrypted else "",
    )


@contextmanager
def machine_of(plan: Any, home: Path) -> Iterator[Any]:
    """This machine, with a home of its own and images of the tests' cache."""
    cache = default_layout()
    with local_engine() as engine:
        ledger = SqliteLedger(cache.ledger)

        def ready(reference: str) -> Image:
            return prepare(reference, host=LocalHost(), layout=cache, ledger=ledger, engine=engine.client)

        machine = local_machine(plan, engine, Interrupts(), Layout(home))
        yield replace(machine, own=replace(machine.own, prepare=ready), references=References())


def run(text: str, tmp_path: Path, watch: Watch, harm: Callable[[], None] | None) -> Sequence[RunRecord]:
    """Commits what came of it; `harm` is done in each measure phase, and files are looked at there."""
    plan, home, kept, timers = expand(loads(text, installed())), tmp_path / "home", list[RunRecord](), []

    def observe(event: Event) -> None:
        if not isinstance(event, PhaseStarted) or event.phase is not Phase.MEASURE:
            return
        for path in watch.holding(home / "work"):
            if open_to_others(home, path):
                watch.shown.add(f"to be read by all users while it runs: {path.relative_to(home)}")
        if harm is not None:
            timers.append(threading.Timer(KILLED_INTO_S, harm))
            timers[-1].start()

    with machine_of(plan, home) as machine, resume_store(tmp_path / "store", plan) as writer:
        destination = Destination(str(tmp_path / "store"), StudyState(), writer.staging)
        for records in execute(plan, machine, destination, observe):
            for record in records:
                writer.commit(record)
                kept.append(record)
    for timer in timers:
        timer.join()
    return kept


def assert_nothing_is_left(watch: Watch, tmp_path: Path) -> None:
    """Nowhere in the store, the home, what the engine keeps, or where all programs write."""
    assert watch.made
    assert watch.shown == set()
    assert [str(path) for path in watch.holding(tmp_path)] == []
    assert [str(path) for place in ENGINE_S for path in watch.holding(Path(place), watch.began)] == []
    assert [str(path) for place in SHARED for path in watch.holding_new(Path(place))] == []


@pytest.mark.parametrize("case", CASES)
def test_a_good_run_leaves_and_shows_no_secret(case: str, watch: Watch, tmp_path: Path) -> None:
    records = run(study(case, 2), tmp_path, watch, None)
    assert [record.outcome.reason for record in records if not record.outcome.ok] == []
    assert len(records) == 2
    for form in ("html", "md", "csv", "json", "terminal"):
        (tmp_path / f"report.{form}").write_text(tare(tmp_path, "report", "store", "--format", form))
    assert_nothing_is_left(watch, tmp_path)


@pytest.mark.parametrize("case", ["mariadb, sysbench", "postgresql, tare-load", "redis, tare-load"])
def test_a_run_whose_server_is_killed_leaves_and_shows_no_secret(
    case: str, watch: Watch, servers: list[Server], tmp_path: Path
) -> None:
    records = run(study(case, 20), tmp_path, watch, signalled(servers, signal.SIGKILL))
    assert [record.outcome.ok for record in records] == [False, False]
    assert_nothing_is_left(watch, tmp_path)


@pytest.mark.parametrize("case", ["mariadb, sysbench", "postgresql, tare-load", "redis, tare-load"])
def test_a_run_whose_log_in_is_refused_leaves_and_shows_no_secret(
    case: str, watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generators then tell what they tried, and servers log who came."""
    target = RunContext.target

    def wrong(context: RunContext, *words: Any, **more: Any) -> Target:
        right = target(context, *words, **more)
        assert isinstance(right, Target)
        return replace(right, secrets=replace(right.secrets, password=raw_files.new_secrets().password))

    monkeypatch.setattr(RunContext, "target", wrong)
    records = run(study(case, 2), tmp_path, watch, None)
    assert records
    assert not [record.run_id for record in records if record.outcome.ok]
    assert_nothing_is_left(watch, tmp_path)


def test_the_search_finds_what_is_left_and_shown(watch: Watch, tmp_path: Path) -> None:
    password = raw_files.new_secrets(tls=True).password
    (tmp_path / "log").write_text(f"auth {password}\n")
    (tmp_path / "encoded").write_bytes(base64.b64encode(password.encode()))
    (tmp_path / password).mkdir()
    assert {path.name for path in watch.holding(tmp_path)} == {"log", "encoded", password}
    assert open_to_others(tmp_path, tmp_path / "log")
    subprocess.run(["true", password], check=True, timeout=60)
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "WORD": password}) as shows_it:
        try:
            deadline = time.monotonic() + 60
            while "environ of sleep" not in watch.shown:
                assert time.monotonic() < deadline, watch.shown
                time.sleep(0.05)
        finally:
            shows_it.kill()
    client = connect(timeout_s=10)
    with contextlib.closing(client), contextlib.suppress(docker.errors.APIError):
        client.api.create_container("no-such-image", environment={"WORD": password})
    kinds = {where.split(" ", 1)[0] for where in watch.shown}
    assert kinds >= {"started", "environ", "asked"}
    assert kinds <= {"started", "environ", "asked", "cmdline"}  # whether `true` is seen while it lives is chance
