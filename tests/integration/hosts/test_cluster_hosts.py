"""Clusters in containers with a host for each node, over SSH: paths of real nodes, and faults on one host of four.

Cassandra shows what nodes say to each other; faults are played on small servers of Python, which start in a moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from tests.integration.hosts.meanwhile import once
from tests.unit.record.parts import as_tree, received_by

from tare.errors import EnvironmentLacks
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import Phase, RunRecord
from tare.run.between.reaching import reached_site
from tare.run.events import Event
from tare.run.execute import Destination, execute
from tare.run.local import local_engine, local_machine
from tare.run.resume import StudyState
from tare.sites import Host, Output, Process
from tare.sites.connected import connected
from tare.sites.file import SiteSpec, load_sites
from tare.sites.ledger import noting
from tare.sites.process import alive
from tare.sites.ssh.link import Link
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.values import NetworkKind
from tare.workloads.registry import WORKLOADS
from tools import hosts
from tools.chaos.pair import left_on
from tools.lab import TestHost

# Images are built first, and brought to four hosts.
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(2400)]

RING = """\
format: 1
name: ring-of-hosts
question: Do three nodes and their client meet between four hosts?
sut:
  {image: cassandra-3.11, database: cassandra, deployment: bare, nodes: 3, settings: {heap: 256M, num_tokens: 16}}
client: {image: cassandra-3.11, deployment: bare, own_host: true}
workload:
  {name: cassandra-stress, command: mixed, records: 300, replication: 3, consistency: QUORUM, threads: 4,
   measure_s: 10, window_s: 1, heap: 256M}
monitors: {sar: {interval_s: 1}}
protocol: {name: fixed, blocks: 1, retries: 2, control: false}
factors: {deployment: {sets: sut.deployment, levels: [bare, container]}}
baseline: bare
"""
RECIPE = """\
format: 1
suite: bookworm
packages: [python3, bash, coreutils]
directories: [{path: /data, mode: "0755", empty: true}]
env: {PATH: "/usr/sbin:/usr/bin:/sbin:/bin"}
entrypoint: [python3]
data_dir: /data
"""
NODES = ["sut-1", "sut-2", "sut-3"]
_LEASE_S = 12.0
_LEFT_S = 60.0


@dataclass(frozen=True)
class Played:
    """All attempts at a study, in order, and where their raw files are."""

    records: list[RunRecord]
    staging: Path

    def raw(self, record: RunRecord) -> Path:
        return self.staging / f"{record.run_id}-{record.attempt}"


def small_plan(recipe: Path, deployment: str, *, nodes: int = 3, client: str = "bare") -> Plan:
    """Two runs of small servers, one a host, and a client on another."""
    parameters = WORKLOADS["fake"].parameters.model_validate({"measure_s": 6, "window_s": 1})
    settings = ArmSettings(
        sut=SutSpec(
            image=str(recipe), deployment=deployment, database="fake", nodes=nodes, network=NetworkKind.HOST
        ),
        client=ClientSpec(image=str(recipe), deployment=client, network=NetworkKind.HOST, own_host=True),
        workload_name="fake",
        workload=parameters.model_dump(mode="json"),
    )
    study = Study(
        name="small-cluster",
        scale="full",
        question="What becomes of a run when something happens on one of four hosts?",
        source=None,
        arms=tuple(Arm(name=name, levels={"arm": name}, settings=settings) for name in ("one", "two")),
        baseline="one",
        factors={"arm": ("one", "two")},
        protocol=FixedSpec(name="fixed", blocks=1, retries=1, control=False),
        published=(),
        deviations=(),
        text="format: 1\n",
    )
    return expand(study, 1)


def play(
    spec: SiteSpec,
    plan: Plan,
    staging: Path,
    meanwhile: Callable[[Event], None] = lambda _: None,
    records: list[RunRecord] | None = None,
) -> Played:
    """`records`: those made before; the new ones are added as they come."""
    staging.mkdir(exist_ok=True)
    records = [] if records is None else records
    with reached_site(spec) as reached, local_engine() as engine:
        reached.refuse(plan)
        here = local_machine(plan, engine)
        machine = reached.machine(plan, here, here.interrupts)
        destination = Destination(str(staging), StudyState.from_records(records), staging)
        for kept in execute(plan, machine, destination, meanwhile):
            records += kept
    return Played(records, staging)


def assert_nothing_left(there: tuple[TestHost, ...], *but: str) -> None:
    """Once agents that were parted from have had their time. `but`: what another's has in it."""
    deadline = time.monotonic() + _LEFT_S
    while left := [what for host in there for what in left_on(host) if _is_left(what, *but)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.5)
    for host in there:
        assert hosts.ssh(host, "docker", "ps", "-aq").stdout == ""


