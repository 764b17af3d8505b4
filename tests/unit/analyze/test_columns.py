"""What is worked out over columns of all runs is exactly what each run gives by itself."""

from __future__ import annotations

import math
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.run_by_run import disk as disk_by_run
from tests.unit.analyze.run_by_run import load as load_by_run
from tests.unit.analyze.run_by_run import others as by_run
from tests.unit.analyze.run_by_run.generated import SEEDS, generated

from tare.analyze.bottleneck import bottleneck_of
from tare.analyze.columns import Columns
from tare.analyze.metrics import metrics_of
from tare.analyze.numbers import number_at
from tare.analyze.runs import Runs, select_runs
from tare.analyze.statistics.pairing import pair
from tare.analyze.validity import RULES
from tare.analyze.validity.disk import limits_of
from tare.analyze.validity.evidence import Alarm, Evidence
from tare.analyze.validity.load import busy, limit_reached, part_of_machine
from tare.record.run_record import RunRecord
from tare.store import open_store
from tare.study.model import Study

OLD = Path(__file__).resolve().parents[2] / "data" / "before-0.1.0" / "store.tar.gz"
BY_RUN: dict[str, Callable[[Evidence], Iterator[Alarm]]] = {
    "errors": by_run.errors,
    "under-delivery": by_run.under_delivery,
    "client-bottleneck": load_by_run.client_bottleneck,
    "client-host-bound": by_run.client_host_bound,
    "not-disk-bound": disk_by_run.not_disk_bound,
    "machine-shift": load_by_run.machine_shift,
    "machine-noise": load_by_run.machine_noise,
    "clock-step": load_by_run.clock_step,
    "order-effect": load_by_run.order_effect,
    "proxy-weight": by_run.proxy_weight,
}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, tuple[RunRecord, ...]]:
    """Records of real runs."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(OLD) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        archive.extractall(folder)
    store = open_store(folder / "store")
    return store.plan.study, store.records()


def held_equal(study: Study, runs: Runs) -> set[str]:
    """Compare all of it; the rules that alarmed."""
    evidence, alarmed = Evidence(study, runs), set[str]()
    for name, rule in BY_RUN.items():
        alarms = list(RULES[name](evidence))
        assert alarms == list(rule(evidence))
        alarmed |= {alarm.rule for alarm in alarms}
    for arm in study.arms:
        good = runs.good_of(arm.name)
        assert bottleneck_of(runs.columns, runs.rows(arm.name)) == disk_by_run.bottleneck_of(good)
        for metric in metrics_of(runs.good.values()):
            assert pair(runs, arm.name, study.baseline, metric) == by_run.pair(
                runs, arm.name, study.baseline, metric
            )
            assert runs.values_of(arm.name, metric) == [
                value for run in runs.of_arm(arm.name) if (value := metric.of(run)) is not None
            ]
    return alarmed


@cache
def alarmed_by(seed: int) -> frozenset[str]:
    """The rules that alarm in a generated study, after all of it was compared."""
    study, records = generated(seed)
    return frozenset(held_equal(study, select_runs(study, records)))


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_runs_have_the_alarms_and_pairs_that_they_have_one_by_one(seed: int) -> None:
    assert alarmed_by(seed) <= set(BY_RUN)


def test_generated_runs_alarm_every_rule_that_is_compared() -> None:
    assert set().union(*map(alarmed_by, SEEDS)) == set(BY_RUN)


def test_real_runs_have_the_alarms_and_pairs_that_they_have_one_by_one(old: Any) -> None:
    study, records = old
    held_equal(study, select_runs(study, records))


@pytest.mark.parametrize("seed", list(SEEDS)[:9])
def test_a_single_run_is_told_as_it_is_among_others(seed: int) -> None:
    for run in generated(seed)[1]:
        for side in ("sut", "client"):
            assert busy(run, side) == load_by_run.busy(run, side)
            assert limit_reached(run, side) == load_by_run.limit_reached(run, side)
        for kind in ("idle", "iowait", "steal", "others"):
            assert part_of_machine(run, kind) == load_by_run.part_of_machine(run, kind)
        assert limits_of(run) == disk_by_run.limits_of(run)


def measured(**parts: Any) -> RunRecord:
    return synthetic.changed(
        synthetic.record(1, "bare", 100.0), lambda tree: tree.update(measurement={**tree["measurement"], **parts})
    )


@pytest.mark.parametrize("value", [1, 2.5, 0, -0.0, True, None, "7", [1.0], {"a": 1}, 10**30])
def test_a_column_has_the_numbers_that_are_numbers(value: Any) -> None:
    runs = tuple(
        synthetic.record(1, "bare", 100.0).model_copy(update={"host": host})
        for host in ({"figure": value}, {}, {"figure": 3.0})
    )
    read = [number_at(run.host, ("figure",)) for run in runs]
    column = Columns(runs).number("host", "figure")
    assert [None if math.isnan(each) else each for each in column.tolist()] == read


def test_a_part_that_no_run_has_is_not_known_of_any_and_neither_is_what_lies_in_it() -> None:
    columns = Columns((measured(), measured()))
    assert all(math.isnan(each) for each in columns.number("monitors", "probe", "cpu_s"))
    assert columns.trees("monitors", "probe") == [None, None]


def test_a_figure_of_many_runs_is_read_once_of_each() -> None:
    runs, read = (measured(), measured()), []

    def figure(run: RunRecord) -> float:
        read.append(run.block)
        return 2.0 * run.block

    columns = Columns(runs)
    assert columns.of(figure).tolist() == columns.of(figure).tolist() == [2.0, 2.0]
    assert read == [1, 1]
