"""`probe`: tare-probe, the one trace that each run has. docs/reference/probe.md, docs/reference/trace-format.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tare.errors import EnvironmentLacks, RunFailed
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.sites import Host
from tare.sites.binaries import PROBE, find

TARGETS = "targets"
TRACE = "trace"
"""The recording's directory below the monitor's own."""
_NS = 1e-9
_FASTEST_S, _SLOWEST_S = 0.001, 10.0


class Probe:
    """Records until it is stopped; what comes later is handed to it in a file."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = True

    def why_unavailable(self, host: Host, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - contract
        """The program itself; what it may not read it leaves out and says so."""
        if not _FASTEST_S <= interval_s <= _SLOWEST_S:
            return f"it samples every {_FASTEST_S:g} to {_SLOWEST_S:g} s, not {interval_s:g}; change interval_s"
        return None if find(host, PROBE) else f"tare-probe, which traces every run, is missing; {PROBE.hint}"

    def programs(self, scene: MonitorContext) -> tuple[Program, ...]:
        """One recording of the host and of all that is there already."""
        binary = find(scene.host, PROBE)
        if binary is None:
            raise EnvironmentLacks("tare-probe has disappeared", hint=PROBE.hint)
        trace = f"{scene.directory}/{TRACE}"
        options = [word for each in scene.watched for kind, what in targets(each) for word in (f"--{kind}", what)]
        argv = (
            *(binary, "record", "--out", trace, "--hz", f"{1 / scene.interval_s:g}", "--host", "--wait"),
            *("--targets", f"{scene.directory}/{TARGETS}", "--duration", f"{scene.most_s:g}"),
            *options,
        )
        return (Program("probe", argv, started=f"{trace}/journal.tare"),)

    def update_targets(self, scene: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """It reads the file anew on SIGHUP."""
        lines = [f"{kind} {what}\n" for each in later for kind, what in targets(each)]
        return TargetUpdate(TARGETS, "".join(lines), "HUP")

    def final_commands(self, scene: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """Nothing: it writes its tables when it ends."""
        return {}

    def read(self, scene: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """The end of the trace, and what the probe says of itself; `RunFailed` for a trace that is not whole."""
        try:
            trace = json.loads((directory / TRACE / "trace.json").read_text())
        except (OSError, ValueError) as error:
            raise RunFailed("the trace of the run is missing", hint=_last_line(directory)) from error
        return Reading(
            samples=int(trace["rows"]["tick"]), table=None, values=probe_values(trace, _last_line(directory))
        )


def targets(each: WatchedProcess) -> Iterator[tuple[str, str]]:
    """What tare-probe is asked to sample of one thing: option and value."""
    if each.own_cgroup:
        yield "cgroup", f"{each.name}=pid:{each.pid}"
    yield "pid", f"{each.name}={each.pid}{',tree' if each.tree else ''}"
    if each.own_network:
        yield "netns", f"{each.name}={each.pid}"


def probe_values(trace: Mapping[str, Any], last_words: str) -> Mapping[str, Any]:
    """What the record keeps of `trace.json`. Raises `RunFailed` unless it is whole and was ended by us."""
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
