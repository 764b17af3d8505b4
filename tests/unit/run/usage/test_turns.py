from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tare.record.trace import Traces
from tare.record.turns import Turns
from tare.record.usage import Usage
from tare.run.usage import with_traces

S = 1e9
BEGAN = np.array([10.0, 13.1, 15.2, 19.4]) * S
TURNS = Turns(BEGAN, BEGAN + 0.5 * S, 4 * 0.4, (10.0 * S, 20.0 * S))
USAGE = Usage(
    began_monotonic_s=9.5, ended_monotonic_s=20.5, monotonic_s=11.0, sut_cpu_s=5.0, client_cpu_s=4.0,
    proxy_cpu_s=3.0, sut_cpus=1.0, client_cpus=2.0,
)  # fmt: skip
AT = np.arange(9.0, 21.0, 0.1) * S


IO = ("io_t0_ns", "read_bytes", "written_bytes")
OF_GROUP = (
    *IO,
    "block_at_ns",
    "block_read_bytes",
    "block_written_bytes",
    "bfq_t0_ns",
    "bfq_read_bytes",
    "bfq_written_bytes",
)


def unread(columns: tuple[str, ...]) -> list[pl.Expr]:
    """Columns that the probe has no values for."""
    return [pl.lit(None, dtype=pl.Int64).alias(name) for name in columns]


def grown(driven: float, idle: float, unit: float) -> list[int]:
    within = TURNS.within(np.zeros_like(AT), AT)
    return [round(each) for each in (driven * within + idle * (AT - within)) / S * unit]


def trace(place: Path, **left_out: bool) -> Traces:
    """Server 0.8 CPUs driven and 0.05 idle, proxy 0.3 and 0.01, client 0.6 and 0; the machine is at 1.9 of 2."""
    at = [round(each) for each in AT]

    def process(target: int, name: str, driven: float, idle: float) -> pl.DataFrame:
        columns = {"cpu_t0_ns": at, "cpu_ns": grown(driven, idle, S), "threads": [4] * len(at)}
        return pl.DataFrame({"tick": range(len(at)), "target": target, "name": name, **columns}).with_columns(
            unread(IO)
        )

    group = {"usage_t0_ns": at, "usage_ns": grown(0.8, 0.05, S), "pids": [4] * len(at)}
    for window, columns in {
        "pressure": ("cpu_some_us", "io_some_us"),
        "throttle": ("periods", "throttled_periods"),
    }.items():
        group |= {f"{window}_t0_ns": at} | {column: [0] * len(at) for column in columns}
    groups = pl.DataFrame({"tick": range(len(at)), "target": 1, "name": "sut", **group}).with_columns(
        unread(OF_GROUP)
    )
    groups.write_parquet(place / "cgroup.parquet")
    processes = [process(2, "client", 0.6, 0.0), process(3, "proxy", 0.3, 0.01), process(4, "sut", 0.8, 0.05)]
    pl.concat([each for each in processes if each["name"][0] not in left_out]).write_parquet(
        place / "process.parquet"
    )
    modes = {f"{mode}_ticks": grown(0, 0, 100) for mode in ("nice", "iowait", "irq", "softirq", "steal")}
    modes |= {
        "user_ticks": grown(1.2, 0.9, 100),
        "system_ticks": grown(0.7, 0.2, 100),
        "idle_ticks": grown(0.1, 0.9, 100),
    }
    pl.DataFrame({"target": 5, "name": "all", "t0_ns": at, **modes}).write_parquet(place / "cpu.parquet")
    return Traces(place)


def test_cpu_time_is_of_the_turns_and_what_the_server_did_between_them_is_told(tmp_path: Path) -> None:
    used = with_traces(USAGE, trace(tmp_path), None, TURNS)
    assert used is not None
    assert used.turns_s == used.over_s == pytest.approx(1.6)
    assert used.sut_cpu_s == pytest.approx(0.8 * 1.6)
    assert used.client_cpu_s == pytest.approx(0.6 * 1.6)
    assert used.proxy_cpu_s == pytest.approx(0.3 * 1.6)
    assert used.idle_cpus == pytest.approx(0.05 + 0.01)
    assert used.machine is not None
    assert used.machine["user"] == pytest.approx(1.2 * 1.6, rel=0.01)
    assert used.machine["idle"] == pytest.approx(0.1 * 1.6, rel=0.2)
    assert used.saturation is not None
    assert used.saturation.sut is not None
    assert used.saturation.sut.busy == pytest.approx(0.8)


@pytest.mark.parametrize("missing", ["client", "proxy"])
def test_figures_stay_those_of_the_phase_if_one_side_is_unknown_in_turns(tmp_path: Path, missing: str) -> None:
    used = with_traces(USAGE, trace(tmp_path, **{missing: True}), None, TURNS)
    assert used is not None
    assert (used.turns_s, used.idle_cpus, used.over_s) == (None, None, 11.0)
    assert (used.sut_cpu_s, used.client_cpu_s, used.proxy_cpu_s) == (5.0, 4.0, 3.0)
