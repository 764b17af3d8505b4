"""Comparisons that are not what they seem, on the real engine: each is refused with the difference named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tare.errors import NotComparable, StudyError
from tare.images import Image
from tare.images.prepare import prepare
from tare.plan.expand import expand
from tare.record.run_record import RunRecord
from tare.run.execute import Destination, execute
from tare.run.interrupts import Interrupts
from tare.run.local import local_engine, local_machine
from tare.run.parity.references import References, until_refused
from tare.run.resume import StudyState
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.reading.load import loads
from tare.study.registry import installed

pytestmark = pytest.mark.engine

STUDY = """\
format: 1
name: naive
question: Is a difference refused?
sut:
  image: mariadb
  database: mariadb
  deployment: {deployment}
  settings: {{innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}}
client: {{image: sysbench, deployment: bare}}
workload:
  name: sysbench
  script: oltp_point_select
  tables: 1
  table_size: 1000
  threads: 1
  warmup_s: 1
  measure_s: 1
  window_s: 1
protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  arm:
    {sets}levels:
      first: {first}
      {name}: {second}
baseline: first
"""
Run = Callable[..., list[RunRecord]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all tests here: data that two of them ask for are loaded once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Iterator[Run]:
    """Runs a study of two arms."""
    cache, layout = default_layout(), Layout(home)
    staging = tmp_path / "staging"
    staging.mkdir()

    def run_study(
        first: str, second: str, *, name: str = "second", deployment: str = "bare", sets: str = ""
    ) -> list[RunRecord]:
        text = STUDY.format(first=first, second=second, name=name, deployment=deployment, sets=sets)
        plan = expand(loads(text, installed()))
        kept: list[RunRecord] = []
        with local_engine() as engine:
            image_store = SqliteLedger(cache.ledger)

            def ready(reference: str) -> Image:
                asked = "mariadb" if reference.startswith("tar:") else reference
                image = prepare(asked, host=LocalHost(), layout=cache, ledger=image_store, engine=engine.client)
                return image if asked == reference else other_binary(image, tmp_path / "rootfs")

            machine = local_machine(plan, engine, Interrupts(), layout)
            machine = replace(machine, own=replace(machine.own, prepare=ready), references=References())
            runs = execute(plan, machine, Destination(str(staging), StudyState(), staging), lambda _: None)
            for records in until_refused(runs, lambda _: None):
                kept.extend(records)
        return kept

    yield run_study
    host = LocalHost()
    host.run(["rm", "-rf", "--", str(tmp_path / "rootfs")], timeout_s=60)


def other_binary(image: Image, target: Path) -> Image:
    """The same tree with one byte more at the end of the server's file, which changes nothing that it does."""
    host = LocalHost()
    host.run(["cp", "-a", "--reflink=auto", "-T", "--", image.rootfs, str(target)], timeout_s=120)
    with (target / "usr/sbin/mariadbd").open("ab") as file:
        file.write(b"\0")
    return replace(image, reference="tar:other", rootfs=str(target), digest="0" * 64)


@contextmanager
def refused(*words: str) -> Iterator[None]:
    with pytest.raises(NotComparable) as ended:
        yield
    for word in words:
        assert word in str(ended.value)


def test_a_bare_server_in_the_root_cgroup_is_refused(run: Run) -> None:
    with refused("SUT: parent cgroup: ", "/tare/RUN in ", "/ in first"):
        run("{sut.deployment: bare, sut.cgroup: root}", "{}", deployment="container")


def test_a_root_cgroup_that_is_the_factor_is_measured(run: Run) -> None:
    sets = "sets: [sut.deployment, sut.cgroup]\n    "
    records = run("{sut.deployment: bare, sut.cgroup: root}", "{}", deployment="container", sets=sets)
    assert [record.outcome.ok for record in records] == [True, True], [record.outcome for record in records]
    for record in records:
        assert record.usage is not None
        assert 0.05 < (record.usage.sut_cpu_s or 0) < 4
        assert 0.05 < (record.usage.client_cpu_s or 0) < 4


def test_a_port_published_on_loopback_may_not_call_itself_bridge(run: Run) -> None:
    with pytest.raises(StudyError, match=r"the level 'bridge' has sut.network: published-loopback"):
        run("{}", "{sut.network: published-loopback}", name="bridge", deployment="container")


def test_docker_proxy_counts_to_the_arm_whose_bytes_it_carries(run: Run) -> None:
    records = run("{}", "{sut.network: published-loopback}", name="published-loopback", deployment="container")
    (carried,) = [record for record in records if record.arm == "published-loopback"]
    assert carried.outcome.ok
    assert carried.path is not None
    assert carried.usage is not None
    if carried.path.hop == "docker-proxy":
        assert (carried.usage.proxy_cpu_s or 0) > 0.05
    else:
        assert carried.usage.proxy_cpu_s is None


def test_another_buffer_pool_in_one_arm_is_refused(run: Run) -> None:
    with refused("variable innodb_buffer_pool_size: ", "33554432 in first", "67108864 in second"):
        run("{}", "{sut.deployment: bare, sut.settings.innodb_buffer_pool_size: 64M}")


def test_another_binary_in_one_arm_is_refused(run: Run) -> None:
    with refused("SUT: image digest: ", "SUT: binary digest: sha256:"):
        run("{}", "{sut.image: 'tar:other'}")
