"""Each rule finds what it is for, tells the runs, and leaves clean studies alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import measured

from tare.analyze.metrics import METRICS
from tare.analyze.runs import select_runs
from tare.analyze.validity import RULES, Alarm, check
from tare.analyze.validity.blocks import grubbs_share
from tare.analyze.validity.series import pettitt
from tare.record.network_path import Hop, NetworkPath
from tare.record.run_record import RunRecord
from tare.record.usage import Usage
from tare.study.model import Imported
from tare.study.protocol_spec import InterleaveSpec

ARMS = ("bare", "bridge")
MACHINE = {
    "user": 6.0,
    "nice": 0.0,
    "system": 1.0,
    "idle": 0.9,
    "iowait": 0.0,
    "irq": 0.0,
    "softirq": 0.1,
    "steal": 0.0,
}


def usage(**changes: Any) -> dict[str, Any]:
    """4 s on two CPUs: the SUT has one to itself and uses it, the client uses 3 s of the other."""
    verdicts = {
        "wall_s": 4.0, "monotonic_s": 4.0, "sut_cpu_s": 3.95, "client_cpu_s": 3.0, "proxy_cpu_s": None,
        "sut_cpus": 1.0, "client_cpus": 1.0, "machine": dict(MACHINE),
    }  # fmt: skip
    return {**verdicts, **changes}


def windows(values: Sequence[float]) -> list[dict[str, float]]:
    return [{"end_s": n + 1.0, "throughput_per_s": value} for n, value in enumerate(values)]


def study(
    blocks: int = 12, *, seed: int = 1, arms: Sequence[str] = ARMS, length: int = 0,
    change: Callable[[dict[str, Any]], None] | None = None, factor: Callable[[int, str, int], float] | None = None,
) -> list[RunRecord]:  # fmt: skip
    """Clean runs: log-normal noise of block and run, noise of windows, of steal and of other work."""
    rng = np.random.default_rng(seed)
    made = []
    for block in range(blocks):
        shift = rng.normal(0, 0.02)
        for position, n in enumerate(rng.permutation(len(arms))):
            arm = arms[n]
            effect = factor(block, arm, position) if factor else 1.0
            tps = 1900 * effect * math.exp(shift + rng.normal(0, 0.012))
            machine = {**MACHINE, "steal": abs(rng.normal(0, 0.02)), "softirq": abs(rng.normal(0.1, 0.05))}

            def alter(tree: dict[str, Any], tps: float = tps, machine: dict[str, float] = machine) -> None:
                tree["usage"] = usage(machine=machine)
                tree["measurement"]["windows"] = windows(list(tps * np.exp(rng.normal(0, 0.03, length))))
                if change is not None:
                    change(tree)

            made.append(synthetic.changed(synthetic.record(block, arm, tps, position=position), alter))
    return made


def alarms(records: Sequence[RunRecord], arms: Sequence[str] = ARMS) -> list[Alarm]:
    whole = synthetic.study(tuple(arms))
    return list(check(whole, select_runs(whole, records)))


def only(records: Sequence[RunRecord], rule: str) -> Alarm:
    """The one alarm of a rule."""
    (found,) = [alarm for alarm in alarms(records) if alarm.rule == rule]
    return found


def in_arm(arm: str, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    return lambda tree: change(tree) if tree["arm"] == arm else None


def set_usage(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda tree: tree["usage"].update(changes)


def test_a_client_at_its_limit_is_found_while_the_sut_is_not() -> None:
    alarm = only(study(change=in_arm("bridge", set_usage(client_cpu_s=3.9, sut_cpu_s=2.0))), "client-bottleneck")
    assert alarm.arm == "bridge"
    assert len(alarm.runs) == 12
    assert "97.5 %" in alarm.what
    assert "50.0 %" in alarm.what


def traced(
    client: dict[str, float | None], sut: dict[str, float | None] | None = None
) -> Callable[[dict[str, Any]], None]:
    """Both sides half busy, but for what is given."""
    idle = {"cpus": 1.0, "busy": 0.5, "waiting": 0.2, "throttled": None}
    return set_usage(saturation={"sut": {**idle, **(sut or {})}, "client": {**idle, **client}})


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ({"busy": 0.93}, "the client used 93.0 % of the CPU time that it could use and the SUT used 50.0 %"),
        (
            {"waiting": 0.85},
            "used 50.0 % of the CPU time that it could use and waited for a CPU 85.0 % of the time",
        ),
        ({"throttled": 0.6}, "was throttled 60.0 % of the time"),
    ],
)
def test_a_client_at_its_limit_is_found_in_the_traces(client: dict[str, float | None], words: str) -> None:
    alarm = only(study(change=in_arm("bridge", traced(client))), "client-bottleneck")
    assert alarm.arm == "bridge"
    assert words in alarm.what


def test_what_the_trace_tells_goes_before_what_was_read_at_both_ends() -> None:
    """A client of one thread on two CPUs is at its limit with half of them; so is one that began late."""

    def both(tree: dict[str, Any]) -> None:
        set_usage(client_cpu_s=0.5, sut_cpu_s=2.0)(tree)
        tree["usage"]["saturation"] = {"client": {"cpus": 1.0, "busy": 0.95}, "sut": {"cpus": 1.0, "busy": 0.5}}

    assert only(study(change=in_arm("bridge", both)), "client-bottleneck").arm == "bridge"


@pytest.mark.parametrize("sut", [{"busy": 0.95}, {"waiting": 0.9}, {"throttled": 0.7}])
def test_a_client_that_waits_beside_a_server_at_its_limit_is_no_bottleneck(sut: dict[str, float | None]) -> None:
    assert not alarms(study(change=traced({"busy": 0.95, "waiting": 0.9}, sut)))


def split(**client_ms: float) -> Callable[[dict[str, Any]], None]:
    """The latency around each percentile taken apart: 1 ms of the server's, and what the client added."""
    parts = {"sampled": 100, "lag_ms": 0.0, "waiting_ms": 0.0, "server_ms": 1.0, "unread_ms": 0.0}

    def change(tree: dict[str, Any]) -> None:
        tree["measurement"]["parts"] = {"p50": parts, "p99": {**parts, **client_ms}}

    return change


