"""Each tool's formula on readings small enough to be worked out by hand."""

from __future__ import annotations

import polars as pl
import pytest
from tests.unit.analyze.views.traces import MIB, cpu_ticks, readings, values

from tare.analyze.views import VIEWS
from tare.analyze.views.containers import rate

GIB = 2**30


def printed(tool: str, name: str, counters: pl.DataFrame) -> list[float | None]:
    (quantity,) = (each for each in VIEWS[tool].quantities if each.name == name)
    return values(quantity.formula(counters))


def group(
    usage_ms: list[int | None], system_ticks: list[int | None], at_s: list[float] | None = None
) -> pl.DataFrame:
    usage = [None if each is None else each * 1_000_000 for each in usage_ms]
    n = len(usage_ms)
    return readings(
        at_s or [float(each) for each in range(n)],
        usage_ns=usage,
        system_ticks=system_ticks,
        cpus=[2] * n,
        user_hz=[100] * n,
    )


def test_docker_divides_by_ticks_of_all_cpus_without_steal() -> None:
    # 600 ms of 2 CPUs' 2 s; then 600 ms while a tenth was stolen, so that the ticks of two CPUs are 1.8 s.
    assert printed("docker-stats", "cpu_percent", group([0, 600, 1200], [0, 200, 380])) == [
        60.0,
        pytest.approx(66.666667),
    ]


def test_docker_prints_zero_unless_both_counters_grew() -> None:
    assert printed("docker-stats", "cpu_percent", group([600, 600, 100], [0, 200, 400])) == [0.0, 0.0]
    assert printed("docker-stats", "cpu_percent", group([0, 600], [200, 200])) == [0.0]


def test_docker_cannot_be_told_without_the_host() -> None:
    assert printed("docker-stats", "cpu_percent", group([0, 600], [None, None])) == [None]


def test_docker_takes_inactive_page_cache_off_unless_nothing_would_be_left() -> None:
    memory = readings([0, 1], memory_bytes=[100, 100], inactive_file_bytes=[20, 100], cache_bytes=[30, 100])
    assert printed("docker-stats", "memory_bytes", memory) == [80, 100]
    assert printed("docker-stats", "memory_bytes_19_03", memory) == [70, 0]
    assert printed("podman-stats", "memory_bytes", memory) == [80, 0]
    assert printed("podman-stats", "memory_bytes_raw", memory) == [100, 100]
    assert printed("cadvisor", "working_set_bytes", memory) == [80, 0]
    assert printed("metrics-server", "memory_bytes", memory) == [80, 0]


def test_docker_memory_percent_is_of_the_limit() -> None:
    memory = readings([0], memory_bytes=[100 * MIB], inactive_file_bytes=[20 * MIB], limit_bytes=[160 * MIB])
    assert printed("docker-stats", "memory_percent", memory) == [50.0]


def test_an_empty_file_is_nothing_to_cadvisor_and_zero_to_docker_and_podman() -> None:
    empty = readings([0], read_bytes=[None], written_bytes=[None], bfq_read_bytes=[None], bfq_written_bytes=[None])
    assert printed("docker-stats", "block_written_bytes", empty) == [0]
    assert printed("podman-stats", "block_written_bytes", empty) == [0]
    assert printed("cadvisor", "fs_writes_bytes", empty) == [None]
    assert printed("cadvisor", "fs_reads_bytes", empty) == [None]


def test_docker_and_podman_print_what_the_interfaces_of_the_namespace_add_up_to() -> None:
    sums = readings([0, 1], rx_bytes=[5, 9], tx_bytes=[7, 8])
    for tool in ("docker-stats", "podman-stats"):
        assert printed(tool, "network_rx_bytes", sums) == [5, 9]
        assert printed(tool, "network_tx_bytes", sums) == [7, 8]


def test_only_cadvisor_reads_what_bfq_counted_and_prefers_it() -> None:
    both = readings([0], read_bytes=[5], written_bytes=[7], bfq_read_bytes=[50], bfq_written_bytes=[70])
    assert printed("docker-stats", "block_read_bytes", both) == [5]
    assert printed("podman-stats", "block_read_bytes", both) == [5]
    assert printed("cadvisor", "fs_reads_bytes", both) == [50]
    assert printed("cadvisor", "fs_writes_bytes", both) == [70]


