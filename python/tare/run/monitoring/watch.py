"""A running monitor: start, watch, stop, read, and trim its samples to the measure phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tare.deployments.cgroup.removal import send
from tare.errors import RunFailed, TareError, TimedOut
from tare.monitors import Monitor, MonitorContext, Program, Reading, WatchedProcess
from tare.record.load_time import Span
from tare.record.raw_files import DIRECTORY
from tare.record.run_record import NOTHING
from tare.record.trace import on_sut_clock
from tare.run.clock import Clock, Deadline
from tare.run.unreadable import read_or_failed
from tare.sites import Output, Process
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, to_ident
from tare.sites.reading import last_line_of
from tare.study.model import MonitorSpec

_START_S, _STOP_S, _CALL_S = 15.0, 120.0, 60.0
_POLL_S = 0.005


def with_kept_column(samples: pl.DataFrame, spec: MonitorSpec, phase: Span | None) -> pl.DataFrame:
    """Add a column `kept`: true for samples that lie wholly within the phase, except those that the study drops.

    Without a phase, no sample is kept. Dropping goes by the ends of samples. Of samples with the same end, such as
    rate() over a range and the reading that it ends with, the shortest decides whether they are whole.
    """
    if phase is None:
        return samples.with_columns(pl.lit(value=False).alias("kept"))
    lasting = pl.col("from_ns").filter(pl.col("from_ns") < pl.col("to_ns"))
    moments = samples.group_by("to_ns").agg(pl.coalesce(lasting.max(), pl.col("from_ns").min())).sort("to_ns")
    began, ended = round(phase.began_s * 1e9), round(phase.ended_s * 1e9)
    whole = moments.filter((pl.col("from_ns") >= began) & (pl.col("to_ns") <= ended))["to_ns"]
    last = len(whole) - spec.drop_last
    kept = whole[spec.drop_first : last] if last > spec.drop_first else whole.clear()
    within = (pl.col("from_ns") >= began) & pl.col("to_ns").is_in(kept.implode())
    return samples.with_columns(within.alias("kept"))


@dataclass
class Watch:
    """One running monitor."""

    name: str
    monitor: Monitor
    context: MonitorContext
    spec: MonitorSpec
    ledger: Ledger
    clock: Clock
    running: dict[str, tuple[Program, Process]] = field(default_factory=dict)
    idle: bool = False
    of: str = ""
    """Whose host it watches: `client` or a further node; "" for the SUT's or first node's host."""

    def start(self) -> None:
        """Start its programs and wait until they run; on failure, stop those already started."""
        host, directory = self.context.host, self.context.directory
        host.run(["install", "-d", "-m", "0755", "--", directory], timeout_s=_CALL_S)
        try:
            for program in self.monitor.programs(self.context):
                self._start(program)
            self.idle = not self.running
        except BaseException:
            self.stop()
            raise

    def must_live(self) -> None:
        """Raise `RunFailed` if one of its programs has ended: a run that was watched only partly does not count."""
        for name, (_, process) in self.running.items():
            if not alive(self.context.host, process):
                raise RunFailed(f"the monitor {self.name} ended: {self._last_output(name)}")

    def add_targets(self, later: tuple[WatchedProcess, ...]) -> None:
        """Pass newly started processes to the monitor."""
        update = self.monitor.update_targets(self.context, later)
        if update is None:
            return
        host = self.context.host
        host.put(update.content.encode(), f"{self.context.directory}/{update.file}")
        for _, process in self.running.values():
            send(host, process, update.signal)

    def fetch_reports(self) -> None:
        """Fetch reports that are available only while the monitor runs."""
        host, directory = self.context.host, self.context.directory
        for file, argv in self.monitor.final_commands(self.context).items() if self.running else ():
            host.put(host.run(argv, timeout_s=_STOP_S).stdout, f"{directory}/{file}")

    def stop(self) -> None:
        """Stop the programs, last started first, with all output written; kill those that ignore their signal."""
        host = self.context.host
        for name in reversed(tuple(self.running)):
            program, process = self.running[name]
            for signal_name in (program.stop, "KILL"):
                if not alive(host, process):
                    break
                send(host, process, signal_name, group=True)
                self._wait(process)
            if alive(host, process):
                raise TimedOut(f"the monitor's program {name} does not end even after SIGKILL")
            self.ledger.forget(Kind.PROCESS, to_ident(process), host=host.name)
            del self.running[name]

    @property
    def counted(self) -> tuple[str, ...]:
        """Arguments of cpu_clock.py for its programs."""
        if self.monitor.reports_cost:
            return ()
        running = self.running.values()
        return tuple(
            str(process.pid) if program.counts_itself else f"below:{process.pid}" for program, process in running
        )

    def read(self, raw: Path, phase: Span | None, ahead_s: float = 0.0) -> tuple[Reading | None, Mapping[str, Any]]:
        """Read the monitor's raw files, store its samples beside them, and return the record's entry.

        `raw`: the local copy of the run's raw files. `phase`: the measure phase. `ahead_s`: seconds by which the
        clock of the monitor's host is ahead of the phase's clock.
        """
        if self.idle:
            return None, {"absent": NOTHING}
        with read_or_failed(f"what the monitor {self.name} left"):
            reading = self.monitor.read(self.context, raw / DIRECTORY / self.name)
        if reading.table is not None:
            aligned = on_sut_clock(reading.table, self.of, ahead_s)
            with_kept_column(aligned, self.spec, phase).write_parquet(raw / DIRECTORY / f"{self.name}.parquet")
        return reading, {"interval_s": self.context.interval_s, "samples": reading.samples, **reading.values}

    def _start(self, program: Program) -> None:
        host, directory = self.context.host, self.context.directory
        for file, content in program.files.items():
            host.put(content.encode(), f"{directory}/{file}")
        output = Output(f"{directory}/{program.name}.stdout", f"{directory}/{program.name}.stderr")
        process = host.start(
            program.argv, output=output, env=program.env or None, announce=noting(self.ledger, host)
        )
        self.running[program.name] = (program, process)
        deadline = Deadline(self.clock, _START_S)
        while program.started is not None and host.read(program.started) is None:
            if not alive(host, process):
                raise RunFailed(f"the monitor {self.name} could not start: {self._last_output(program.name)}")
            if deadline.passed:
                raise TimedOut(f"the monitor {self.name} was not running within {_START_S:g} s")
            self.clock.sleep(_POLL_S)

    def _wait(self, process: Process) -> None:
        deadline = Deadline(self.clock, _STOP_S)
        while alive(self.context.host, process) and not deadline.passed:
            self.clock.sleep(_POLL_S)

    def _last_output(self, program: str) -> str:
        for end in ("stderr", "stdout"):
            try:
                text = self.context.host.read(f"{self.context.directory}/{program}.{end}") or b""
            except TareError:
                continue
            if line := last_line_of(text):
                return line
        return "it printed nothing"