def test_a_percentile_that_the_client_made_is_void() -> None:
    alarm = only(study(change=in_arm("bridge", split(lag_ms=0.5, unread_ms=0.7))), "client-latency")
    assert alarm.arm == "bridge"
    assert "the client made 54.5 % of p99" in alarm.what
    assert "this percentile is void" in alarm.what
    assert len(alarm.runs) == 12


@pytest.mark.parametrize("parts", [{"lag_ms": 0.4, "unread_ms": 0.4}, {"waiting_ms": 50.0}])
def test_waiting_for_a_slow_server_is_not_the_client_s_doing(parts: dict[str, float]) -> None:
    assert not alarms(study(change=split(**parts)))


def test_two_busy_sides_are_no_client_bottleneck() -> None:
    assert not alarms(study(change=set_usage(client_cpu_s=3.9)))


def test_steal_that_comes_with_an_arm_is_found() -> None:
    def stolen(tree: dict[str, Any]) -> None:
        tree["usage"]["machine"]["steal"] += 0.4

    alarm = only(study(change=in_arm("bridge", stolen)), "machine-shift")
    assert alarm.arm == "bridge"
    assert "stolen by the hypervisor" in alarm.what
    assert " more of the machine than in the baseline's runs" in alarm.what


def test_work_of_others_that_comes_with_an_arm_is_found() -> None:
    def disturbed(tree: dict[str, Any]) -> None:
        tree["usage"]["machine"]["user"] += 0.6
        tree["usage"]["machine"]["idle"] -= 0.6

    assert "other programs" in only(study(change=in_arm("bridge", disturbed)), "machine-shift").what


def test_idle_time_that_the_arms_own_use_explains_is_no_shift() -> None:
    def cheap(tree: dict[str, Any]) -> None:
        tree["usage"]["sut_cpu_s"] -= 1.0
        tree["usage"]["machine"]["user"] -= 1.0
        tree["usage"]["machine"]["idle"] += 1.0

    assert not alarms(study(change=in_arm("bridge", cheap)))


def test_steal_in_all_arms_alike_is_no_shift() -> None:
    def stolen(tree: dict[str, Any]) -> None:
        tree["usage"]["machine"]["steal"] += 0.4

    assert not alarms(study(change=stolen))


def test_a_clock_that_was_set_is_found_in_its_run() -> None:
    def step(tree: dict[str, Any]) -> None:
        if tree["run_id"].startswith("b03") and tree["arm"] == "bridge":
            tree["usage"]["wall_s"] = 3.2

    assert [run.split("-")[0] for run in only(study(change=step), "clock-step").runs] == ["b03"]
    assert not alarms(study(change=set_usage(wall_s=4.04)))


