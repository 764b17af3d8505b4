"""Redis bare and on a bridge taking turns on the real machine: alone in each turn, kept whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.unit.record.parts import as_tree

from tare.analyze.statistics.turns import generations_of
from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.sites.layout import default_layout
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import open_store, verify

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

TARE = [sys.executable, "-m", "tare"]
PATIENCE_S = 600
ARMS = {"bare", "bridge", "baseline-again"}
ROUNDS, TURN_MS = 20, 100
STUDY = f"""\
format: 1
name: turns
question: What does a bridge cost, in turns?
sut: {{image: redis-7, database: redis, deployment: container, network: host, settings: {{save: ""}}}}
client: {{image: tare-load, deployment: bare, network: host}}
workload:
  name: tare-load
  connections: 4
  job:
    generators: {{key: {{uniform: {{from: 0, to: 999}}}}, value: {{text: {{length: 100}}}}}}
    operations: [{{name: get, steps: [{{send: "GET key:{{key}}", expect: {{bytes: 100}}}}]}}]
    load: {{records: 1000, steps: [{{send: "SET key:{{record}} {{value}}"}}]}}
  warmup_s: 0.5
  measure_s: 2
protocol: {{name: rotate, generations: 2, target: null, retries: 1, turn_ms: {TURN_MS}, settle_ms: 50, seed: 3}}
factors:
  path:
    sets: [sut.deployment, sut.network]
    levels: {{bare: {{sut.deployment: bare}}, bridge: {{sut.network: bridge}}}}
baseline: bare
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was killed in its second generation, and then resumed."""
    folder = tmp_path_factory.mktemp("rotate")
    (folder / "study.yaml").write_text(STUDY)
    argv = [*TARE, "run", str(folder / "study.yaml"), "--store", str(folder / "store")]
    with (folder / "stderr").open("wb") as stderr:
        killed = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=stderr)
    deadline = time.monotonic() + PATIENCE_S
    while len(_records(folder / "store")) < len(ARMS) or not _work():
        assert killed.poll() is None, (folder / "stderr").read_text()
        assert time.monotonic() < deadline, (folder / "stderr").read_text()
        time.sleep(0.2)
    killed.kill()
    killed.wait()
    assert Counter(record.block for record in _records(folder / "store")) == {1: len(ARMS)}
    resumed = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert resumed.returncode == 0, resumed.stderr
    return folder / "store"


def _records(store: Path) -> list[RunRecord]:
    try:
        return [*open_store(store).records()]
    except StoreError:  # not made yet
        return []


def _work() -> list[Path]:
    """Work directories of runs under way."""
    return [*(default_layout().home / "work").glob("*")]


@pytest.fixture
def records(store: Path) -> list[RunRecord]:
    return _records(store)


def test_a_killed_generation_is_made_again_as_a_whole(store: Path, records: list[RunRecord]) -> None:
    assert Counter((record.block, record.outcome.ok) for record in records)[1, True] == len(ARMS)
    good = [record for record in records if record.outcome.ok]
    assert {(record.block, record.arm) for record in good} == {(block, arm) for block in (1, 2) for arm in ARMS}
    assert len(good) == 2 * len(ARMS)
    assert verify(open_store(store)) == ()
    left = [entry.ident for entry in SqliteLedger(default_layout().home / "ledger.sqlite").entries()]
    assert [ident for ident in left if any(record.run_id in ident for record in records)] == []


def test_each_arm_is_driven_in_its_own_turns_and_takes_its_own_path(records: list[RunRecord]) -> None:
    for generation in generations_of([record for record in records if record.outcome.ok]):
        assert set(generation.arms) == ARMS
        assert generation.rounds == ROUNDS
        numbers = sorted(int(number) for each in generation.numbers for number in each)
        assert numbers == list(range(numbers[0], numbers[0] + len(ARMS) * ROUNDS))
        assert all(rates.mean() > 0 for rates in generation.rates)
    hops = {(record.arm, record.path and record.path.hop) for record in records if record.outcome.ok}
    assert hops == {("bare", "loopback"), ("baseline-again", "loopback"), ("bridge", "bridge")}


def test_servers_and_clients_have_cpus_of_their_own(records: list[RunRecord]) -> None:
    for record in records:
        if record.outcome.ok:
            assert as_tree(record.parity.sut)["cpus_allowed"] == "0"
            assert as_tree(record.parity.client)["cpus_allowed"] == "1"


def test_cpu_time_is_that_of_an_arms_own_turns(records: list[RunRecord]) -> None:
    for record in records:
        if record.outcome.ok:
            usage = record.usage
            assert usage is not None
            assert usage.turns_s is not None
            assert usage.turns_s == pytest.approx(ROUNDS * TURN_MS / 1000)
            assert usage.sut_cpu_s is not None
            assert usage.idle_cpus is not None
            # A driven Redis uses most of a CPU, an idle one next to nothing.
            assert usage.sut_cpu_s / usage.turns_s > 5 * usage.idle_cpus
