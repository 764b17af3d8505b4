"""The pilot: known answers, what it cannot tell, and that choosing costs no coverage."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from tare.protocols.pilot import Components, PilotRun, choose, most_s, windows_per_round
from tare.protocols.stopping import Rule, reach
from tare.record.pilot import Choice
from tare.study.protocol_spec import InterleaveSpec
from tare.study.rules.repetition import LEAST_WINDOWS

BASELINES = {"arm": "base"}


def pilot(within: float, between: float, *, restart_s: float = 30.0, windows: int = 10, seed: int = 1,
          blocks: int = 4, arms: tuple[str, ...] = ("base", "arm")) -> list[PilotRun]:  # fmt: skip
    """Runs whose log windows have these standard deviations, for each side."""
    rng = np.random.default_rng(seed)
    return [
        PilotRun(block, arm, tuple(np.exp(rng.normal(0, between) + rng.normal(0, within, windows))), restart_s)
        for block in range(1, blocks + 1)
        for arm in arms
    ]


def chosen(runs: list[PilotRun], baselines: dict[str, str] | None = None, **changes: float) -> Choice:
    return choose(runs, baselines or BASELINES, **{"pilot_s": 10.0, "window_s": 1.0, "most": 100.0, **changes})


def test_by_hand() -> None:
    # Rounds of +-1 % about log ratios of 0 and 4 %: within 2 · 0.01^2, between 0.0008 - 0.0002 / 2.
    runs = [PilotRun(block, "base", (100.0, 100.0), 28.0) for block in (1, 2)]
    runs += [PilotRun(1, "arm", (99.0, 101.0), 28.0)]
    runs += [PilotRun(2, "arm", (99.0 * math.exp(0.04), 101.0 * math.exp(0.04)), 28.0)]
    choice = chosen(runs)
    assert (choice.within, choice.between) == pytest.approx((0.0002, 0.0007))
    assert choice.restart_s == 28.0
    assert math.sqrt(28 / 1 * 0.0002 / 0.0007) == pytest.approx(2.83, abs=0.01)
    assert (choice.windows, choice.measure_s) == (LEAST_WINDOWS, 4.0)


def test_noisy_windows_ask_for_long_runs_and_noisy_restarts_for_short_ones() -> None:
    long, short = chosen(pilot(0.10, 0.005, blocks=40)), chosen(pilot(0.01, 0.05, blocks=40))
    assert long.windows > 60
    assert short.windows == LEAST_WINDOWS
    assert long.measure_s == long.windows
    dear = chosen(pilot(0.05, 0.02, blocks=40, restart_s=400.0))
    cheap = chosen(pilot(0.05, 0.02, blocks=40, restart_s=4.0))
    assert dear.windows == pytest.approx(10 * cheap.windows, rel=0.15)


def test_the_chosen_length_is_the_best_of_all_by_its_own_formula() -> None:
    result, restart_s = Components(within=0.004, between=0.0004), 30.0
    best = windows_per_round(result, restart_s, 1.0, 1000)

    def cost_of_variance(windows: int) -> float:
        return (restart_s + windows) * (result.between + result.within / windows)

    assert cost_of_variance(best) == min(map(cost_of_variance, range(1, 200)))


def test_rounds_that_do_not_differ_ask_for_the_longest() -> None:
    same = [PilotRun(block, arm, (99.0, 101.0, 100.0), 5.0) for block in range(1, 5) for arm in ("base", "arm")]
    assert chosen(same).measure_s == 100.0
    assert chosen(same, most=33.0).measure_s == 33.0


def test_arms_are_taken_together() -> None:
    runs = pilot(0.05, 0.02, arms=("base", "arm", "other"))
    both = chosen(runs, {"arm": "base", "other": "base"})
    one, other = chosen(runs, {"arm": "base"}), chosen(runs, {"other": "base"})
    assert both.within == pytest.approx(((one.within or 0) + (other.within or 0)) / 2)


def test_a_window_without_operations_is_a_large_deviation_and_no_error() -> None:
    odd = [PilotRun(5, "base", (100.0,) * 10, 30.0), PilotRun(5, "arm", (0.0, *[100.0] * 9), 30.0)]
    assert (chosen([*pilot(0.01, 0.01), *odd]).within or 0) > 0.01


@pytest.mark.parametrize(
    "runs", [[], pilot(0.1, 0.1, blocks=1), pilot(0.1, 0.1, windows=1), pilot(0.1, 0.1, arms=("base",))]
)
def test_what_cannot_tell_keeps_the_pilot_s_length_and_says_so(runs: list[PilotRun]) -> None:
    choice = chosen(runs)
    assert choice.measure_s == 10.0
    assert choice.why_not is not None
    assert choice.why_not in choice.sentence


def test_the_longest_is_ten_times_the_pilot_unless_said() -> None:
    assert most_s(InterleaveSpec(measure="auto"), 30.0) == 300.0
    assert most_s(InterleaveSpec(measure="auto", measure_most_s=90.0), 30.0) == 90.0


def test_a_choice_is_told_and_survives_json() -> None:
    choice = chosen(pilot(0.05, 0.02))
    assert TypeAdapter(Choice).validate_json(json.dumps(asdict(choice))) == choice
    assert "instead of 10 s" in choice.sentence


def noises(kind: str, rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> Any:
    """Of standard deviation `spread`."""
    if kind == "heavy":
        return rng.standard_t(3, shape) * spread / math.sqrt(3)
    if kind == "skewed":
        return (rng.lognormal(0, 1, shape) - math.exp(0.5)) * spread / math.sqrt((math.e - 1) * math.e)
    return rng.normal(0, spread, shape)


@pytest.mark.parametrize("kind", ["normal", "heavy", "skewed", "windows"])
@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_counting_the_pilot_and_choosing_by_it_keeps_the_coverage(kind: str, effect: float) -> None:
    """1,000 studies, cap 40: standard error of 95 % is 0.7 %. `windows`: their noise is what counts most."""
    rng, rule = np.random.default_rng([23, len(kind), round(100 * effect)]), Rule(blocks=40)
    between, within = (0.005, 0.10) if kind == "windows" else (0.015, 0.04)
    covered = wolf = 0
    lengths = set()
    for _ in range(1000):
        starts = noises(kind, rng, (2, 40), between)
        first = np.exp(starts[:, :4, None] + rng.normal(0, within, (2, 4, 10)))
        runs = [
            PilotRun(block, arm, tuple(first[side, block].tolist()), 30.0)
            for block in range(4)
            for side, arm in enumerate(("base", "arm"))
        ]
        windows = chosen(runs).windows
        lengths.add(windows)
        later = starts[:, 4:] + rng.normal(0, within / math.sqrt(windows), (2, 36))
        sides = np.concatenate([np.log(first.mean(axis=2)), later], axis=1)
        logs = sides[1] - sides[0] + math.log1p(-effect)
        for n in (n for n in range(1, 41) if rule.looks_at(n)):
            mean, half = float(logs[:n].mean()), float(reach(logs[:n], rule.alpha))
            if n == 40 or math.expm1(mean + half) - math.expm1(mean - half) <= 0.04:
                break
        covered += abs(mean - math.log1p(-effect)) <= half
        wolf += abs(mean) > half
    assert len(lengths) > 10
    assert covered / 1000 >= 0.93
    assert effect != 0 or wolf / 1000 <= 0.06


def test_arms_with_more_rounds_weigh_more_by_their_degrees_of_freedom() -> None:
    runs = pilot(0.05, 0.02, blocks=6)
    runs += [replace(run, arm="other") for run in pilot(0.02, 0.08, blocks=3, seed=2) if run.arm == "arm"]
    both = chosen(runs, {"arm": "base", "other": "base"})
    one, other = chosen(runs, {"arm": "base"}), chosen(runs, {"other": "base"})
    for part in ("within", "between"):
        six, three = getattr(one, part), getattr(other, part)
        assert six != pytest.approx(three)
        assert getattr(both, part) == pytest.approx((5 * six + 2 * three) / 7)
