"""What a protocol costs and how often it is wrong, on runs whose truth is known."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.unit.analyze import synthetic

from bench.protocol import figures as protocol_figures
from bench.protocol.costs import (
    SEGMENT,
    Rounds,
    Run,
    by_pairs,
    by_welch,
    by_windows,
    joined,
    measured_seconds,
    pair_seconds,
    pooled_spread,
    rounds_for,
    runs_for,
    variances,
    width_of,
    windows_claim,
    wrong,
)
from bench.protocol.figures import Pool, costs, published
from bench.protocol.pools import BASELINE, BLOCKS, INJECTED, MEASURE_S, POOLS, TITLE
from tare.calibrate.archive import Archive, Place, StudyResult
from tare.calibrate.pooled import injected
from tare.calibrate.summary import Effort, identity_of
from tare.plan.expand import CONTROL, expand
from tare.protocols.pilot import Components
from tare.record.host_facts import HostFacts
from tare.study.protocol_spec import DuetSpec, RotateSpec

BETWEEN, WITHIN, WINDOWS = 0.015, 0.012, 7


def pool(studies: int, effect: float = 0.0, drift: float = 0.0, seed: int = 1) -> list[Rounds]:
    """Studies of 8 rounds; each run's start differs by `BETWEEN`, its windows by `WITHIN`, the pairs by `drift`."""
    rng = np.random.default_rng(seed)

    def run(mean: float) -> Run:
        start = mean + BETWEEN * rng.normal()
        windows = tuple(float(np.exp(start + WITHIN * rng.normal())) for _ in range(WINDOWS))
        return Run(float(np.mean(windows)), windows, 6.0)

    def study() -> Rounds:
        off = drift * rng.normal()
        return Rounds(tuple((run(effect + off), run(0.0)) for _ in range(8)), effect)

    return [study() for _ in range(studies)]


def test_t_over_rounds_is_wrong_as_often_as_promised() -> None:
    verdicts = wrong(pool(400), by_pairs)
    assert verdicts.disjoint.of == 800
    assert 0.03 < (verdicts.disjoint.share or 0) < 0.07
    assert verdicts.overlapping.of == 400 * (8 - SEGMENT + 1)


def test_windows_in_one_pot_are_wrong_far_too_often() -> None:
    assert (wrong(pool(100), by_windows).disjoint.share or 0) > 0.25


def test_runs_made_together_are_wrong_where_the_machine_drifts_meanwhile() -> None:
    assert (wrong(pool(100, drift=0.03), by_welch).disjoint.share or 0) > 0.2


def test_an_effect_that_is_there_is_no_mistake() -> None:
    verdicts = wrong(pool(200, effect=math.log(0.95)), by_pairs)
    assert (verdicts.disjoint.share or 0) < 0.1


def test_the_spread_of_a_ratio_is_that_of_two_starts_and_their_windows() -> None:
    expected = math.sqrt(2 * (BETWEEN**2 + WITHIN**2 / WINDOWS))
    assert pooled_spread(pool(200)) == pytest.approx(expected, rel=0.05)


def test_variances_come_apart_again() -> None:
    components = variances(pool(200))
    assert math.sqrt(components.within) == pytest.approx(WITHIN, rel=0.05)
    assert math.sqrt(components.between) == pytest.approx(BETWEEN, rel=0.05)


def test_runs_to_a_width_as_worked_out_by_hand() -> None:
    of = Components(within=0.0, between=0.015**2)
    assert runs_for(0.02, of, 1800) == 6  # t(10) 2.228 · 0.015 · √(2/6) = 0.0193; 5 runs give 0.0219
    assert width_of(6, of, 1800) == pytest.approx(0.0193, abs=1e-4)
    assert runs_for(0.0212, of, 1800) == 6  # 5 runs: t(8) 2.306 gives 0.02188, though t(10) would give 0.02114
    assert width_of(1, of, 1800) is None


def test_longer_runs_do_not_help_against_what_each_start_decides() -> None:
    of = Components(within=WITHIN**2, between=BETWEEN**2)
    assert runs_for(0.01, of, 1800) == runs_for(0.01, of, 18_000)


def test_rounds_to_a_width_are_at_a_look_of_the_default_protocol() -> None:
    assert rounds_for(0.02, 0.0175) == 8
    assert rounds_for(0.01, 0.0175) in range(12, 40, 4)


