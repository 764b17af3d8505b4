"""Each rule keeps silent just below its documented threshold, and speaks just above it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]  # has no stubs
from scipy import stats
from tests.unit.analyze import synthetic
from tests.unit.analyze.validity.test_rules import MACHINE, alarms, only, traced, usage, windows
from tests.unit.record.parts import rate_of

from tare.analyze.runs import select_runs
from tare.analyze.validity import check
from tare.analyze.validity.blocks import grubbs_share
from tare.analyze.validity.evidence import shift
from tare.analyze.validity.series import pettitt
from tare.record.run_record import RunRecord
from tare.study.protocol_spec import FixedSpec, InterleaveSpec

BARE, BRIDGE = "bare", "bridge"
Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize(("unread_ms", "void"), [(0.999, False), (1.0, True)])
def test_a_percentile_is_void_from_half_on(unread_ms: float, void: bool) -> None:
    parts = {"sampled": 9, "lag_ms": 0.0, "waiting_ms": 0.0, "server_ms": 1.0, "unread_ms": unread_ms}

    def change(tree: dict[str, Any]) -> None:
        tree["usage"] = usage()
        tree["measurement"]["parts"] = {"p99.9": parts}

    records = [
        synthetic.changed(synthetic.record(block, arm, 1900.0 * (1 + block / 500)), change)
        for block in range(8)
        for arm in (BARE, BRIDGE)
    ]
    assert bool([each for each in alarms(records) if each.rule == "client-latency"]) == void


def runs(
    ratios: Sequence[float],
    change: Change | None = None,
    *,
    first: Callable[[int], bool] = lambda block: bool(block % 2),
) -> list[RunRecord]:
    """A block for each ratio of bridge to bare; bare is first in every second block, or where `first` says so."""
    made = []
    for block, ratio in enumerate(ratios):
        for arm, tps in ((BARE, 1900.0), (BRIDGE, 1900 * ratio)):

            def alter(tree: dict[str, Any]) -> None:
                tree["usage"] = usage()
                if change is not None:
                    change(tree)

            position = int((arm == BARE) is not first(block))
            made.append(synthetic.changed(synthetic.record(block, arm, tps, position=position), alter))
    return made


def noisy(blocks: int, spread: float = 0.01, seed: int = 1) -> list[float]:
    """Ratios around 1; consecutive ones are as likely alike as not."""
    return [float(each) for each in np.exp(np.random.default_rng(seed).normal(0, spread, blocks))]


def warns(records: Sequence[RunRecord], rule: str) -> bool:
    return any(alarm.rule == rule for alarm in alarms(records))


def in_bridge(change: Change) -> Change:
    return lambda tree: change(tree) if tree["arm"] == BRIDGE else None


@pytest.mark.parametrize(("delivered", "short"), [(0.991, False), (0.989, True)])
def test_under_delivery_is_more_than_one_percent(delivered: float, short: bool) -> None:
    def less(tree: dict[str, Any]) -> None:
        tree["measurement"]["details"] = {"delivered_share": delivered}

    assert warns(runs(noisy(8), in_bridge(less)), "under-delivery") is short


@pytest.mark.parametrize(("good", "failed", "many"), [(18, 2, False), (17, 2, True), (4, 1, False), (3, 2, True)])
def test_failures_are_many_from_one_in_ten_and_two_on(good: int, failed: int, many: bool) -> None:
    lost = [synthetic.record(block, BRIDGE, None, attempt=2, position=9) for block in range(failed)]
    assert warns([*runs(noisy(good)), *lost], "errors") is many


def test_an_arm_whose_runs_all_failed_is_told_and_not_passed_over() -> None:
    lost = [synthetic.record(block, BRIDGE, None, attempt=n, position=1) for block in range(8) for n in (1, 2)]
    found = [*(run for run in runs(noisy(8)) if run.arm == BARE), *lost]
    assert "16 of 16 attempts failed, so this arm has no result" in only(found, "errors").what
    assert not warns(found, "few-blocks")


def test_a_single_failed_attempt_is_told_where_it_leaves_an_arm_without_a_result() -> None:
    lost = [synthetic.record(1, BRIDGE, None, position=1)]
    found = [*(run for run in runs(noisy(8)) if run.arm == BARE), *lost]
    assert only(found, "errors").what == "1 of 1 attempts failed, so this arm has no result"


@pytest.mark.parametrize(
    ("client", "bound"),
    [
        ({"busy": 0.89}, False), ({"busy": 0.91}, True), ({"waiting": 0.80}, False), ({"waiting": 0.82}, True),
        ({"throttled": 0.49}, False), ({"throttled": 0.51}, True),
    ],
)  # fmt: skip
def test_a_client_is_at_its_limit_from_the_documented_shares_on(client: dict[str, Any], bound: bool) -> None:
    assert warns(runs(noisy(8), in_bridge(traced(client))), "client-bottleneck") is bound


@pytest.mark.parametrize(("limited", "bound"), [(4, False), (5, True)])
def test_the_client_sets_the_rate_where_it_does_so_in_most_runs(limited: int, bound: bool) -> None:
    def some(tree: dict[str, Any]) -> None:
        if tree["block"] < limited:
            traced({"busy": 0.95})(tree)

    assert warns(runs(noisy(8), in_bridge(some)), "client-bottleneck") is bound


@pytest.mark.parametrize(
    ("mode", "share", "shifted"),
    [("steal", 0.004, False), ("steal", 0.006, True), ("user", 0.018, False), ("user", 0.022, True)],
)
def test_a_machine_is_another_from_the_documented_shares_on(mode: str, share: float, shifted: bool) -> None:
    """Of 8 CPU seconds; what is stolen or used by others was idle before."""

    def moved(tree: dict[str, Any]) -> None:
        jitter = 1e-4 * (tree["block"] % 3)
        tree["usage"]["machine"][mode] += 8 * share + jitter
        tree["usage"]["machine"]["idle"] -= 8 * share + jitter

    assert sum(MACHINE.values()) == pytest.approx(8.0)
    assert warns(runs(noisy(8), in_bridge(moved)), "machine-shift") is shifted


def test_a_shift_is_real_beyond_the_99_percent_t_interval() -> None:
    """8 values of deviation 1 whose mean is t standard errors from zero; t(7; 0.995) = 3.4995."""
    shape = np.array([-1.0, 1.0] * 4) / math.sqrt(8 / 7)
    for t, real in ((3.4, False), (3.6, True), (-3.4, False), (-3.6, True)):
        found = shift([float(each) for each in shape + t / math.sqrt(8)])
        assert found is not None
        assert found.real is real
    assert shift([5.0, 5.1, 5.2]) is None
    assert shift([5.0, 5.1, 5.2, 5.3]) is not None


@pytest.mark.parametrize(("wall_s", "stepped"), [(4.051, False), (4.053, True), (3.949, False), (3.947, True)])
def test_a_clock_is_set_beyond_50_ms_and_500_ppm(wall_s: float, stepped: bool) -> None:
    def slewed(tree: dict[str, Any]) -> None:
        tree["usage"]["wall_s"] = wall_s

    assert warns(runs(noisy(8), slewed), "clock-step") is stepped


@pytest.mark.parametrize(("slower", "cold"), [(0.018, False), (0.022, True)])
def test_a_beginning_is_cold_from_two_percent_on(slower: float, cold: bool) -> None:
    def begin(tree: dict[str, Any]) -> None:
        head = math.exp(-slower - 1e-3 * (tree["block"] % 2))
        tree["measurement"]["windows"] = windows([1900 * head] * 2 + [1900.0] * 6)

    assert warns(runs(noisy(8), in_bridge(begin)), "warm-up") is cold


def stepping(before: int, after: int, factor: float, in_block: int | None = None) -> Change:
    """Windows of all runs of bridge; those of one block, or of all, change after `before`."""

    def change(tree: dict[str, Any]) -> None:
        ripple = 1 + 1e-4 * (np.arange(before + after) * 7 % 11 - 5)
        level = np.array([1.0] * before + [factor] * after)
        if in_block is not None and tree["block"] != in_block:
            level[:] = 1.0
        tree["measurement"]["windows"] = windows([float(each) for each in 1900 * ripple * level])

    return change


@pytest.mark.parametrize(("factor", "changed"), [(0.955, False), (0.945, True)])
def test_a_change_point_is_a_step_of_five_percent(factor: float, changed: bool) -> None:
    assert warns(runs(noisy(8), in_bridge(stepping(30, 30, factor, in_block=3))), "change-point") is changed


def test_a_change_point_takes_twenty_windows_and_is_judged_among_all_runs() -> None:
    """10 against 10: K = 100, p = 2 exp(-60000 / 8400) = 0.0016, which is below 0.01 but not below 0.01 / 16."""
    assert warns(runs([1.0], in_bridge(stepping(10, 10, 0.8))), "change-point")
    assert not warns(runs([1.0], in_bridge(stepping(10, 9, 0.8))), "change-point")
    assert not warns(runs(noisy(8), stepping(10, 10, 0.8, in_block=3)), "change-point")


def test_an_order_effect_is_what_least_squares_says_and_more_than_one_percent() -> None:
    """Against statsmodels with a dummy for every block and arm: told iff p < 0.01 and more than 1 %."""
    rng, seen = np.random.default_rng(4), set()
    for effect in (0.009, 0.011, 0.02, 0.03):
        for _ in range(6):
            places = [bool(each) for each in rng.permutation([True, False] * 6)]
            ratios = [math.exp(rng.normal(0, 0.02 if effect > 0.011 else 1e-4)) for _ in places]
            ratios = [
                ratio * math.exp(effect if bare_first else -effect)
                for ratio, bare_first in zip(ratios, places, strict=True)
            ]
            found = runs(ratios, first=places.__getitem__)
            rows = [
                [run.position, float(run.arm == BRIDGE), *(float(run.block == block) for block in range(12))]
                for run in found
            ]
            fit = sm.OLS([math.log(rate_of(run)) for run in found], rows).fit()
            expected = bool(fit.pvalues[0] < 0.01 and abs(math.expm1(fit.params[0])) > 0.01)
            assert warns(found, "order-effect") is expected
            seen.add((effect > 0.01, expected))
    assert seen == {(False, False), (True, True), (True, False)}


def test_noise_of_the_machine_is_what_least_squares_says_and_more_than_one_percent_a_block() -> None:
    """Against statsmodels with a dummy for every block and arm: told iff p < 0.01, and slower by more than 1 %."""
    rng, seen = np.random.default_rng(5), set()
    for slope, spread in ((-0.12, 1e-4), (-0.18, 1e-4), (-0.5, 0.02), (-1.0, 0.02), (0.5, 1e-4)):
        for _ in range(4):
            stolen = {(block, arm): float(rng.uniform(0, 0.2)) for block in range(12) for arm in (BARE, BRIDGE)}

            def steal(tree: dict[str, Any], stolen: dict[tuple[int, str], float] = stolen) -> None:
                part = stolen[tree["block"], tree["arm"]]
                tree["usage"]["machine"]["steal"] += 8 * part
                tree["usage"]["machine"]["idle"] -= 8 * part

            ratios = [
                math.exp(slope * (stolen[block, BRIDGE] - stolen[block, BARE]) + rng.normal(0, spread))
                for block in range(12)
            ]
            found = runs(ratios, steal)
            rows = [
                [
                    stolen[run.block, run.arm],
                    float(run.arm == BRIDGE),
                    *(float(run.block == block) for block in range(12)),
                ]
                for run in found
            ]
            fit = sm.OLS([math.log(rate_of(run)) for run in found], rows).fit()
            reach = float(np.mean([abs(stolen[block, BRIDGE] - stolen[block, BARE]) for block in range(12)]))
            expected = bool(fit.pvalues[0] < 0.01 and math.expm1(fit.params[0] * reach) < -0.01)
            assert warns(found, "machine-noise") is expected
            seen.add((slope, expected))
    assert {(-0.12, False), (-1.0, True), (0.5, False)} <= seen


@pytest.mark.parametrize(("faster", "apart"), [(1.018, False), (1.022, True)])
def test_cpu_sets_of_a_duet_are_apart_from_two_percent_on(faster: float, apart: bool) -> None:
    def with_slot(tree: dict[str, Any]) -> None:
        cpus = ["0", "1"] if tree["position"] == 0 else ["1", "0"]
        rates = [1900 * (faster if cpu == "1" else 1.0) * (1 + 1e-4 * (tree["block"] % 3)) for cpu in cpus]
        halves = [{"windows": 3, "throughput_per_s": rate} for rate in rates]
        tree["duet"] = {"partner": "other", "cpus": cpus, "halves": halves}

    assert warns(runs(noisy(8), with_slot), "core-effect") is apart


def test_blocks_on_other_cpus_are_apart_by_welch_from_four_of_each_on() -> None:
    """Told iff p < 0.01, the means differ by over 2 %, and there are four blocks on either set."""
    seen = set()
    for seed in range(24):
        moved = 3 + seed % 3
        ratios = [ratio * (1.05 if block < moved else 1.0) for block, ratio in enumerate(noisy(12, 0.03, seed))]

        def placed(tree: dict[str, Any], moved: int = moved) -> None:
            tree["parity"]["sut"]["cpus_allowed"] = "1" if tree["block"] < moved else "0"

        logs = np.log(ratios)
        p = float(stats.ttest_ind(logs[:moved], logs[moved:], equal_var=False).pvalue)
        apart = abs(math.expm1(logs[:moved].mean() - logs[moved:].mean())) > 0.02
        expected = bool(p < 0.01 and apart and moved >= 4)
        assert warns(runs(ratios, in_bridge(placed)), "core-effect") is expected
        seen.add((p < 0.01, moved >= 4))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("idle", "others", "more", "weighs"),
    [
        (0.045, 0.10, 1.10, True), (0.055, 0.10, 1.10, False), (0.01, 0.022, 1.10, True),
        (0.01, 0.018, 1.10, False), (0.01, 0.10, 1.025, True), (0.01, 0.10, 1.015, False),
    ],
)  # fmt: skip
def test_a_proxy_weighs_on_a_full_machine_from_the_documented_shares_on(
    idle: float,
    others: float,
    more: float,
    weighs: bool,
) -> None:
    """Of 8 CPU seconds the SUT has 3, the proxy what the arm has more than that, others their share."""

    def full(tree: dict[str, Any]) -> None:
        proxied = tree["arm"] == BRIDGE
        used = 3.0 * (more - 1) if proxied else 0.0
        tree["path"] = {"hop": "docker-proxy" if proxied else "bridge"}
        machine = dict.fromkeys(MACHINE, 0.0) | {"idle": 8 * idle, "user": 8 * (1 - idle)}
        client = 8 * (1 - idle - others) - 3.0 - used
        tree["usage"] = usage(
            sut_cpu_s=3.0, client_cpu_s=client, proxy_cpu_s=used if proxied else None, machine=machine
        )

    assert warns(runs(noisy(8), full), "proxy-weight") is weighs


def test_correlated_blocks_are_those_above_the_one_sided_one_percent_of_bartlett() -> None:
    """r above 2.33 / √n, r worked out here; 16 blocks: 0.5825."""
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        logs = np.cumsum(rng.normal(0, 0.01, 16)) * rng.uniform(0.2, 1) + rng.normal(0, 0.01, 16)
        around = logs - logs.mean()
        r = float((around[1:] * around[:-1]).sum() / (around**2).sum())
        assert warns(runs([float(each) for each in np.exp(logs)]), "autocorrelation") is (r > 0.5825)
        seen.add(math.floor(10 * r))
    assert {4, 5, 6} <= seen


@pytest.mark.parametrize(("share", "decides"), [(0.24, False), (0.26, True)])
def test_one_block_of_many_decides_from_a_quarter_of_the_variance_on(share: float, decides: bool) -> None:
    """Of 80 blocks, where Grubbs's 1 % point is below a quarter: 40 at -1, 39 at 1, one at x above the mean."""
    assert grubbs_share(80) < 0.23
    rest = np.array([-1.0, 1.0] * 39 + [-1.0])
    low, high = 1.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        logs = np.append(rest, middle)
        squares = (logs - logs.mean()) ** 2
        low, high = (middle, high) if squares[-1] / squares.sum() < share else (low, middle)
    ratios = [float(each) for each in np.exp(0.002 * np.append(rest, low))]
    assert warns(runs(ratios), "dominating-block") is decides


