"""What tare-probe costs, beside the tools that it replaces, as ratios within one run.

    scripts/bench_probe.py --probe target/x86_64-unknown-linux-gnu/release/tare-probe --seconds 12

Every tool samples once a second. Its cost is the CPU time of its processes and, for tools that ask the engine, of
the engine's daemons over what they use without it. The dearest quarter of the seconds is left out, as others may
use the machine and its engine too; but not of tare-probe and the floor, which are watched for whole tens of
seconds: its writer works every ten, and that is no accident.

`floor` is the least that can be spent: it reads the very files that tare-probe reads of control groups, when
tare-probe reads them, and throws the bytes away. Needs root and a container engine; starts ten idle containers and
removes them. $CADVISOR names the program of cAdvisor, if any.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from scipy.stats import mannwhitneyu

from bench_rates import WHOLE_SECONDS_HZ, docker_stats_hz, scraped_hz
from bench_servers import CADVISOR_PORT, NODE_EXPORTER_PORT, answers, cadvisor, metrics_of, node_exporter, scrape
from bench_tables import CADVISOR, Cost, Rapid, table
from idle_containers import CONTAINERS, containers, group_of

WARM_UP_S = 3.0
DAEMONS = ("dockerd", "containerd", "containerd-shim-runc-v2", "containerd-shim")
STOP_TIMEOUT_S = 10.0
HOUSEKEEPING_S = 30.0
"""containerd's shims give memory back as often, for some four seconds: as much of it with a tool as without."""
CLEARLY = 0.01
"""Chance of daemons that do no more with a tool than without it to look as if they did."""
WRITTEN_EVERY_S = 10.0
"""How often tare-probe's writer is woken at 1 Hz."""
IN_TENS = ("floor", "tare-probe", "tare-probe --host")
"""Those of which no second is left out."""
RATES_S = 6.0
"""How long a tool is asked as fast as it answers."""


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
    found = {root}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return found


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
    """Mean of what was used in a second, the dearest quarter of the seconds left out."""
    spent = sorted(seconds)
    return fmean(spent[: max(1, len(spent) * 3 // 4)])


def caused(during: Sequence[float], idle: Sequence[float]) -> float | None:
    """What a tool made the daemons use in a second; `None` where that is not clearly more than without it.

    Clearly: by their ranks (Mann-Whitney), which a second of somebody else's does not move far.
    """
    if mannwhitneyu(during, idle, alternative="greater").pvalue > CLEARLY:
        return None
    return usual(during) - usual(idle)


class Bench:
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
                    said = Path(log.name).read_text(errors="replace")[-400:]
                    raise SystemExit(f"{tool} ended before it was measured: {said}")
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
        said = subprocess.run(command, check=True, timeout=self.seconds + 60, capture_output=True, text=True).stdout
        return float(json.loads(said)["cpu_ns"]) / (self.seconds * 1e9)


def stop(running: subprocess.Popen[bytes]) -> None:
    """End a tool that was started here."""
    running.terminate()
    try:
        running.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def compare(bench: Bench, ids: Sequence[str]) -> list[Cost]:
    """All tools that this machine has."""
    groups = [group_of(name) for name in ids]
    long_s = bench.seconds + 60
    costs = []
    for count in (1, CONTAINERS):
        chosen = groups[:count]
        for _ in range(2):  # the ratio of the two is the point, so they take turns
            costs.append(bench.cost("floor", count, bench.probe_command("floor", chosen, 1, long_s)))
            costs.append(bench.cost("tare-probe", count, bench.probe_command("record", chosen, 1, long_s)))
        costs.append(
            bench.cost("docker stats", count, ["docker", "stats", "--no-trunc", *ids[:count]], asks_engine=True)
        )
    host = [bench.probe, "record", "--host", "--hz", "1", "--no-convert", "--out", f"{bench.scratch}/host"]
    costs.append(bench.cost("tare-probe --host", 0, host))
    for tool in (
        ["mpstat", "-P", "ALL", "1"],
        ["iostat", "-x", "1"],
        ["sar", "-u", "1"],
        ["sar", "-A", "1"],
        ["pidstat", "-u", "-r", "-d", "1"],
    ):
        if not shutil.which(tool[0]):
            continue
        costs.append(bench.cost(" ".join(tool[:-1]), 0, tool))
    if exporter := node_exporter():
        costs.append(bench.cost("node_exporter, scraped", 0, exporter, each_second=scrape(NODE_EXPORTER_PORT)))
    if command := cadvisor("1s"):
        asked = scrape(CADVISOR_PORT)
        costs.append(bench.cost(CADVISOR, CONTAINERS, command, asks_engine=True, each_second=asked))
    else:
        print("cAdvisor was not there: $CADVISOR names no program", file=sys.stderr)
    return costs


def fastest(tool: str, container: str, rapid: Rapid) -> float | None:
    """Readings a second at most; `None` where that was not measured."""
    if tool == "tare-probe":
        return rapid.ticks / rapid.seconds
    if tool == "docker stats":
        return docker_stats_hz(container, RATES_S)
    if tool.split(" ", maxsplit=1)[0] in ("mpstat", "iostat", "sar", "pidstat"):
        return WHOLE_SECONDS_HZ
    if tool.startswith("node_exporter") and (exporter := node_exporter()):
        return scraped_hz(exporter, metrics_of(NODE_EXPORTER_PORT), RATES_S)
    if tool.startswith("cAdvisor") and (command := cadvisor("10ms")):
        stamped = r'container_cpu_usage_seconds_total\{[^}]*id="/"[^}]*\} \S+ (\d+)'
        return scraped_hz(command, metrics_of(CADVISOR_PORT), RATES_S, stamped)
    return None


def main() -> None:
    """Measure, print Markdown, write JSON."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--probe", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=12.0)
    options.add_argument("--json", type=Path, help="write the figures here too")
    chosen = options.parse_args()
    if os.geteuid() != 0 or not shutil.which("docker"):
        sys.exit("bench_probe: needs root and a container engine")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch, containers() as ids:
        bench = Bench(chosen.probe, chosen.seconds, Path(scratch))
        costs = compare(bench, ids)
        rapid = [bench.rapid(group_of(ids[0]), load) for load in (0, 10)]
        rates = {tool: fastest(tool, ids[0], rapid[0]) for tool in {cost.tool for cost in costs}}
    print(f"kernel {platform.release()}, {os.cpu_count()} CPUs, load before {os.getloadavg()[2]:.1f} (15 min)\n")
    print(table(costs, rapid, rates))
    if chosen.json:
        figures = {
            "costs": [asdict(cost) for cost in costs],
            "rapid": [asdict(run) for run in rapid],
            "fastest_hz": rates,
        }
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
