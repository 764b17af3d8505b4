"""Predictions are held against what was measured, and learn their own error from that."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.knowledge.test_prediction import BRIDGE, cost, costs, profile
from tests.unit.stores import known, store_of
from typer.testing import CliRunner

from tare.calibrate.summary import identity_of
from tare.cli import app
from tare.errors import StoreError
from tare.knowledge.claim import load_claims
from tare.knowledge.kept_costs import keep
from tare.knowledge.predictions.measured import Kept
from tare.knowledge.predictions.model_error import (
    ASSUMED,
    LATENCY,
    ModelError,
    OfEarlierTare,
    Outcome,
    keep_error,
    learned_error,
    read_error,
)
from tare.knowledge.predictions.past import Past, error_of, judged, score_of
from tare.knowledge.predictions.past_text import past_lines, past_tree
from tare.knowledge.predictions.prediction import Prediction, predicted
from tare.knowledge.predictions.prediction_text import prediction_lines
from tare.knowledge.predictions.profile import Profile
from tare.knowledge.predictions.traffic import loopback_traffic
from tare.knowledge.prior import Prior
from tare.record.raw_files import trace_of
from tare.sites.layout import Layout
from tare.store.trace import read_trace
from tare.study.catalogue import find_study
from tare.study.reading.load import load
from tare.study.registry import installed

RECORDED = Path(__file__).resolve().parents[2] / "data" / "trace"


def outcomes(base: float, share: float, count: int = 200, slope: float = 1.0) -> list[Outcome]:
    draw = np.random.default_rng(7)
    results = []
    for n in range(count):
        result = -0.6 * (n % 10) / 10
        sd = math.hypot(math.hypot(base, share * result), 0.02)
        measured = slope * result + float(draw.normal(0, sd))
        results.append(Outcome("s", "study", "arm", result, 0.01, measured, math.sqrt(0.0003)))
    return results


@pytest.mark.parametrize(("base", "share"), [(0.03, 0.0), (0.08, 0.0), (0.02, 0.3)])
def test_the_error_that_made_the_residuals_is_found_again(base: float, share: float) -> None:
    error = learned_error(outcomes(base, share))
    assert error.sd(0.0) == pytest.approx(base, abs=0.02)
    assert error.sd(-0.5) == pytest.approx(math.hypot(base, share * 0.5), rel=0.25)
    assert (error.outcomes, error.stores) == (200, 1)


@pytest.mark.parametrize("slope", [0.7, 1.0, 1.2])
def test_the_slope_of_measured_over_predicted_is_found_again_and_corrects(slope: float) -> None:
    error = learned_error(outcomes(0.03, 0.0, slope=slope))
    assert error.slope == pytest.approx(slope, abs=3 * error.slope_sd)
    assert 0 < error.slope_sd < 0.03
    assert error.corrected(-0.5) == pytest.approx(-0.5 * slope, abs=0.05)
    few = learned_error(outcomes(0.03, 0.0, 8, slope=slope))
    assert few.sd(-0.5) > error.sd(-0.5)


def test_an_error_that_was_kept_before_slopes_corrects_nothing(tmp_path: Path) -> None:
    path = keep_error(Layout(tmp_path), ASSUMED)
    path.write_text('{"format": 1, "base": 0.02, "share": 0.1, "outcomes": 9, "stores": 2}')
    error = read_error(Layout(tmp_path))
    assert (error.corrected(-0.5), error.sd(-0.5)) == (-0.5, math.hypot(0.02, 0.05))


def test_a_prediction_is_corrected_with_its_interval() -> None:
    of, weighed = profile(per_s=10_000.0, sut=4.0), costs(cost("sut-cpu", 100.0), cost("time", 1.0, load_="alone"))
    raw = predicted("bridge", BRIDGE, of, weighed)
    learned = ModelError(base=0.01, share=0.0, slope=0.8, slope_sd=0.05, outcomes=9, stores=2)
    made = predicted("bridge", BRIDGE, of, weighed, learned)
    assert raw.log_ratio is not None
    assert raw.of_costs is not None
    assert made.log_ratio == pytest.approx(0.8 * raw.log_ratio)
    sd = math.hypot(0.01, 0.05 * raw.log_ratio, 0.8 * raw.of_costs)
    assert made.high == pytest.approx(0.8 * raw.log_ratio + 1.6448536 * sd)


def test_few_outcomes_leave_it_at_what_is_assumed() -> None:
    assert learned_error(outcomes(0.2, 0.0, 4)) == ASSUMED


def test_the_error_is_kept_and_read_again_and_a_damaged_file_is_told(tmp_path: Path) -> None:
    layout, kept = Layout(tmp_path), ModelError(base=0.02, share=0.1, outcomes=9, stores=2)
    assert read_error(layout) == ASSUMED
    path = keep_error(layout, kept)
    assert read_error(layout) == kept
    path.write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        read_error(layout)


def test_an_error_kept_by_an_earlier_tare_is_set_aside(tmp_path: Path) -> None:
    """Models with heavier tails had a field `reach`."""
    layout, earlier = Layout(tmp_path), {"format": 1, "base": 0.02, "share": 0.1, "reach": 2.1}
    path = keep_error(layout, ASSUMED)
    for tree in (earlier, {**earlier, "others": {"latency_mean": earlier}}):
        path.write_text(json.dumps(tree))
        with pytest.raises(OfEarlierTare, match="is of an earlier tare"):
            read_error(layout)
    path.write_text(json.dumps({**earlier, "base": "x"}))
    with pytest.raises(StoreError, match="cannot be read"):
        read_error(layout)


def test_what_replies_hold_beyond_the_small_ones_adds_its_cost_a_kib() -> None:
    # 100 µs of the server's one CPU an operation; 5 requests of 2 µs, 10 KiB of 1 µs more: 100 / 120.
    of = profile(per_s=10_000.0, sut=4.0, requests=5.0, threads=64)
    with_bytes = Profile(of.requests, of.per_s, of.flying, of.stations, of.runs, kib=10.0)
    weighed = costs(
        cost("sut-cpu", 2.0),
        cost("time", 1.0, load_="alone"),
        cost("sut-cpu", 1.0, load_="large").model_copy(update={"per_kib": True}),
    )
    assert predicted("bridge", BRIDGE, with_bytes, weighed).log_ratio == pytest.approx(math.log(100 / 120))
    assert predicted("bridge", BRIDGE, of, weighed).log_ratio == pytest.approx(math.log(100 / 110))


def test_packets_and_payload_are_what_the_loopback_interface_sent_without_headers(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, trace_of(tmp_path))
    table = read_trace(RECORDED).table("interface")
    assert table is not None
    rows = table.filter(table["name"] == "host/lo").sort("t0_ns")

    def change(tree: dict[str, Any]) -> None:
        began, ended = rows["t0_ns"][0] / 1e9 - 1e-6, rows["t0_ns"][-1] / 1e9 + 1e-6
        tree["usage"] |= {"began_monotonic_s": began, "ended_monotonic_s": ended}

    run = synthetic.changed(synthetic.record(1, "bare", 1000.0), change)
    # 352,974 bytes in 6,132 packets.
    value = loopback_traffic(run, lambda _, name: tmp_path / name)
    assert value is not None
    assert value.payload_bytes == pytest.approx(34_110, rel=1e-4)
    assert value.packets == pytest.approx(6_132, rel=1e-4)
    assert loopback_traffic(run, lambda _, name: tmp_path / "nothing" / name) is None


def past(digest: str, *of: tuple[str, float, float]) -> Past:
    study = load(find_study("percona-2016"), installed(), "demo")
    return Past(
        digest,
        study,
        tuple(
            Prediction(
                arm, result, result - 0.1, result + 0.1, "sut", of_costs=0.01, measured=actual, measured_se=0.01
            )
            for arm, result, actual in of
        ),
    )


def test_a_store_is_judged_by_the_error_that_the_others_teach() -> None:
    close = past("a", ("host", -0.01, -0.02), ("bridge", -0.05, -0.06), ("published-address", -0.07, -0.06),
                 ("published-loopback", -0.4, -0.41), ("shared", 0.0, 0.0))  # fmt: skip
    far = past("b", ("host", -0.01, -0.31))
    (missed,) = [each for each in judged([close, far], ()) if each.outcome.store == "b"]
    assert not missed.within
    assert missed.half < 1.645 * math.hypot(0.05, 0.01)
    alone = judged([far], ())
    assert alone[0].half == pytest.approx(1.6448536 * math.hypot(0.05, 0.01))


def test_a_noisy_point_outside_the_interval_is_explained_by_its_own_error() -> None:
    outside = past("a", ("host", 0.0, 0.15))
    (precise,) = judged([outside], ())
    assert (precise.within, precise.explained) == (False, False)
    noisy = replace(outside, predictions=tuple(replace(each, measured_se=0.1) for each in outside.predictions))
    (judgement,) = judged([noisy], ())
    assert (judgement.within, judgement.explained) == (False, True)


def test_the_score_stands_beside_the_naive_answers() -> None:
    judgement = judged([past("a", ("host", -0.01, -0.02), ("published-loopback", -0.5, -0.55))], load_claims())
    score = score_of(judgement)
    assert score is not None
    assert (score.arms, score.within) == (2, 2)
    assert score.beside_published is not None
    own, published = score.beside_published
    assert own == pytest.approx(0.03)
    assert published > own
    shown = "\n".join(past_lines(judgement, error_of([])))
    assert "2 of 2 arms of 1 store within the 90 % interval" in shown
    assert "2 of 2 if the measurement's own error counts, too" in shown
    assert "the published figure: " in shown
    assert past_tree(judgement, ASSUMED)["score"]["within"] == 2


def test_arms_that_differ_in_their_load_alone_have_the_naive_answers_both() -> None:
    study = load(find_study("unit-costs"), installed(), "quick")
    made = tuple(
        Prediction(arm, -0.1, -0.2, 0.0, "sut", of_costs=0.01, measured=-0.1, measured_se=0.01)
        for arm in ("bridge-busy", "bridge-alone")
    )
    busy, alone = judged([Past("a", study, made)], load_claims())
    assert busy.mean is not None
    assert busy.mean == alone.mean


def test_points_are_of_the_overhead_and_the_parts_of_an_interval_add_up_to_it() -> None:
    of = [past(name, ("host", -0.05, -0.05), ("published-loopback", -1.0, -1.0 + 0.1)) for name in ("a", "b", "c")]
    judgement = judged(of, ())
    (far,) = [each for each in judgement if each.outcome.arm == "published-loopback" and each.outcome.store == "a"]
    assert far.half_points == pytest.approx(
        (math.exp(far.predicted + far.half) - math.exp(far.predicted - far.half)) / 2
    )
    assert far.half_points < 0.6 * far.half
    assert far.error_points == pytest.approx(math.exp(-0.9) - math.exp(far.predicted))
    assert math.hypot(*far.parts.values()) == pytest.approx(far.half / 1.6448536)
    score = score_of(judgement)
    assert score is not None
    assert sum(score.variance.values()) == pytest.approx(1.0)
    shown = "\n".join(past_lines(judgement, error_of(of)))
    assert "variance of the intervals: unit costs" in shown
    assert f"median half-width {100 * score.half_points:.1f} points" in shown


def test_nothing_measured_is_nothing_judged() -> None:
    unmeasured = Past("a", past("a").study, (Prediction("host", -0.1, -0.2, 0.0, "sut", of_costs=0.01),))
    assert score_of(judged([unmeasured], ())) is None
    assert "No arm" in next(iter(past_lines((), ASSUMED)))


def at_a_rate() -> Past:
    """Of arms at a rate: predicted to fall behind and did not, the other way round, and one block behind."""
    fast = Prediction(
        "host", why_none="its CPUs cannot keep up", metric=LATENCY, falls_behind=True, kept=Kept(8, 0, 0)
    )
    slow = Prediction(
        "bridge", 0.1, 0.0, 0.2, of_costs=0.01, metric=LATENCY, falls_behind=False, kept=Kept(8, 5, 5)
    )
    close = Prediction(
        "shared", 0.1, 0.0, 0.2, of_costs=0.01, measured=0.1, measured_se=0.01, metric=LATENCY,
        falls_behind=False, kept=Kept(8, 1, 1),
    )  # fmt: skip
    return Past("a", past("a").study, (fast, slow, close))


def test_falling_behind_a_rate_is_an_outcome_of_its_own_that_predictions_can_miss() -> None:
    of = at_a_rate()
    assert [each.arm for each in of.outcomes] == ["shared"]
    rates = {each.arm: (each.predicted, each.measured, each.right) for each in of.rates}
    assert rates == {
        "host": (True, False, False), "bridge": (False, True, False), "shared": (False, False, True)
    }  # fmt: skip
    judgement = judged([of], ())
    lines = list(past_lines(judgement, ASSUMED, of.rates))
    (slow,) = [line for line in lines if "bridge" in line]
    assert " ".join(slow.split()[2:]) == "keeps up fell behind in 5 of 8 blocks wrong"
    assert "1 of 3 arms at a fixed rate predicted correctly" in lines
    (close,) = [line for line in lines if "shared, " in line]
    assert close.endswith("without 1 block behind the rate")
    assert [each["right"] for each in past_tree(judgement, ASSUMED, of.rates)["rates"]] == [False, False, True]


def test_arms_that_only_fell_behind_are_shown_without_a_score() -> None:
    lines = list(past_lines((), ASSUMED, at_a_rate().rates))
    assert "1 of 3 arms at a fixed rate predicted correctly" in lines
    assert lines[-1].startswith("No arm")


def test_advice_says_in_how_many_blocks_an_arm_fell_behind() -> None:
    shown = "\n".join(prediction_lines(at_a_rate().predictions, 100))
    assert "; fell behind in 5 of 8 blocks" in shown
    assert "; fell behind in 0" not in shown


def test_claims_stand_beside_a_prediction_and_whether_they_agree() -> None:
    made = Prediction("bridge", -0.1, -0.2, 0.0, "sut")
    near, far = Prior(-0.15, -0.3, 0.0, 9, 2, ()), Prior(0.4, 0.3, 0.5, 9, 2, ())
    assert "which agree" in "\n".join(prediction_lines([made], 100, ASSUMED, {"bridge": near}))
    shown = "\n".join(prediction_lines([made], 100, ASSUMED, {"bridge": far}))
    assert "which disagree" in shown
    assert "5.0 % and 0 % of the overhead, assumed" in shown
    assert "Bytes of requests and replies are left out" in " ".join(shown.split())


def a_store(path: Path, published: float) -> Path:
    """Four blocks of a closed loop on a saturated machine, where a published port does a share of bare's rate."""

    def saturated(tree: dict[str, Any]) -> None:
        per_s = tree["measurement"]["throughput_per_s"]
        tree["measurement"] |= {"operations": round(4 * per_s), "queries_per_s": 16 * per_s}
        tree["settings"] = {"workload": {"threads": 16}}
        tree["usage"] |= {
            "sut_cpu_s": 3.9, "client_cpu_s": 2.0, "machine": {"user": 7.0, "idle": 1.0}, "sut_cpus": 1.0,
            "client_cpus": 1.0, "wall_s": 4.0, "saturation": None,
        }  # fmt: skip

    port: list[float] = [each * published for each in (1000, 1011, 989, 1005)]
    rates: dict[str, list[float]] = {"bare": [1000, 1010, 990, 1005], "published-loopback": port}
    return store_of(path, [synthetic.changed(record, saturated) for record in known(rates)])


