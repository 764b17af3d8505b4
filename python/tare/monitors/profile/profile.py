"""`profile`: stacks of all CPUs while a run measures, for `tare explain`. docs/guides/explain.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import EnvironmentLacks, RunFailed, StoreError, TareError
from tare.monitors import MonitorContext, Options, Program, Reading, TargetUpdate, WatchedProcess
from tare.monitors.probe import targets
from tare.monitors.profile.stacks import PROFILE, read_facts
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.sites.binaries import PROBE, find

TARGETS = "targets"
RATE_HZ = 199
"""Odd, so that samples do not coincide with timers of 100, 250 or 1000 Hz."""
MOST_HZ = 999
_NS = 1e-9
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
_ALL_CPUS = 0
"""The highest `perf_event_paranoid` with which any user may sample all CPUs (perf-security.rst)."""
_CALL_S = 10.0
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_PREFIX, _CANNOT = "tare-probe: ", "cannot be sampled"


def _lacks(there: HostPlan) -> Iterator[Lack]:
    """Ask for the program and what the kernel allows."""
    host, level = there.host, _number(there.host, _PARANOID)
    binary = find(host, PROBE)
    if binary is None:
        yield Lack("stacks are sampled by tare-probe, which is missing", PROBE.hint)
    elif level is None:
        yield Lack("this kernel has no perf events, or a container hides them; stacks cannot be sampled")
    elif level > _ALL_CPUS and not _is_root(host):
        yield Lack(
            f"kernel.perf_event_paranoid is {level}, so only root may sample the stacks of all CPUs",
            "run as root, or set it to 0 with sysctl",
        )
    elif _is_confined(host) and (why := _refused(host, binary)) is not None:
        yield Lack(why)


STACKS = Requirement(
    "stacks",
    needed_by="the monitor `profile`",
    tried_how="kernel.perf_event_paranoid; where a seccomp filter or missing capabilities may refuse it, 10 ms of "
    "sampling",
    hint="run as root, or set kernel.perf_event_paranoid to 0 with sysctl",
    ask=_lacks,
)


class Profile:
    """tare-probe as a second program: its cost is reported separately from the trace's."""

    daemons: ClassVar[frozenset[str]] = frozenset()
    reports_cost: ClassVar[bool] = True
    needs: ClassVar[tuple[Requirement, ...]] = (STACKS,)

    def settings_fault(self, interval_s: float, options: Options) -> str | None:  # noqa: ARG002 - it has a rate
        """Check the rate."""
        return _rate_fault(options)

    def programs(self, context: MonitorContext) -> tuple[Program, ...]:
        """One program."""
        binary = find(context.host, PROBE)
        if binary is None:
            raise EnvironmentLacks("tare-probe has disappeared", hint=PROBE.hint)
        profile = f"{context.directory}/{PROFILE}"
        named = [
            word
            for each in context.watched
            for kind, what in _targets_without_netns(each)
            for word in (f"--{kind}", what)
        ]
        argv = (
            *(binary, "profile", "--out", profile, "--hz", str(context.options.get("hz", RATE_HZ))),
            *("--targets", f"{context.directory}/{TARGETS}", "--duration", f"{context.most_s:g}"),
            *named,
        )
        return (Program("profile", argv, started=f"{profile}.part"),)

    def update_targets(self, context: MonitorContext, later: tuple[WatchedProcess, ...]) -> TargetUpdate | None:  # noqa: ARG002 - the contract's
        """tare-probe reads the file again on SIGHUP."""
        lines = [f"{kind} {what}\n" for each in later for kind, what in _targets_without_netns(each)]
        return TargetUpdate(TARGETS, "".join(lines), "HUP")

    def final_commands(self, context: MonitorContext) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the contract's
        """No commands: the program writes its file when it ends."""
        return {}

    def read(self, context: MonitorContext, directory: Path) -> Reading:  # noqa: ARG002 - the contract's
        """Read the profile's own facts. Raises `RunFailed` if the profile is missing or has no samples."""
        try:
            facts = read_facts(directory / PROFILE)
        except StoreError as error:
            raise RunFailed(f"the profile of the run is missing: {error}", hint=_last_line(directory)) from error
        if not facts.samples:
            raise RunFailed("the profile has no samples", hint=_last_line(directory))
        return Reading(
            samples=facts.samples,
            table=None,
            values={
                "rate_hz": facts.rate_hz,
                "lost_samples": facts.lost,
                "kernel_symbols_missing": facts.kernel_symbols_missing,
                "began_monotonic_s": facts.began_ns * _NS,
                "ended_monotonic_s": facts.ended_ns * _NS,
                "cpu_s": facts.cpu_ns * _NS,
            },
        )


