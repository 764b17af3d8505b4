from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from tests.unit.run.conftest import fake_image, make_plan

from tare.errors import RunFailed
from tare.monitors import MonitorContext, Program, Reading
from tare.monitors.fake import FakeMonitor
from tare.record.host_facts import HostFacts
from tare.record.load_time import Span
from tare.record.monitor import MonitorFacts
from tare.record.run_record import Phase
from tare.record.trace import Traces, growth
from tare.record.usage import Usage
from tare.requirements import HostPlan, Lack, Requirement
from tare.run.machine import HostPart
from tare.run.monitoring.monitors import interval_of
from tare.run.monitoring.watch import with_kept_column
from tare.run.usage import with_traces
from tare.sites import Site
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.study.model import MonitorSpec
from tare.workloads import ClientCommand, Parameters, Target
from tare.workloads.fake import FakeWorkload
from tare.workloads.registry import BUILT_IN as WORKLOADS


class Blind(FakeMonitor):
    """Runs well and leaves nothing that could be read."""

    def read(self, context: MonitorContext, directory: Path) -> Reading:
        raise RunFailed("the trace is cut short")


@dataclass(frozen=True)
class Short(FakeMonitor):
    """Ends by itself."""

    seconds: float

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        return (Program("short", ("sh", "-c", f"echo no space left >&2; sleep {self.seconds}")),)


class Stillborn(FakeMonitor):
    """Never begins."""

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        return (Program("stillborn", ("false",), started=f"{context.directory}/begun"),)


def test_every_run_is_watched_and_told_of_its_clients(rig: Any, plans: Any) -> None:
    (record,) = rig.execute(plans(warmup_s=0.1))
    assert record.outcome.ok, record.outcome
    assert {name: each.model_dump() for name, each in record.monitors.items()} == {
        "probe": {"interval_s": 0.1, "samples": 0, "handed": ["client"], "engine_cpu_s": None}
    }
    assert "monitors/probe/later" in record.raw
    assert rig.leftovers == []


def test_a_run_whose_trace_is_not_whole_is_no_good_run(rig: Any, plans: Any) -> None:
    rig.swap(monitors={"probe": Blind()})
    (record,) = rig.execute(plans())
    assert (record.outcome.ok, record.outcome.failed_in) == (False, Phase.COLLECT)
    assert record.outcome.reason == "the trace is cut short"
    assert record.measurement is None


@pytest.mark.parametrize(("monitor", "words"), [(Short(0.05), "no space left"), (Stillborn(), "could not start")])
def test_a_monitor_that_ends_by_itself_fails_the_run(rig: Any, plans: Any, monitor: Any, words: str) -> None:
    rig.swap(monitors={"probe": monitor})
    (record,) = rig.execute(plans())
    assert not record.outcome.ok
    assert words in record.outcome.reason
    assert rig.leftovers == []


def test_a_monitor_that_ends_is_noticed_while_the_client_runs(rig: Any, plans: Any) -> None:
    """A disk that was full may have room again by the end, and then nothing tells why the monitor ended."""
    rig.swap(monitors={"probe": Short(1.0)})
    (record,) = rig.execute(plans(measure_s=60.0))
    assert (record.outcome.ok, record.outcome.failed_in) == (False, Phase.MEASURE)
    assert record.outcome.reason == "the monitor probe ended: no space left"
    assert record.phases[-1].monotonic_s - record.phases[0].monotonic_s < 30.0
    assert rig.leftovers == []


def test_a_monitor_that_ignores_its_signal_is_killed(rig: Any, plans: Any, monkeypatch: Any) -> None:
    class Deaf(FakeMonitor):
        def programs(self, context: MonitorContext) -> tuple[Program, ...]:
            return (Program("deaf", ("sleep", "60"), stop="CONT"),)

    monkeypatch.setattr("tare.run.monitoring.watch._STOP_S", 0.1)
    rig.swap(monitors={"probe": Deaf()})
    (record,) = rig.execute(plans())
    assert record.outcome.ok, record.outcome
    assert rig.leftovers == []


def test_a_monitor_stands_in_the_ledger_while_it_runs(rig: Any, plans: Any) -> None:
    """So that the next tare sweeps it, should this one be killed."""
    seen: list[str] = []

    class Watching(FakeMonitor):
        def update_targets(self, context: MonitorContext, later: Any) -> Any:
            seen.extend(entry.ident for entry in rig.machine.ledger.entries() if entry.kind == "process")
            return super().update_targets(context, later)

    rig.swap(monitors={"probe": Watching()})
    rig.execute(plans())
    own = [ident for ident in seen if not Path(f"/proc/{ident.split(':')[0]}").exists()]
    assert own


