"""The tables of `bench.predictions`, and that its studies cover what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.knowledge.test_past import at_a_rate, past

from bench.predictions.__main__ import rate_table, table, unpredicted
from tare.knowledge.predictions.measured import Kept
from tare.knowledge.predictions.model_error import CPU, LATENCY, THROUGHPUT
from tare.knowledge.predictions.past import Past, judged
from tare.knowledge.predictions.prediction import Prediction
from tare.knowledge.unit_costs import FEWEST
from tare.study.catalogue import find_study
from tare.study.model import Study
from tare.study.protocol_spec import Sequential
from tare.study.reading.load import load
from tare.study.registry import installed

STUDIES = sorted((Path(__file__).resolve().parents[3] / "bench" / "predictions").glob("*.yaml"))
PATHS = {"host", "bridge", "published-address", "published-loopback"}


def studies(scale: str = "full") -> dict[str, Study]:
    return {path.stem: load(path, installed(), scale) for path in STUDIES}


def test_each_metric_has_a_table_with_its_score() -> None:
    of = [past("a", ("host", -0.01, -0.02), ("published-loopback", -0.5, -0.7))]
    shown = "\n".join(table(judged(of, ()), THROUGHPUT))
    assert "| percona-2016, host |" in shown
    assert "- 1 of 2 arms of 1 store within the interval." in shown
    assert "- Variance of the intervals: unit costs" in shown
    assert list(table(judged(of, ()), CPU)) == []


def test_arms_that_fell_behind_have_a_table_of_their_own_and_a_reason() -> None:
    shown = list(rate_table(at_a_rate().rates))
    assert "| percona-2016, bridge | keeps up | fell behind in 5 of 8 blocks | no |" in shown
    assert "| percona-2016, shared | keeps up | fell behind in 1 of 8 blocks | yes |" in shown
    assert "- 1 of 3 arms predicted rightly." in shown
    assert list(rate_table(())) == []
    assert list(unpredicted([at_a_rate()])) == [
        "- percona-2016, host, latency_mean: its CPUs cannot keep up.",
        "- percona-2016, bridge, latency_mean: fell behind in 5 of 8 blocks.",
    ]
    slow_baseline = Prediction("host", 0.1, 0.0, 0.2, metric=LATENCY, falls_behind=False, kept=Kept(6, 0, 2))
    assert list(unpredicted([Past("a", past("a").study, (slow_baseline,))])) == [
        "- percona-2016, host, latency_mean: it or its baseline fell behind in 2 blocks.",
    ]
    (row,) = [line for line in table(judged([at_a_rate()], ()), LATENCY) if "shared" in line]
    assert "without 1 block behind the rate" in row


def test_what_is_not_predicted_is_named_with_its_reason() -> None:
    study = past("a").study
    of = Past(
        "a", study, (Prediction("host", why_none="nothing is known"), Prediction("bridge", -0.1, measured=-0.1))
    )
    assert list(unpredicted([of])) == [
        "- percona-2016, host, throughput: nothing is known.",
        "- percona-2016, bridge, throughput: fewer than three blocks were measured or kept up with the rate.",
    ]


def test_eight_workloads_are_asked_at_full_load_and_at_a_rate() -> None:
    loads = {name: study.factors["load"] for name, study in studies().items()}
    assert loads == {
        "predict-cassandra": ("c", "c-rate", "a", "a-rate"),
        "predict-ferretdb": ("full", "rate"),
        "predict-mariadb": ("read", "read-rate", "write", "write-rate"),
        "predict-postgresql": ("read", "read-rate", "write"),
        "predict-redis": ("fifty", "one", "pipelined", "rate"),
    }


def test_every_path_and_three_storages_are_covered() -> None:
    ways = {name: set(study.factors.get("way", study.factors.get("path", ()))) for name, study in studies().items()}
    assert ways["predict-redis"] >= PATHS
    for name in ("predict-mariadb", "predict-postgresql"):
        assert ways[name] >= PATHS | {"layer", "volume", "tmpfs"}


def test_there_is_time_for_more_blocks_than_an_interval_needs_and_all_of_it_is_45_minutes() -> None:
    limits = [study.protocol for study in studies().values()]
    assert all(isinstance(each, Sequential) and each.target is None and each.blocks > FEWEST for each in limits)
    minutes = [each.max_minutes for each in limits if isinstance(each, Sequential) and each.max_minutes is not None]
    assert len(minutes) == len(limits)
    weighing = load(find_study("unit-costs"), installed(), "quick").protocol
    assert isinstance(weighing, Sequential)
    assert weighing.max_minutes is not None
    assert sum(minutes) + weighing.max_minutes <= 45


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_each_study_has_a_scale_to_try_it_out(path: Path) -> None:
    assert len(load(path, installed(), "tiny").arms) < len(load(path, installed(), "full").arms)