def _targets_without_netns(each: WatchedProcess) -> list[tuple[str, str]]:
    """Targets that distinguish samples: those of the trace except network namespaces."""
    return [(kind, what) for kind, what in targets(each) if kind != "netns"]


def _rate_fault(options: Options) -> str | None:
    unknown = sorted(set(options) - {"hz"})
    if unknown:
        return f"its only option is hz, not {unknown[0]}"
    rate = options.get("hz", RATE_HZ)
    if isinstance(rate, bool) or not isinstance(rate, int) or not 1 <= rate <= MOST_HZ:
        return f"hz is {rate!r}; give a whole number from 1 to {MOST_HZ}, best an odd one"
    return None


def _number(host: Host, path: str) -> int | None:
    try:
        return int((host.read(path) or b"").strip())
    except (TareError, OSError, ValueError):
        return None


def _is_root(host: Host) -> bool:
    try:
        return host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() == "0"
    except TareError:
        return False


def _is_confined(host: Host) -> bool:
    """Whether seccomp or missing capabilities may refuse root, as in a container (proc_pid_status(5))."""
    try:
        status = (host.read("/proc/self/status") or b"").decode(errors="replace")
    except (TareError, OSError):
        return True
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}
    held = int(fields.get("CapEff", "0"), 16)
    return fields.get("Seccomp", "0") != "0" or not held & (1 << _CAP_PERFMON | 1 << _CAP_SYS_ADMIN)


def _refused(host: Host, binary: str) -> str | None:
    """Why tare-probe cannot sample there, found by letting it try; `None` where it wrote a profile."""
    try:
        place = host.run(["mktemp", "-d"], timeout_s=_CALL_S).text.strip()
        profile = f"{place}/{PROFILE}"
        try:
            argv = [binary, "profile", "--out", profile, "--duration", "0.01"]
            done = host.run(argv, timeout_s=_CALL_S, check=False)
            written = host.run(["test", "-s", profile], timeout_s=_CALL_S, check=False).code == 0
        finally:
            host.run(["rm", "-rf", place], timeout_s=_CALL_S, check=False)
    except TareError as error:
        return f"stacks {_CANNOT}: {error}"
    if done.code == 0:
        return None if written else f"stacks {_CANNOT}: tare-probe, tried for 10 ms, wrote no profile"
    reason = _reason(done.stderr.decode(errors="replace").splitlines())
    if reason is None:
        reason = f"tare-probe, tried for 10 ms, ended with {done.code} and printed nothing"
    return reason if _CANNOT in reason else f"stacks {_CANNOT}: {reason}"


def _reason(lines: Sequence[str]) -> str | None:
    """The last message in what tare-probe printed to stderr, else the last line (the loader's, a panic's)."""
    printed = [line.strip() for line in lines if line.strip()]
    own = [line.removeprefix(_PREFIX) for line in printed if line.startswith((_PREFIX, "error: "))]
    chosen = own or printed
    return chosen[-1] if chosen else None


def _last_line(directory: Path) -> str:
    try:
        lines = (directory / "profile.stderr").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "it printed nothing"