@pytest.mark.parametrize(("seconds", "interval_s"), [(4, 0.1), (600, 0.1), (601, 0.2), (1860, 0.5), (90000, 10.0)])
def test_a_long_run_is_sampled_less_often(seconds: float, interval_s: float) -> None:
    assert interval_of("probe", MonitorSpec(), seconds) == interval_s


def counter(*readings: tuple[int, int | None, int | None]) -> pl.DataFrame:
    rows = [{"target": target, "at": at, "n": value} for target, at, value in readings]
    return pl.DataFrame(rows, schema={"target": pl.Int64, "at": pl.Int64, "n": pl.Int64})


def test_growth_is_taken_as_even_between_two_samples() -> None:
    table = counter((1, 0, 100), (1, 10, 200), (1, 20, 400))
    assert growth(table, "at", "n", Span(5e-9, 15e-9)) == 150.0


def test_growth_of_several_targets_is_summed_and_a_late_one_began_at_zero() -> None:
    table = counter((1, 0, 100), (1, 20, 100), (2, 10, 30), (2, 20, 50))
    assert growth(table, "at", "n", Span(5e-9, 20e-9)) == 50.0


def test_growth_of_a_program_that_came_and_went_in_between_is_all_that_was_seen() -> None:
    assert growth(counter((1, 6, 10), (1, 14, 90)), "at", "n", Span(5e-9, 15e-9)) == 90.0


@pytest.mark.parametrize(
    "table", [counter(), counter((1, 0, None), (1, 20, None)), counter((1, 16, 1), (1, 20, 2))]
)
def test_growth_is_unknown_where_no_sample_tells_of_it(table: pl.DataFrame) -> None:
    assert growth(table, "at", "n", Span(5e-9, 15e-9)) is None


def _record(trace: Path, **columns: Any) -> None:
    rows = len(columns["read_bytes"])
    names = (
        "io_t0_ns", "written_bytes", "block_at_ns", "block_read_bytes", "block_written_bytes", "bfq_t0_ns",
        "bfq_read_bytes", "bfq_written_bytes",
    )  # fmt: skip
    whole: dict[str, Any] = {"target": [1] * rows, "name": ["sut"] * rows}
    whole |= {name: pl.Series([None] * rows, dtype=pl.Int64) for name in names}
    pl.DataFrame({**whole, **columns}).write_parquet(trace / "cgroup.parquet")


USAGE = Usage(began_monotonic_s=1.0, ended_monotonic_s=2.0, sut_cpu_s=0.5)


def test_io_of_the_sut_comes_from_the_first_source_that_has_values(tmp_path: Path) -> None:
    at = [0, 3_000_000_000]
    _record(tmp_path, read_bytes=[0, 3000], io_t0_ns=at, written_bytes=[0, 6000])
    with_io = with_traces(USAGE, Traces(tmp_path), None)
    assert with_io is not None
    assert (with_io.sut_read_bytes, with_io.sut_write_bytes) == (1000.0, 2000.0)
    assert with_io.sut_io_source == "control group"
    assert with_io.sut_cpu_s == 0.5


def test_empty_is_not_zero(tmp_path: Path) -> None:
    _record(tmp_path, read_bytes=pl.Series([None, None], dtype=pl.Int64), io_t0_ns=[0, 3_000_000_000])
    with_io = with_traces(USAGE, Traces(tmp_path), None)
    assert with_io is not None
    assert with_io.sut_read_bytes is None
    assert with_io.sut_io_source is None


def test_a_run_without_a_trace_or_a_measure_phase_has_no_io(tmp_path: Path) -> None:
    assert with_traces(USAGE, Traces(tmp_path), None) == USAGE
    assert with_traces(None, Traces(tmp_path), None) is None


def _samples(*spans: tuple[float, float]) -> pl.DataFrame:
    rows = [{"from_ns": round(begin * 1e9), "to_ns": round(end * 1e9), "value": 1.0} for begin, end in spans]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        (MonitorSpec(), [2.5, 3.5, 4.5]),
        (MonitorSpec(drop_first=1), [3.5, 4.5]),
        (MonitorSpec(drop_first=1, drop_last=1), [3.5]),
        (MonitorSpec(drop_first=2, drop_last=2), []),
    ],
)
def test_samples_count_that_lie_in_the_measure_phase_whole_but_for_those_dropped(
    spec: MonitorSpec, kept: list[float]
) -> None:
    samples = _samples((0.5, 1.5), (1.5, 2.5), (2.5, 3.5), (3.5, 4.5), (4.5, 5.5))
    # A gauge of the first, read at its end, does not make it whole.
    samples = pl.concat([samples, _samples((1.5, 1.5), (2.5, 2.5))])
    marked = with_kept_column(samples, spec, Span(1.4, 5.0)).filter("kept")
    assert sorted(set(marked["to_ns"] / 1e9)) == kept


