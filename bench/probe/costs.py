"""CPU time and memory of one tool while it samples, and of the engine's daemons that it asks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from scipy.stats import mannwhitneyu

from bench.probe.servers import answers
from bench.probe.tables import Cost, Rapid

WARM_UP_S = 3.0
DAEMONS = ("dockerd", "containerd", "containerd-shim-runc-v2", "containerd-shim")
STOP_TIMEOUT_S = 10.0
HOUSEKEEPING_S = 30.0
"""containerd's shims clean up this often, for some four seconds; a watch must hold as much of it as an idle one."""
CLEARLY = 0.01
"""Significance level of the test that a tool makes the daemons do more."""
WRITTEN_EVERY_S = 10.0
"""How often tare-probe's writer is woken at 1 Hz."""
IN_TENS = ("floor", "tare-probe", "tare-probe --host")
"""Tools that are watched for whole tens of seconds, none of them left out."""


def cpu_s(pid: int) -> float:
    """CPU time of a process, brought up to date by the kernel; 0 once it has ended."""
    clock = (~pid << 3) | 2  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0


def processes() -> Iterator[tuple[int, int, str]]:
    """Process id, parent and command of every process."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text(errors="replace")
                command = text[text.index("(") + 1 : text.rindex(")")]
                yield int(entry.name), int(text[text.rindex(")") + 2 :].split()[1]), command


def tree(root: int) -> set[int]:
    """A process and its descendants."""
    parents = {pid: parent for pid, parent, _ in processes()}
    pids = {root}
    while grown := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= grown
    return pids


def daemons_s() -> float:
    """CPU time of the engine so far."""
    # The kernel cuts a command to 15 letters.
    names = {name[:15] for name in DAEMONS}
    return sum(cpu_s(pid) for pid, _, command in processes() if command in names)


def resident_mb(pids: set[int]) -> float:
    """Largest resident memory that these processes have had, added up."""
    total_kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    total_kib += int(line.split()[1])
    return total_kib * 1024 / 1e6


@dataclass(frozen=True)
class Second:
    """CPU seconds that passed within one second."""

    own: float
    daemons: float


def watch(pids: set[int], seconds: float, each_second: Callable[[], bool] | None = None) -> list[Second]:
    """CPU time of a tool and of the daemons, second by second, while it is asked in each."""
    passed = []
    own, daemons = sum(map(cpu_s, pids)), daemons_s()
    end = time.monotonic()
    for _ in range(round(seconds)):
        end += 1.0
        if each_second is not None and not each_second():
            raise SystemExit("a server did not answer, so what it costs to be asked is not known")
        time.sleep(max(0.0, end - time.monotonic()))
        own_now, daemons_now = sum(map(cpu_s, pids)), daemons_s()
        passed.append(Second(own_now - own, daemons_now - daemons))
        own, daemons = own_now, daemons_now
    return passed


def usual(seconds: Iterable[float]) -> float:
    """Mean use in a second without the most expensive quarter of the seconds."""
    spent = sorted(seconds)
    return fmean(spent[: max(1, len(spent) * 3 // 4)])


def caused(during: Sequence[float], idle: Sequence[float]) -> float | None:
    """What a tool made the daemons use in a second; `None` where that is not clearly more than without it.

    A rank test (Mann-Whitney) decides, because single seconds of other work hardly move it.
    """
    if mannwhitneyu(during, idle, alternative="greater").pvalue > CLEARLY:
        return None
    return usual(during) - usual(idle)


class RunContext:
    """Runs one tool after the other and keeps what each cost."""

    def __init__(self, probe: Path, seconds: float, scratch: Path) -> None:
        self.probe = str(probe)
        self.seconds = seconds
        self.scratch = scratch

    def cost(
        self,
        tool: str,
        containers: int,
        command: Sequence[str],
        *,
        asks_engine: bool = False,
        each_second: Callable[[], bool] | None = None,
    ) -> Cost:
        """Cost of a tool while it samples once a second; starting it is left out."""
        in_tens = tool in IN_TENS
        seconds = WRITTEN_EVERY_S * max(1, round(self.seconds / WRITTEN_EVERY_S)) if in_tens else self.seconds
        seconds = max(seconds, HOUSEKEEPING_S) if asks_engine else seconds
        idle = self.idle_engine() if asks_engine else []
        with (self.scratch / "tool.log").open("wb") as log:
            running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                if each_second is not None and not answers(each_second):
                    raise SystemExit(f"{tool} does not answer: {Path(log.name).read_text(errors='replace')[-400:]}")
                watch(set(), WARM_UP_S, each_second)
                pids = tree(running.pid)
                passed = watch(pids, seconds, each_second)
                memory = resident_mb(pids)
                if running.poll() is not None:
                    output = Path(log.name).read_text(errors="replace")[-400:]
                    raise SystemExit(f"{tool} ended before it was measured: {output}")
            finally:
                stop(running)
        idle += self.idle_engine() if asks_engine else []
        own = (fmean if in_tens else usual)([second.own for second in passed])
        daemons = caused([second.daemons for second in passed], idle) if asks_engine else 0.0
        return Cost(tool, containers, 1e3 * own, None if daemons is None else 1e3 * daemons, memory)

    def idle_engine(self) -> list[float]:
        """What the daemons use in each second without the tool; asked before and after it, as that may drift."""
        return [second.daemons for second in watch(set(), HOUSEKEEPING_S / 2)]

    def probe_command(self, what: str, groups: Sequence[str], hz: int, seconds: float) -> list[str]:
        """`record` or `floor` over these control groups."""
        command = [self.probe, what, "--hz", str(hz), "--duration", str(seconds)]
        if what == "record":
            out = tempfile.mkdtemp(dir=self.scratch)
            command += ["--out", f"{out}/trace", "--no-convert"]
        return command + [word for group in groups for word in ("--cgroup", group)]

    def rapid(self, group: str, load: int) -> Rapid:
        """A recording at 1 kHz, under so many endless loops."""
        floor = None if load else self._floor_share(group)
        command = self.probe_command("record", [group], 1000, self.seconds)
        out = Path(command[command.index("--out") + 1])
        burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(load)]
        try:
            subprocess.run(command, check=True, timeout=self.seconds + 60, capture_output=True)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        subprocess.run([self.probe, "convert", str(out)], check=True, timeout=120, capture_output=True)
        trace = json.loads((out / "trace.json").read_text())
        footer = trace["footer"]
        return Rapid(
            load=f"{load} endless loops" if load else "none of ours",
            seconds=self.seconds,
            core_share=footer["probe_cpu_ns"]
            / (footer["ended_monotonic_ns"] - trace["header"]["started_monotonic_ns"]),
            floor_share=floor,
            ticks=footer["ticks"],
            missed=footer["missed_ticks"],
            lateness_p50_us=footer["lateness_p50_ns"] / 1e3,
            lateness_p99_us=footer["lateness_p99_ns"] / 1e3,
            lateness_max_us=footer["lateness_max_ns"] / 1e3,
            resident_mb=footer["peak_resident_bytes"] / 1e6,
            scheduler=trace["header"]["scheduler"],
        )

    def _floor_share(self, group: str) -> float:
        command = self.probe_command("floor", [group], 1000, self.seconds)
        output = subprocess.run(
            command, check=True, timeout=self.seconds + 60, capture_output=True, text=True
        ).stdout
        return float(json.loads(output)["cpu_ns"]) / (self.seconds * 1e9)


def stop(running: subprocess.Popen[bytes]) -> None:
    """End a tool that was started here."""
    running.terminate()
    try:
        running.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