def test_windows_in_one_pot_claim_a_width_after_next_to_nothing() -> None:
    assert windows_claim(0.02, Components(within=WITHIN**2, between=BETWEEN**2), WINDOWS) == 2


def test_measured_seconds_are_those_of_the_rounds_it_took() -> None:
    quiet = [joined(pool(3, seed=2))]
    seconds = measured_seconds(quiet, by_pairs, 0.02, lambda n: n >= 8)
    assert seconds is not None
    assert seconds % pair_seconds(quiet) == 0
    assert seconds >= 8 * 12.0
    assert measured_seconds(quiet, by_pairs, 1e-6, lambda n: True) is None


def pools(*names: str) -> dict[str, Pool]:
    """The same runs under every name: what differs is how they are judged, and what stands beside them."""
    same, other = pool(8, seed=3), pool(8, effect=math.log(0.95), seed=4)
    return {name: Pool(tuple(same), tuple(other), injected([], TITLE), 1.0) for name in names}


def test_the_default_protocol_pays_for_the_control_that_it_always_has() -> None:
    """A round of interleave is three runs where a pair is two; in a duet the control is a pair of its own."""
    fields = {(cost.way, cost.target): cost for cost in costs(pools("interleave", "duet", "together"))}
    for target in (0.02, 0.01):
        pair = {way: fields[way, target].computed_s or 0.0 for way in ("interleave", "duet", "fixed", "buckets")}
        whole = {way: fields[way, target].with_control_s or 0.0 for way in pair}
        assert whole["interleave"] == pytest.approx(1.5 * pair["interleave"])
        assert whole["duet"] == pytest.approx(2 * pair["duet"])
        assert (whole["fixed"], whole["buckets"]) == (pair["fixed"], pair["buckets"])
        for way, seconds in whole.items():
            assert fields[way, target].times_interleave == pytest.approx(seconds / whole["interleave"])


def test_published_lengths_are_held_against_the_default_with_its_control() -> None:
    made = pools("interleave", "together")
    result = tuple(costs(made))
    default = {f"{one.target:g}": one.with_control_s or 0.0 for one in result if one.way == "interleave"}
    percona = next(one for one in published(made["together"], result) if one.study == "percona-2016")
    beside_s = pair_seconds(made["together"].both) / 2 - MEASURE_S
    for target, runs in percona.runs_to.items():
        assert runs == runs_for(float(target), variances(made["together"].both), 1800.0)
        assert percona.seconds_to[target] == pytest.approx(2 * runs * (1800 + beside_s))
        assert percona.times_interleave[target] == pytest.approx(percona.seconds_to[target] / default[target])


def test_the_machine_time_of_a_pool_counts_every_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline that two arms are held against is one run, and a failed attempt took its time as well."""
    good = [synthetic.record(block, arm, 1900.0) for block in range(8) for arm in (BASELINE, INJECTED, CONTROL)]
    records = (*good, synthetic.record(8, INJECTED, None))
    effort = Effort(studies=1, runs=25, failed=1, machine_s=sum(run.machine_s for run in records), finished_at=None)

    class Kept:
        """An archive with one finished study."""

        def places(self, identity: object) -> list[Place]:
            del identity
            return [Place("interleave", 1, Path("nowhere"))]

        def studied(self, place: Place) -> StudyResult:
            del place
            return StudyResult(tare="0", observed=(), effort=effort)

    monkeypatch.setattr(protocol_figures, "open_store", lambda path: SimpleNamespace(records=lambda: records))
    result = protocol_figures.figures(cast("Archive", Kept()), identity_of(HostFacts(), None))
    assert result.machine_s["interleave"] == pytest.approx(25 * records[0].machine_s)


@pytest.mark.parametrize("name", POOLS)
def test_pools_have_the_same_parity_but_for_what_their_protocol_places(name: str) -> None:
    plan = expand(POOLS[name].make(1))
    arms = {arm.name: arm.settings for arm in plan.study.arms}
    assert set(arms) == {BASELINE, INJECTED, "baseline-again"}
    scripts = [arms[name].workload["sysbench"] for name in (BASELINE, INJECTED)]
    assert {key for key, value in scripts[0].items() if value != scripts[1][key]} == {"point_selects"}
    cpus = {placement.limits.cpus for settings in arms.values() for placement in settings.sides.values()}
    assert cpus == ({None} if isinstance(plan.study.protocol, DuetSpec | RotateSpec) else {"0", "1"})
    assert len(plan.runs) == BLOCKS * (4 if isinstance(plan.study.protocol, DuetSpec) else 3)