@pytest.mark.parametrize("length", [8, 60])
def test_a_warm_up_that_is_not_over_is_found(length: int) -> None:
    def cold(tree: dict[str, Any]) -> None:
        for window in tree["measurement"]["windows"][: length // 4]:
            window["throughput_per_s"] *= 0.8

    alarm = only(study(length=length, change=in_arm("bridge", cold)), "warm-up")
    assert (alarm.arm, len(alarm.runs)) == ("bridge", 12)
    assert "slower" in alarm.what


def test_a_change_in_the_middle_of_one_run_is_found_in_that_run() -> None:
    def slower(tree: dict[str, Any]) -> None:
        if tree["run_id"].startswith("b05") and tree["arm"] == "bare":
            for window in tree["measurement"]["windows"][30:]:
                window["throughput_per_s"] *= 0.85

    alarm = only(study(length=60, change=slower), "change-point")
    assert (alarm.arm, len(alarm.runs)) == ("bare", 1)


def test_pettitt_finds_the_place_of_a_change() -> None:
    at, p = pettitt([1.0, 1.1, 1.2, 1.05, 1.15, 5.0, 5.1, 5.2, 5.05, 5.15])
    assert at == 5
    assert p == pytest.approx(2 * math.exp(-6 * 25**2 / (1000 + 100)))  # K = 5 · 5


def test_a_place_in_the_block_that_matters_is_found() -> None:
    alarm = only(study(20, factor=lambda _block, _arm, position: 1 - 0.05 * position), "order-effect")
    assert "slower" in alarm.what


def test_runs_that_are_slow_where_the_hypervisor_steals_are_told_though_arms_are_alike() -> None:
    """As on a virtual machine whose host was overcommitted: 0 to 30 % stolen, in no arm more than in the other."""
    rng = np.random.default_rng(9)
    stolen = [[float(rng.uniform(0, 0.3)) for _ in ARMS] for _ in range(16)]

    def steal(tree: dict[str, Any]) -> None:
        part = stolen[tree["block"]][ARMS.index(tree["arm"])]
        tree["usage"]["machine"].update(steal=8 * part, idle=8 * (0.4 - part), user=3.7)

    alarm = only(
        study(16, change=steal, factor=lambda block, arm, _: 1 - stolen[block][ARMS.index(arm)]), "machine-noise"
    )
    assert alarm.arm is None
    assert "the hypervisor stole" in alarm.what
    assert len(alarm.runs) == 32


def test_a_drifting_ratio_is_found() -> None:
    drift = study(20, factor=lambda block, arm, _: math.exp(0.01 * block) if arm == "bridge" else 1.0)
    assert only(drift, "autocorrelation").arm == "bridge"


def test_a_block_that_makes_the_variance_alone_is_found() -> None:
    wild = study(12, factor=lambda block, arm, _: 0.6 if (block, arm) == (4, "bridge") else 1.0)
    alarm = only(wild, "dominating-block")
    assert "block 4 alone" in alarm.what
    assert len(alarm.runs) == 2


def test_the_largest_share_of_chance_is_that_of_grubbs_tables() -> None:
    # Grubbs & Beck, Technometrics 14 (1972), two-sided 1 %: 2.274 for n = 8, 3.001 for n = 20.
    assert grubbs_share(8) == pytest.approx(2.274**2 / 7, rel=2e-3)
    assert grubbs_share(20) == pytest.approx(3.001**2 / 19, rel=2e-3)


def test_few_blocks_are_told_and_eight_are_enough() -> None:
    alarm = only(study(7), "few-blocks")
    assert alarm.arm == "bridge"
    assert alarm.do == (
        "run the study again with 8 blocks or more; --blocks would add some to this one, but without a target its "
        "intervals do not account for a second look"
    )
    assert not [alarm for alarm in alarms(study(8)) if alarm.rule == "few-blocks"]


def test_few_blocks_on_the_way_to_a_target_are_more_by_going_on_and_of_an_import_are_all() -> None:
    whole = synthetic.study(tuple(ARMS))
    to_target = whole.model_copy(update={"protocol": InterleaveSpec(blocks=7, target=0.02)})
    imported = whole.model_copy(update={"imported": Imported(origin="x", parser="csv", files=1)})
    for asked, advice in ((to_target, "resume with the same store"), (imported, "the source has no more")):
        warnings = [each for each in check(asked, select_runs(asked, study(7))) if each.rule == "few-blocks"]
        assert [advice in each.do for each in warnings] == [True]


def test_reconnects_in_a_run_that_counts_are_found() -> None:
    def reconnect(tree: dict[str, Any]) -> None:
        if tree["run_id"].startswith("b02") and tree["arm"] == "bare":
            tree["measurement"]["reconnects"] = 3

    assert len(only(study(change=reconnect), "errors").runs) == 1


def test_an_arm_that_often_fails_is_found() -> None:
    failed = [synthetic.record(block, "bridge", None, attempt=2, position=9) for block in range(3)]
    assert "3 of 15 attempts failed" in only([*study(), *failed], "errors").what


def test_runs_without_usage_or_windows_raise_no_alarm() -> None:
    bare = [run.model_copy(update={"usage": None}) for run in synthetic.records(ARMS, blocks=12)]
    assert alarms(bare) == []


def test_clean_studies_raise_few_alarms() -> None:
    """120 clean studies of three arms and 12 blocks, 60 windows a run: at most one in ten has any alarm at all."""
    arms = ("bare", "bridge", "host")
    raised = [[alarm.rule for alarm in alarms(study(seed=100 + n, arms=arms, length=60), arms)] for n in range(120)]
    by_rule = Counter(rule for rules in raised for rule in set(rules))
    assert sum(bool(rules) for rules in raised) <= 12, by_rule
    assert all(count <= 6 for count in by_rule.values()), by_rule


def test_blocks_on_another_cpu_set_are_compared_with_those_on_the_first() -> None:
    def moved(tree: dict[str, Any]) -> None:
        tree["parity"]["sut"]["cpus_allowed"] = "1" if tree["block"] % 2 else "0"

    slow = study(
        16, change=in_arm("bridge", moved), factor=lambda b, arm, _: 0.9 if arm == "bridge" and b % 2 else 1
    )
    alarm = only(slow, "core-effect")
    assert alarm.arm == "bridge"
    assert "on CPUs 0" in alarm.what
    assert "faster than on CPUs 1" in alarm.what
    assert not [each for each in alarms(study(16, change=in_arm("bridge", moved))) if each.rule == "core-effect"]


def busy_with_proxy(*, others: float = 1.2, idle: float = 0.1, proxy: float = 0.8) -> list[RunRecord]:
    """8 s of CPU time: the SUT 3 s in both arms, the client 1 s, the proxy in one arm alone, others the rest."""

    def alter(tree: dict[str, Any]) -> None:
        proxied = tree["arm"] == "bridge"
        used = proxy if proxied else 0.0
        tree["path"] = {"hop": "docker-proxy" if proxied else "bridge"}
        machine = {**MACHINE, "idle": idle, "system": 0.0, "softirq": 0.0, "user": 4.0 + used + others}
        tree["usage"] = usage(
            sut_cpu_s=3.0, client_cpu_s=1.0, proxy_cpu_s=used if proxied else None, machine=machine
        )

    return study(change=alter)


def test_a_proxy_that_brings_cpu_weight_of_its_own_to_a_full_machine_is_found() -> None:
    alarm = only(busy_with_proxy(), "proxy-weight")
    assert (alarm.arm, len(alarm.runs)) == ("bridge", 12)
    assert "had 0.95 CPUs where the baseline had 0.75" in alarm.what
    assert "CPU time per operation" in alarm.do


@pytest.mark.parametrize("quiet", [{"idle": 2.0}, {"others": 0.05}, {"proxy": 0.02}])
def test_a_proxy_takes_nothing_from_anybody_while_there_is_room(quiet: dict[str, float]) -> None:
    assert not [alarm for alarm in alarms(busy_with_proxy(**quiet)) if alarm.rule == "proxy-weight"]


def test_a_proxy_whose_time_is_unknown_is_not_judged() -> None:
    def unknown(tree: dict[str, Any]) -> None:
        tree["usage"]["proxy_cpu_s"] = None

    blind = [synthetic.changed(run, unknown) for run in busy_with_proxy()]
    assert not [alarm for alarm in alarms(blind) if alarm.rule in ("proxy-weight", "machine-shift")]


def test_windows_of_less_than_one_operation_a_second_are_judged_like_any() -> None:
    def slow(tree: dict[str, Any]) -> None:
        for n, window in enumerate(tree["measurement"]["windows"]):
            window["throughput_per_s"] *= (0.8 if n < 15 and tree["arm"] == "bridge" else 1.0) / 1e4

    assert only(study(length=60, change=slow), "warm-up").arm == "bridge"


def test_one_block_is_told_in_the_singular() -> None:
    assert only(study(1), "few-blocks").what.startswith("1 block; with fewer than 8")


def test_every_rule_is_documented_with_its_threshold(request: pytest.FixtureRequest) -> None:
    text = (request.config.rootpath / "docs" / "concepts" / "validity.md").read_text()
    missing = [name for name in RULES if f"| `{name}` |" not in text]
    assert not missing, f"give {missing} a row each in docs/concepts/validity.md: alarm, and why this threshold"


def test_cpu_per_operation_counts_the_proxy_and_is_unknown_without_it() -> None:
    (run, *_) = study(1)
    assert METRICS["cpu_per_operation"].of(run) == pytest.approx(3.95e6 / measured(run).done)
    carried = run.model_copy(update={"path": NetworkPath(Hop.DOCKER_PROXY)})
    assert METRICS["cpu_per_operation"].of(carried) is None
    known = carried.model_copy(update={"usage": Usage(**usage(proxy_cpu_s=1.0))})
    assert METRICS["cpu_per_operation"].of(known) == pytest.approx(4.95e6 / measured(run).done)