def test_the_command_predicts_stores_of_weighed_machines_and_keeps_what_they_teach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    store = a_store(tmp_path / "store", 0.6)
    refused = CliRunner().invoke(app, ["knowledge", "predicted", str(store)])
    assert "no unit costs are known here for the machine" in str(refused.exception)
    port = cost("sut-cpu", 30.0), cost("time", 50.0, load_="alone")
    path = {"network": "host"}  # as the made-up arms have it, whatever they are called
    weighed = costs(*(each.model_copy(update=path) for each in port))
    identity = identity_of(synthetic.HOST, synthetic.ENGINE)
    keep(Layout(tmp_path / "home"), weighed.model_copy(update={"identity": identity}))
    shown = CliRunner().invoke(app, ["knowledge", "predicted", str(store), "--keep"])
    assert shown.exit_code == 0, shown.exception
    assert "of 1 arm of 1 store within the 90 % interval" in shown.stdout
    assert "the published figure: " in shown.stdout
    assert "measured" in shown.stdout
    assert read_error(Layout(tmp_path / "home")) == ASSUMED  # one arm teaches nothing
    tree = json.loads(CliRunner().invoke(app, ["knowledge", "predicted", str(store), "--json"]).stdout)
    (arm,) = tree["arms"]
    assert arm["overhead"] == pytest.approx(-0.4, abs=0.01)
    beside = CliRunner().invoke(app, ["advise", "percona-2016", "--scale", "demo", "--profile", str(store)])
    assert "claims: " in beside.stdout
    assert "5.0 % and 0 % of the overhead, assumed" in " ".join(beside.stdout.split())
    words = ["advise", "percona-2016", "--scale", "demo", "--profile", str(store), "--json"]
    (raw,) = json.loads(CliRunner().invoke(app, words).stdout)["predictions"]
    learned = ModelError(base=0.01, share=0.0, slope=0.5, outcomes=40, stores=5)
    keep_error(Layout(tmp_path / "home"), learned)
    (corrected,) = json.loads(CliRunner().invoke(app, words).stdout)["predictions"]
    assert math.log1p(corrected["throughput"]) == pytest.approx(0.5 * math.log1p(raw["throughput"]))
    assert corrected["high"] - corrected["low"] < raw["high"] - raw["low"]
