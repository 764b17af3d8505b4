"""A monitor at work: started, watched, stopped, read, and its samples trimmed to the measure phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tare.errors import RunFailed, TareError, TimedOut
from tare.monitors import Monitor, MonitorContext, Program, Reading, WatchedProcess
from tare.run.clock import Clock, Deadline
from tare.run.record import NOTHING
from tare.run.unreadable import read_or_failed
from tare.run.usage.driven import Span
from tare.sites import Output, Process
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, to_ident
from tare.study.model import MonitorSpec

DIRECTORY = "monitors"
"""Below a run's raw files: a directory for each monitor."""
CLIENT = "client"
"""Whose host it is that is the client's alone."""
_OF_A_SIDE = r"^(sut|client|warm-up)\b"
"""Subjects that no two hosts of a run have."""
_START_S, _STOP_S, _CALL_S = 15.0, 120.0, 60.0
_POLL_S = 0.005


def laid_table(samples: pl.DataFrame, of: str, ahead_s: float) -> pl.DataFrame:
    """Samples of another host, on the clock of the SUT's or of its first node's: `ahead_s` is taken away.

    What is the host's own has `of` in its name, since the SUT's host has a CPU `all` and perhaps a disk `sda`, too.
    """
    if not of:
        return samples
    own = pl.col("subject").str.contains(_OF_A_SIDE)
    named = pl.when(own).then(pl.col("subject")).otherwise(pl.col("subject") + f" of {of}")
    return samples.with_columns(pl.col("from_ns", "to_ns") - round(ahead_s * 1e9), named.alias("subject"))


def marked_table(samples: pl.DataFrame, spec: MonitorSpec, phase: Span | None) -> pl.DataFrame:
    """With a column `kept`: true for samples that lie within the phase whole, but those that the study drops.

    Without a phase nothing is kept. Dropped is by when samples end; of those that end together, as rate() over a
    range and the reading that it ends with, the shortest shows which are whole.
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
    """One monitor at work."""

    name: str
    monitor: Monitor
    scene: MonitorContext
    spec: MonitorSpec
    ledger: Ledger
    clock: Clock
    running: dict[str, tuple[Program, Process]] = field(default_factory=dict)
    idle: bool = False
    of: str = ""
    """Whose host it watches, `client` or a further node; "" of the SUT's or of its first node."""

    def start(self) -> None:
        """Start its programs and wait until they are at work; what was started before a failure is stopped."""
        host, directory = self.scene.host, self.scene.directory
        host.run(["install", "-d", "-m", "0755", "--", directory], timeout_s=_CALL_S)
        try:
            for program in self.monitor.programs(self.scene):
                self._start(program)
            self.idle = not self.running
        except BaseException:
            self.stop()
            raise

    def must_live(self) -> None:
        """Raise when one of its programs has ended: a run watched half of the time is not what was asked."""
        for name, (_, process) in self.running.items():
            if not alive(self.scene.host, process):
                raise RunFailed(f"the monitor {self.name} ended: {self._last_words(name)}")

    def hand(self, later: tuple[WatchedProcess, ...]) -> None:
        """Tell it of what has come."""
        handed = self.monitor.update_targets(self.scene, later)
        if handed is None:
            return
        host = self.scene.host
        host.put(handed.content.encode(), f"{self.scene.directory}/{handed.file}")
        for _, process in self.running.values():
            host.run(["kill", "-s", handed.signal, str(process.pid)], timeout_s=_CALL_S, check=False)

    def harvest(self) -> None:
        """Fetch what must be asked of it while it is at work."""
        host, directory = self.scene.host, self.scene.directory
        for file, argv in self.monitor.final_commands(self.scene).items() if self.running else ():
            host.put(host.run(argv, timeout_s=_STOP_S).stdout, f"{directory}/{file}")

    def stop(self) -> None:
        """Last started, first ended, each having written all it has; what does not heed its signal is killed."""
        host = self.scene.host
        for name in reversed(tuple(self.running)):
            program, process = self.running[name]
            for signal_name in (program.stop, "KILL"):
                if not alive(host, process):
                    break
                group = f"-{process.pid}"
                host.run(["kill", "-s", signal_name, "--", group], timeout_s=_CALL_S, check=False)
                self._wait(process)
            if alive(host, process):
                raise TimedOut(f"the monitor's program {name} does not end, even after SIGKILL")
            self.ledger.forget(Kind.PROCESS, to_ident(process), host=host.name)
            del self.running[name]

    @property
    def counted(self) -> tuple[str, ...]:
        """What cpu_clock.py is to be asked for it."""
        if self.monitor.reports_cost:
            return ()
        running = self.running.values()
        return tuple(
            str(process.pid) if program.counts_itself else f"below:{process.pid}" for program, process in running
        )

    def read(self, raw: Path, phase: Span | None, ahead_s: float = 0.0) -> tuple[Reading | None, Mapping[str, Any]]:
        """What it saw, its samples stored beside its raw files, and what the record keeps of it.

        `raw`: the run's raw files, brought home. `phase`: when measuring lasted. `ahead_s`: its host's clock less
        that on which the phase lies.
        """
        if self.idle:
            return None, {"absent": NOTHING}
        with read_or_failed(f"what the monitor {self.name} left"):
            reading = self.monitor.read(self.scene, raw / DIRECTORY / self.name)
        if reading.table is not None:
            laid = laid_table(reading.table, self.of, ahead_s)
            marked_table(laid, self.spec, phase).write_parquet(raw / DIRECTORY / f"{self.name}.parquet")
        return reading, {"interval_s": self.scene.interval_s, "samples": reading.samples, **reading.values}

    def _start(self, program: Program) -> None:
        host, directory = self.scene.host, self.scene.directory
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
                raise RunFailed(f"the monitor {self.name} could not start: {self._last_words(program.name)}")
            if deadline.passed:
                raise TimedOut(f"the monitor {self.name} was not running within {_START_S:g} s")
            self.clock.sleep(_POLL_S)

    def _wait(self, process: Process) -> None:
        deadline = Deadline(self.clock, _STOP_S)
        while alive(self.scene.host, process) and not deadline.passed:
            self.clock.sleep(_POLL_S)

    def _last_words(self, program: str) -> str:
        for end in ("stderr", "stdout"):
            try:
                text = self.scene.host.read(f"{self.scene.directory}/{program}.{end}") or b""
            except TareError:
                continue
            if lines := text.decode(errors="replace").strip().splitlines():
                return lines[-1]
        return "it printed nothing"