def test_podman_metrics_server_and_the_counters_divide_by_time() -> None:
    late = group([0, 600, 500], [0, 1, 2], [0.0, 1.2, 2.2])
    assert printed("podman-stats", "cpu_percent", late) == [50.0, 0.0]
    assert printed("metrics-server", "cpu_cores", late) == [0.5, None]
    assert printed("tare-probe", "cpu_percent", late) == [50.0, None]


def cpus(samples: pl.DataFrame) -> list[float | None]:
    return values(samples.with_columns(pl.col("value") / 1e9))


def test_rate_extrapolates_half_a_gap_to_a_far_border() -> None:
    # Scrapes at 0, 1, 2 s, rate(…[5s]) at 2 s: the border at -3 s is farther than 1.1 gaps, so half a gap is added.
    steady = readings([0, 1, 2], usage_ns=[10**12, 10**12 + 600_000_000, 10**12 + 1_200_000_000])
    assert cpus(rate(steady, "usage_ns", 5.0)) == [
        pytest.approx((0.6 / 1) * (1 + 0.5) / 5),
        pytest.approx((1.2 / 2) * (2 + 0.5) / 5),
    ]


def test_rate_reaches_a_near_border_and_so_is_the_true_rate() -> None:
    steady = readings(range(8), usage_ns=[10**12 + n * 600_000_000 for n in range(8)])
    assert cpus(rate(steady, "usage_ns", 5.0))[-1] == pytest.approx(0.6)


def test_rate_never_reaches_back_before_the_counter_was_zero() -> None:
    # From 0.1 s to 1.1 s of CPU in one second: the counter was 0 a tenth of a second before the first scrape.
    young = readings([0, 1], usage_ns=[100_000_000, 1_100_000_000])
    assert cpus(rate(young, "usage_ns", 5.0)) == [pytest.approx(1.0 * (1 + 0.1) / 5)]


def test_rate_takes_a_fall_for_a_restart() -> None:
    # 1 s, then a new container that has used 0.5 s, then 1.1 s: increases of 0.5 and 0.6; zero was long ago enough.
    fell = readings([0, 1, 2], usage_ns=[10**9, 500_000_000, 1_100_000_000])
    assert cpus(rate(fell, "usage_ns", 5.0))[-1] == pytest.approx(1.1 * (2 + 0.5) / 2 / 5)


def test_rate_is_told_once_the_trace_is_as_long_as_its_range() -> None:
    steady = readings(range(8), usage_ns=[10**12 + n * 600_000_000 for n in range(8)])
    assert printed("cadvisor", "cpu_cores", steady) == [pytest.approx(0.6)] * 3
    assert printed("cadvisor", "cpu_cores", steady[:4]) == []


def test_rate_between_two_scrapes_is_their_slope() -> None:
    assert printed("cadvisor", "cpu_cores_irate", readings([0, 2], usage_ns=[0, 10**9])) == [0.5]
    again = readings([0, 2, 4], usage_ns=[5 * 10**9, 6 * 10**9, 10**9])
    assert printed("cadvisor", "cpu_cores_irate", again) == [0.5, 0.5]


def test_mpstat_divides_by_all_fields_with_steal_and_takes_guests_from_usr() -> None:
    ticks = cpu_ticks(
        [0, 1],
        user=[0, 40],
        guest=[0, 10],
        nice=[0, 5],
        system=[0, 10],
        idle=[0, 25],
        softirq=[0, 5],
        steal=[0, 15],
    )
    shown = {each.name: values(each.formula(ticks))[0] for each in VIEWS["mpstat"].quantities}
    assert shown == {
        "usr": 30.0, "nice": 5.0, "sys": 10.0, "iowait": 0.0, "irq": 0.0, "soft": 5.0, "steal": 15.0,
        "guest": 10.0, "gnice": 0.0, "idle": 25.0,
    }  # fmt: skip


def test_mpstat_calls_a_cpu_without_ticks_idle() -> None:
    still = cpu_ticks([0, 1])
    assert printed("mpstat", "idle", still) == [100.0]
    assert printed("mpstat", "usr", still) == [0.0]


def shares(ticks: pl.DataFrame) -> dict[str, float | None]:
    return {field: printed("mpstat", field, ticks)[0] for field in ("usr", "iowait", "idle")}


def test_mpstat_lets_iowait_fall_where_the_cpu_was_idle() -> None:
    assert shares(cpu_ticks([0, 1], iowait=[9, 5], idle=[0, 100])) == {"usr": 0.0, "iowait": 0.0, "idle": 100.0}