def _is_left(what: str, *but: str) -> bool:
    engine = ("dockerd", "containerd --config", "docker-proxy")
    return not any(word in what for word in but) and not any(f"process {name}" in what for name in engine)


@pytest.fixture(scope="module")
def site(engine_four: tuple[TestHost, ...]) -> SiteSpec:
    return load_sites(engine_four[0].lab.sites).chosen()


@pytest.fixture(scope="module")
def ring(site: SiteSpec, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Cassandra, bare and in containers."""
    return play(site, expand(loads(RING, installed())), tmp_path_factory.mktemp("ring") / "staging")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "python.yaml"
    path.write_text(RECIPE)
    return path


def good(ring: Played) -> list[RunRecord]:
    usable = [record for record in ring.records if record.outcome.ok]
    reasons = [record.outcome.reason for record in ring.records]
    assert [record.arm for record in usable] == ["bare", "container"] or len(usable) == 2, reasons
    return usable


def test_a_ring_over_three_hosts_is_measured_and_each_node_s_host_is_told(
    ring: Played, engine_four: tuple[TestHost, ...]
) -> None:
    *servers, client = engine_four
    for record in good(ring):
        nodes = dict(record.nodes or {})
        assert list(nodes) == NODES
        assert [node.on for node in nodes.values()] == [host.name for host in servers]
        assert all(node.effective for node in nodes.values())
        assert record.between is not None
        assert record.between.client == client.name
        for side in ("sut", "sut-2", "sut-3", "client"):
            assert received_by(record.between, side) > 100


def test_the_way_to_each_node_and_between_nodes_is_proved_on_both_hosts(
    ring: Played, engine_four: tuple[TestHost, ...]
) -> None:
    for record in good(ring):
        nodes = dict(record.nodes or {})
        for node, host in zip(nodes.values(), engine_four, strict=False):
            assert node.path is not None
            assert node.path.hop == "wire"
            assert node.path.wire is not None
            assert node.path.wire.server_host == host.name
        seen = {
            frozenset({one, other})
            for one, node in nodes.items()
            for other, path in (node.peers or {}).items()
            if path is not None and path.hop == "wire"
        }
        assert len(seen) == len(NODES)


def test_data_traces_and_samples_of_each_host_are_there_on_one_clock(
    ring: Played, engine_four: tuple[TestHost, ...]
) -> None:
    for record in good(ring):
        assert record.snapshot is not None
        assert sorted(record.snapshot.parts) == ["1", "2", "3"]
        raw, usage = ring.raw(record) / "monitors", as_tree(record.usage)
        for trace, node in (("probe", "sut-1"), ("sut-2-host", "sut-2"), ("sut-3-host", "sut-3")):
            names = set(pl.read_parquet(raw / trace / "trace" / "process.parquet")["name"])
            assert {name for name in names if name.startswith("sut")} == {node}
        for monitor, of in (("sar", ""), ("sar-sut-2", " of sut-2"), ("client-sar", " of client")):
            kept = pl.read_parquet(raw / f"{monitor}.parquet").filter("kept")
            assert f"all{of}" in set(kept["subject"])
            assert kept["from_ns"].to_numpy().min() / 1e9 >= usage["began_monotonic_s"]
    for host in engine_four[:3]:
        assert hosts.ssh(host, "ls", "/var/lib/tare/snapshots").stdout != ""
    assert_nothing_left(engine_four)


def engine_restarts(host: TestHost) -> Callable[[], None]:
    def restart() -> None:
        hosts.ssh(
            host, "sh", "-c", "'kill $(cat /run/docker.pid); while [ -e /run/docker.pid ]; do sleep 0.1; done'"
        )
        hosts.ssh(host, "sh", "-c", "'setsid dockerd >>/run/dockerd.log 2>&1 </dev/null &'")

    return restart


def must_answer(host: TestHost) -> None:
    deadline = time.monotonic() + 90
    while hosts.ssh(host, "docker", "version", check=False).returncode != 0:
        assert time.monotonic() < deadline, "the engine does not answer"
        time.sleep(0.2)


@pytest.fixture
def small(recipe: Path, site: SiteSpec, tmp_path: Path) -> Callable[..., Played]:
    def run(deployment: str, meanwhile: Callable[[Event], None] = lambda _: None) -> Played:
        return play(site, small_plan(recipe, deployment), tmp_path / "staging", meanwhile)

    return run


def one_failed(played: Played) -> str:
    """One attempt failed, its run was made again, and every run is there; why."""
    failed = [record for record in played.records if not record.outcome.ok]
    made = [record.run_id for record in played.records if record.outcome.ok]
    reasons = [record.outcome.reason for record in failed]
    assert len(made) == len(set(made)) == 2, reasons
    (only,) = failed
    assert only.run_id in made
    assert "\n" not in str(only.outcome.reason)
    return str(only.outcome.reason)


def test_an_engine_that_is_restarted_on_one_host_costs_one_attempt(
    small: Callable[..., Played], engine_four: tuple[TestHost, ...]
) -> None:
    restart = engine_restarts(engine_four[1])
    try:
        played = small("container", once(Phase.MEASURE, restart))
    finally:
        must_answer(engine_four[1])
    why = one_failed(played)
    assert "sut-2" in why or engine_four[1].name in why
    assert_nothing_left(engine_four)


def test_a_node_s_host_that_is_out_of_reach_for_a_while_costs_nothing_but_time(
    small: Callable[..., Played], engine_four: tuple[TestHost, ...]
) -> None:
    lost = engine_four[2]

    def cut() -> None:
        managed(lost, up=False)
        threading.Timer(3.0, lambda: managed(lost, up=True)).start()

    played = small("bare", once(Phase.MEASURE, cut))
    assert [record.outcome.reason for record in played.records] == [None, None]
    assert_nothing_left(engine_four)


def test_a_node_s_host_that_is_lost_ends_the_study_which_goes_on_when_it_is_back(
    recipe: Path,
    site: SiteSpec,
    engine_four: tuple[TestHost, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its agent ends what it started there; one attempt failed, and no retry was spent on a host that is away."""
    defaults = Link.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(Link.__init__, "__kwdefaults__", {**defaults, "lease_s": _LEASE_S})
    lost, records = engine_four[2], list[RunRecord]()
    plan, staging = small_plan(recipe, "bare"), tmp_path / "staging"
    try:
        with pytest.raises(EnvironmentLacks, match=f"a host is lost: {lost.name} was unreachable for 12 s"):
            play(site, plan, staging, once(Phase.MEASURE, lambda: managed(lost, up=False)), records)
    finally:
        managed(lost, up=True)
    assert lost.name in str(records[-1].outcome.reason)
    assert lost.name in one_failed(play(site, plan, staging, records=records))
    assert_nothing_left(engine_four)


def managed(host: TestHost, *, up: bool) -> None:
    host.lab.in_switch("ip", "link", "set", f"m{host.number}", "up" if up else "down")


def test_what_another_tare_runs_on_one_of_the_hosts_is_left_alone(
    small: Callable[..., Played], engine_four: tuple[TestHost, ...], site: SiteSpec
) -> None:
    with others_program(site) as (host, process):
        played = small("container")
        assert [record.outcome.reason for record in played.records] == [None, None]
        assert alive(host, process)
        assert_nothing_left(engine_four, "sleep 1234", "another", "in the ledger: process")
    assert_nothing_left(engine_four)


@contextmanager
def others_program(site: SiteSpec) -> Iterator[tuple[Host, Process]]:
    """Of another tare, whose server stands where the cluster has its second node; its ledger tells of it."""
    theirs = site.model_copy(update={"name": "theirs", "sut": site.nodes[1]})
    with connected(theirs, session="another") as there:
        host = there.site.sut
        output = Output("/tmp/theirs.out", "/tmp/theirs.err")
        process = host.start(["sleep", "1234"], output=output, announce=noting(there.ledger, host))
        try:
            yield host, process
        finally:
            with suppress(Exception):
                host.run(["kill", "-s", "KILL", str(process.pid)], timeout_s=60)