def under(records: Sequence[RunRecord], digest: str, since: int) -> list[RunRecord]:
    """As if the blocks from `since` on had been made after the cap was raised."""
    return [run.model_copy(update={"plan_digest": digest}) if run.block >= since else run for run in records]


def test_blocks_added_after_a_look_that_no_alpha_pays_for_are_told() -> None:
    whole = runs(noisy(16))
    assert "(2 plans)" in only(under(whole, "f" * 64, 8), "extended").what
    assert not warns(whole, "extended")


def test_adding_blocks_towards_a_target_is_what_its_alpha_is_for() -> None:
    later = under(runs(noisy(16)), "f" * 64, 8)
    for spec, rules in ((InterleaveSpec(), []), (FixedSpec(name="fixed", blocks=16), ["extended"])):
        study = synthetic.study((BARE, BRIDGE)).model_copy(update={"protocol": spec})
        raised = [alarm.rule for alarm in check(study, select_runs(study, later)) if alarm.rule == "extended"]
        assert raised == rules


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tree: tree["parity"].update(sut=None), "what is in force around the SUT could not"),
        (lambda tree: tree["parity"].update(client=None), "what is in force around the client could not"),
        (lambda tree: tree["parity"].update(sut_after=None), "after the measure phase could not"),
        (lambda tree: tree.update(path=None), "the network path could not"),
        (lambda tree: tree.update(path={"hop": None}), "the network path could not"),
    ],
)
def test_a_run_whose_surroundings_nobody_saw_is_told(change: Change, words: str) -> None:
    def in_one(tree: dict[str, Any]) -> None:
        if (tree["arm"], tree["block"]) == (BRIDGE, 2):
            change(tree)

    alarm = only(runs(noisy(8), in_one), "unobserved")
    assert words in alarm.what
    assert len(alarm.runs) == 1


def test_a_program_that_is_itself_the_sut_has_no_client_and_no_path_to_see() -> None:
    def alone(tree: dict[str, Any]) -> None:
        tree["settings"]["client"], tree["parity"]["client"], tree["path"] = None, None, None

    assert not warns(runs(noisy(8), alone), "unobserved")


@pytest.mark.parametrize("before", [7, 8])
def test_pettitt_counts_the_values_before_the_change(before: int) -> None:
    values = [100.0 + n % 3 for n in range(before)] + [200.0 + n % 3 for n in range(15 - before)]
    at, p = pettitt(values)
    k = before * (15 - before)
    assert at == before
    assert p == pytest.approx(2 * math.exp(-6 * k**2 / (15**3 + 15**2)))


def test_one_process_killed_for_memory_in_a_good_run_is_told_with_its_run() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["usage"] = usage() | {"sut_oom_kills": 2 if tree["block"] == 3 else 0}

    alarm = only(runs(noisy(8), in_bridge(change)), "oom-kills")
    assert alarm.arm == BRIDGE
    assert "(2 in all)" in alarm.what
    assert [run[:3] for run in alarm.runs] == ["b03"]
    assert not warns(runs(noisy(8)), "oom-kills")