def test_without_a_measure_phase_no_sample_counts() -> None:
    assert not with_kept_column(_samples((0, 1)), MonitorSpec(), None)["kept"].any()


def requirement(why: Callable[[HostPlan], str | None]) -> Requirement:
    """A requirement that fails for the reason that `why` gives."""
    return Requirement("eye", "nobody", "not at all", "", lambda there: [Lack(it)] if (it := why(there)) else [])


def two_hosts(rig: Any, directory: Path, *, lacks: str | None = None) -> None:
    """Put the client onto another host, with a monitor of hosts beside the trace. `lacks`: why it has none."""

    class Untold(FakeMonitor):
        def read(self, context: MonitorContext, directory: Path) -> Reading:
            exists = (directory / "later").exists()
            return (
                super().read(context, directory)
                if exists
                else Reading(samples=0, table=None, values={"handed": []})
            )

    class There(Untold):
        needs: ClassVar[tuple[Requirement, ...]] = (
            requirement(lambda there: lacks if there.host.name == "h2" else None),
        )

    machine, layout = rig.machine, Layout(directory / "far")
    client = LocalHost("h2")
    part = HostPart(client, layout, machine.ledger, None, fake_image, lambda: HostFacts(name="h2"), lambda: None)
    site = Site(LocalHost("h1"), client, addresses={"h1": "127.0.0.1", "h2": "127.0.0.1"})
    rig.swap(site=site, parts={"h2": part}, monitors={"probe": Untold(), "profile": There()})


def watched_plan() -> Any:
    plan = make_plan()
    (arm,) = plan.study.arms
    settings = arm.settings.model_copy(update={"monitors": {"profile": MonitorSpec()}})
    study = plan.study.model_copy(update={"arms": (arm.model_copy(update={"settings": settings}),)})
    return plan.model_copy(update={"study": study})


def test_the_client_s_host_is_watched_by_the_monitors_of_hosts_too(rig: Any, tmp_path: Path) -> None:
    two_hosts(rig, tmp_path)
    (record,) = rig.execute(watched_plan())
    assert record.outcome.ok, record.outcome
    seen = {name: (monitor.model_extra or {}).get("handed") for name, monitor in record.monitors.items()}
    assert seen == {"probe": [], "client-host": ["client"], "profile": [], "client-profile": ["client"]}
    assert "monitors/client-profile/later" in record.raw
    assert rig.leftovers == []


class WarmsUpItself(FakeWorkload):
    """One process for both phases, which runs before the monitors of the measure phase start."""

    def warm_up(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand | None:
        return None

    def measure(self, parameters: Parameters, target: Target, run_dir: str) -> ClientCommand:
        return replace(super().measure(parameters, target, run_dir), own_warmup_s=0.05)


def test_a_client_that_warms_up_by_itself_is_watched_by_every_monitor(rig: Any) -> None:
    rig.swap(
        workloads={**WORKLOADS, "fake": WarmsUpItself()},
        monitors={"probe": FakeMonitor(), "profile": FakeMonitor()},
    )
    (record,) = rig.execute(watched_plan())
    assert record.outcome.ok, record.outcome
    seen = {name: (monitor.model_extra or {}).get("handed") for name, monitor in record.monitors.items()}
    assert seen == {"probe": ["client"], "profile": ["client"]}


def test_a_client_that_warms_up_by_itself_is_watched_on_its_own_host(rig: Any, tmp_path: Path) -> None:
    two_hosts(rig, tmp_path)
    rig.swap(workloads={**WORKLOADS, "fake": WarmsUpItself()})
    (record,) = rig.execute(watched_plan())
    assert record.outcome.ok, record.outcome
    seen = {name: (monitor.model_extra or {}).get("handed") for name, monitor in record.monitors.items()}
    assert seen == {"probe": [], "client-host": ["client"], "profile": [], "client-profile": ["client"]}


def test_a_client_s_host_that_cannot_have_a_monitor_goes_without_and_says_why(rig: Any, tmp_path: Path) -> None:
    two_hosts(rig, tmp_path, lacks="no perf events")
    (record,) = rig.execute(watched_plan())
    assert record.outcome.ok, record.outcome
    assert record.monitors["client-profile"] == MonitorFacts(absent="no perf events")
    assert record.monitors["profile"].absent is None
