"""`probe`: tare-probe, which traces every run. docs/reference/probe.md, docs/reference/trace-format.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tare.errors import EnvironmentLacks, RunFailed
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites.binaries import PROBE, find

TARGETS = "targets"
TRACE = "trace"
"""Directory of the recording below the monitor's own."""
_NS = 1e-9
_FASTEST_S, _SLOWEST_S = 0.001, 10.0


def _lacks(there: HostPlan) -> Iterator[Lack]:
    if not find(there.host, PROBE):
        yield Lack("tare-probe, which traces every run, is missing", PROBE.hint)


PROBE_PROGRAM = Requirement(
    "tare-probe",
    needed_by="the trace of every run",
    tried_how="`tare-probe record --help`",
    hint=PROBE.hint,
    ask=_lacks,
    essential=True,
)


class Probe:
    """Records until it is stopped; new targets are handed over in a file."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = True
    needs: ClassVar[tuple[Requirement, ...]] = (PROBE_PROGRAM,)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """Check the interval; the probe itself reports data that it may not read."""
        if not _FASTEST_S <= interval_s <= _SLOWEST_S:
            return f"it samples every {_FASTEST_S:g} to {_SLOWEST_S:g} s, not {interval_s:g}; change interval_s"
        return None

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One recording of the host and of all processes that exist already."""
        binary = find(context.host, PROBE)
        if binary is None:
            raise EnvironmentLacks("tare-probe has disappeared", hint=PROBE.hint)
        trace = f"{context.directory}/{TRACE}"
        options = [word for each in context.watched for kind, what in targets(each) for word in (f"--{kind}", what)]
        argv = (
            *(binary, "record", "--out", trace, "--hz", f"{1 / context.interval_s:g}", "--host", "--wait"),
            *("--targets", f"{context.directory}/{TARGETS}", "--duration", f"{context.most_s:g}"),
            *options,
        )
        return (Program("probe", argv, started=f"{trace}/journal.tare"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """The probe reads the file again on SIGHUP."""
        lines = [f"{kind} {what}\n" for each in later for kind, what in targets(each)]
        return TargetUpdate(TARGETS, "".join(lines), "HUP")

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands: the probe writes its tables when it ends."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """Read the end of the trace and the probe's own values. Raises `RunFailed` for an incomplete trace."""
        try:
            trace = json.loads((directory / TRACE / "trace.json").read_text())
        except (OSError, ValueError) as error:
            raise RunFailed("the trace of the run is missing", hint=_last_line(directory)) from error
        return Reading(
            samples=int(trace["rows"]["tick"]), table=None, values=probe_values(trace, _last_line(directory))
        )


def targets(each: WatchedProcess) -> Iterator[tuple[str, str]]:
    """Options of tare-probe to sample one process: (option, value)."""
    if each.own_cgroup:
        yield "cgroup", f"{each.name}=pid:{each.pid}"
    yield "pid", f"{each.name}={each.pid}{',tree' if each.tree else ''}"
    if each.own_network:
        yield "netns", f"{each.name}={each.pid}"


def probe_values(trace: Mapping[str, Any], last_words: str) -> Mapping[str, Any]:
    """Values of `trace.json` for the record. Raises `RunFailed` unless it is complete and was ended by a signal."""
    header, footer = trace["header"], trace["footer"]
    if not trace["complete"] or footer is None:
        raise RunFailed("the trace of the run is not complete", hint=last_words)
    if footer["ended_by"] != "signal":
        raise RunFailed("the trace ended before the run", hint="its time limit passed; was the machine suspended?")
    return {
        "trace_version": header["trace_version"],
        "probe_version": header["probe_version"],
        "scheduler": header["scheduler"],
        "block_source": header["block_source"],
        "block_refused": header.get("block_refused"),
        "began_monotonic_s": header["started_monotonic_ns"] * _NS,
        "ended_monotonic_s": footer["ended_monotonic_ns"] * _NS,
        "missed_samples": footer["missed_ticks"],
        "lateness_p99_s": footer["lateness_p99_ns"] * _NS,
        "peak_resident_bytes": footer["peak_resident_bytes"],
        "cpu_s": footer["probe_cpu_ns"] * _NS,
    }


def _last_line(directory: Path) -> str:
    try:
        lines = (directory / "probe.stderr").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it printed nothing"
