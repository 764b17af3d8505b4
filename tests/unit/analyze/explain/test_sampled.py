from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tare.analyze.explain.components import NOT_NAMED, components
from tare.analyze.explain.sampled import OF_OPERATION, CpuSide, between_hosts, sampled, side_of
from tare.monitors.profile.stacks import ProfileFacts, StackProfile, read_profile
from tare.record.load_time import Span
from tare.record.turns import Turns

REAL = Path(__file__).resolve().parents[3] / "data" / "explain" / "nat.parquet"
"""Six seconds of redis-benchmark and Redis (`sut`) behind a bridge and DNAT, on two CPUs that others used too."""
NETFILTER = "[x];do_syscall_64_[k];tcp_sendmsg_[k];nf_hook_slow_[k]"
S = 1_000_000_000


def profile(*rows: tuple[int, int, str, str, str], **changes: int) -> StackProfile:
    facts: dict[str, int] = {
        "profile_version": 1, "rate_hz": 100, "period_ns": 10_000_000, "cpus": 2, "began_ns": 10 * S,
        "ended_ns": 14 * S, "slot_ns": S, "samples": 800, "lost": 0, "crowded": 0, "cpu_ns": 0,
    } | changes  # fmt: skip
    schema = {
        "at_ns": pl.Int64,
        "samples": pl.Int64,
        "subject": pl.String,
        "command": pl.String,
        "stack": pl.String,
    }
    frame = pl.DataFrame(list(rows), schema=schema, orient="row")
    return StackProfile(ProfileFacts(kernel="6.18", kernel_symbols_missing=None, **facts), frame)


def test_only_the_measure_phase_counts_and_a_slot_at_its_edge_by_its_share() -> None:
    shares = sampled(
        profile(*((at * S, 40, "sut", "db", NETFILTER) for at in range(10, 14))), Span(11.5, 13.0), components()
    )
    assert shares.seconds == pytest.approx(1.5)
    assert shares.cpu_s == {(CpuSide.SERVER, "netfilter"): pytest.approx((0.5 + 1) * 40 * 0.01)}
    assert shares.stacks == {(CpuSide.SERVER, f"db;{NETFILTER}"): pytest.approx(0.6)}


def test_idle_is_told_apart_and_helpers_others_and_tare_are_sides() -> None:
    rows = [
        (10 * S, 10, name, name, "[x]") for name in ("sut-2", "client", "proxy", "engine", "tare", "other", "idle")
    ]
    shares = sampled(profile(*rows), Span(10, 14), components())
    assert shares.idle_s == pytest.approx(0.1)
    assert shares.of_side(CpuSide.SERVER) == pytest.approx(0.1)
    assert shares.of_side(CpuSide.HELPER) == pytest.approx(0.1)
    assert {side for side, _ in shares.cpu_s} == {"server", "client", "helper", "engine", "tare", "other"}


def test_each_program_that_carries_bytes_has_its_own_time() -> None:
    rows = [(10 * S, n, name, name, "[x]") for n, name in ((10, "proxy"), (20, "pasta"), (5, "shim"), (5, "sut"))]
    shares = sampled(profile(*rows), Span(10, 14), components())
    assert shares.carriers == {"docker-proxy": pytest.approx(0.1), "pasta": pytest.approx(0.2)}
    whole = between_hosts(shares, shares, one=False)
    assert whole.carriers["pasta"] == pytest.approx(0.4)
    assert between_hosts(shares, shares, one=True).carriers == shares.carriers


def test_lost_samples_are_a_share_of_all_that_were_due() -> None:
    assert sampled(profile(samples=300, lost=100), Span(10, 14), components()).lost == 0.25


@pytest.mark.parametrize(
    ("subject", "side"),
    [("sut", "server"), ("sut-3", "server"), ("storage", "server"), ("warm-up", "other"), ("shim", "shim"),
     ("client-shim", "shim"), ("proxy", "helper"), ("pasta", "helper"), ("slirp4netns", "helper"),
     ("rootlessport", "helper"), ("dockerd", "engine"), ("containerd", "engine"), ("engine", "engine"),
     ("ksoftirqd", "other"), ("softirq", "softirq"), ("kernel", "kernel"), ("tare-probe", "tare")],
)  # fmt: skip
def test_subjects_are_sides(subject: str, side: str) -> None:
    assert side_of(subject) == side


@pytest.mark.parametrize("command", ["docker-proxy", "pasta", "containerd-shim"])
def test_the_engine_s_programs_for_other_containers_are_no_part_of_an_operation(command: str) -> None:
    shares = sampled(profile((10 * S, 10, "engine", command, "[x]")), Span(10, 14), components())
    assert {side for side, _ in shares.cpu_s} == {CpuSide.ENGINE}
    assert CpuSide.ENGINE not in OF_OPERATION


def test_a_real_profile_tells_netfilter_and_the_bridge_and_hides_little() -> None:
    real = read_profile(REAL)
    shares = sampled(real, Span(real.facts.began_ns / 1e9, real.facts.ended_ns / 1e9), components())
    server = {component: used for (side, component), used in shares.cpu_s.items() if side is CpuSide.SERVER}
    kernel = sum(used for component, used in server.items() if component != "user")
    assert shares.cpus == 2
    assert server["netfilter"] / kernel > 0.05
    assert server["bridge"] > 0
    assert max(server, key=lambda name: server[name]) in {"tcp-ip", "user"}
    assert server.get(NOT_NAMED, 0.0) / kernel < 0.05
    # Two CPUs at 199 Hz for as long as it lasted; 5 % for a timer that is late on a busy machine.
    everything = sum(shares.cpu_s.values()) + shares.idle_s
    assert everything == pytest.approx(2 * shares.seconds, rel=0.05)


def test_samples_of_turns_are_told_from_those_between_them() -> None:
    began = np.array([10.05, 10.95, 12.03, 12.88, 13.42]) * S
    turns = Turns(began, began + 0.3 * S, 5 * 0.2, (10.0 * S, 14.0 * S))
    slots = np.arange(10 * S, 14 * S, S // 10).astype(np.float64)
    within = turns.within(slots, slots + S // 10) / S
    # In its turns, the server uses 0.9 CPUs, and another arm's 0; between them, 0.02 and 0.9.
    rows = [
        (int(at), round(1e5 * used), subject, "db", NETFILTER)
        for at, driven in zip(slots, within, strict=True)
        for subject, used in (("sut", 0.9 * driven + 0.02 * (0.1 - driven)), ("other", 0.9 * (0.1 - driven)))
    ]
    shares = sampled(profile(*rows, slot_ns=S // 10, period_ns=10_000), turns, components())
    assert shares.seconds == pytest.approx(1.0)
    assert shares.of_side(CpuSide.SERVER) == pytest.approx(0.9, rel=1e-3)
    assert shares.of_side(CpuSide.OTHER) == pytest.approx(0.0, abs=1e-3)