def test_mpstat_counts_idle_and_iowait_of_a_cpu_that_came_back_from_zero() -> None:
    back = cpu_ticks([0, 1], idle=[5000, 25], iowait=[300, 5], user=[100, 170])
    assert shares(back) == {"usr": 70.0, "iowait": 5.0, "idle": 25.0}
    assert {field: printed("sar", field, back)[0] for field in ("user", "iowait", "idle")} == {
        "user": 70.0, "iowait": 5.0, "idle": 25.0,
    }  # fmt: skip


def test_mpstat_takes_a_busy_cpu_whose_iowait_fell_for_one_that_came_back() -> None:
    # As the tool does: its whole iowait since boot is then of this second.
    assert shares(cpu_ticks([0, 1], iowait=[901, 900], user=[0, 100])) == {"usr": 10.0, "iowait": 90.0, "idle": 0.0}


def test_a_missing_field_makes_no_share() -> None:
    ticks = cpu_ticks([0, 1], user=[0, 50], idle=[0, 50]).with_columns(iowait_ticks=pl.Series([None, 7]))
    assert shares(ticks) == {"usr": None, "iowait": None, "idle": None}


def test_sar_counts_guests_as_user_and_interrupts_as_system() -> None:
    ticks = cpu_ticks([0, 1], user=[0, 40], guest=[0, 10], system=[0, 10], irq=[0, 2], softirq=[0, 8], idle=[0, 40])
    assert printed("sar", "user", ticks) == [40.0]
    assert printed("sar", "system", ticks) == [20.0]


def test_sar_changed_its_mind_about_used_memory() -> None:
    memory = readings(
        [0],
        total_bytes=[GIB], free_bytes=[GIB // 4], buffers_bytes=[GIB // 8], cached_bytes=[GIB // 4],
        slab_bytes=[GIB // 8], available_bytes=[GIB // 2],
    )  # fmt: skip
    assert printed("sar", "memory_used_kib", memory) == [2**18]
    assert printed("sar", "memory_used_kib_12_7_8", memory) == [2**19]


def test_sysstat_cuts_its_clock_to_hundredths_of_a_second() -> None:
    # From 0.999 s to 2.001 s are 101 hundredths by /proc/uptime, which prints 0.99 and 2.00.
    ticks = readings([0.999, 2.001], user_ticks=[0, 101], system_ticks=[0, 0], user_hz=[100, 100])
    assert printed("pidstat", "cpu_percent", ticks) == [100.0]


def test_pidstat_adds_user_and_system() -> None:
    ticks = readings([0, 2], user_ticks=[0, 100], system_ticks=[10, 30], user_hz=[100, 100])
    assert printed("pidstat", "cpu_percent", ticks) == [60.0]
    assert printed("pidstat", "usr_percent", ticks) == [50.0]
    assert printed("pidstat", "system_percent", ticks) == [10.0]


def test_pidstat_prints_kib_a_second_and_resident_kib() -> None:
    assert printed("pidstat", "written_kib", readings([0, 2], written_bytes=[0, 4 * MIB])) == [2048.0]
    assert printed("pidstat", "resident_kib", readings([0], resident_bytes=[MIB])) == [1024.0]
    assert printed("pidstat", "minor_faults", readings([0, 2], minor_faults=[5, 15])) == [5.0]


def test_iostat_by_the_book() -> None:
    disk = readings(
        [0, 2],
        writes=[0, 100], write_ms=[0, 250], written_sectors=[0, 8192], busy_ms=[0, 500], weighted_ms=[0, 3000],
        reads=[7, 7], read_ms=[3, 3],
    )  # fmt: skip
    assert printed("iostat", "writes", disk) == [50.0]
    assert printed("iostat", "written_kib", disk) == [2048.0]
    assert printed("iostat", "write_await", disk) == [2.5]
    assert printed("iostat", "read_await", disk) == [0.0]
    assert printed("iostat", "util", disk) == [25.0]
    assert printed("iostat", "queue", disk) == [1.5]


def test_a_new_incarnation_is_never_subtracted_from_the_old_one() -> None:
    old = readings([0, 1], usage_ns=[0, 600_000_000])
    new = readings([2, 3], usage_ns=[0, 300_000_000]).with_columns(series=2)
    assert printed("tare-probe", "cpu_percent", old.vstack(new.select(old.columns).cast(old.schema))) == [
        60.0,
        30.0,
    ]
