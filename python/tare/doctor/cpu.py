"""Checks of a host's CPUs and clock, from its facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.doctor import Line, ok, warning
from tare.record.host_facts import HostFacts

_MOST_STEAL = 0.01
"""Share of time given to other machines since boot above which to ask about it."""
_MOST_LOAD = 0.3
"""Average number of running or waiting tasks that an idle machine stays below."""
_CHEAP_CLOCKS = frozenset(
    {"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "timebase", "tod"}
)
"""Clocks that are read without entering the kernel (vdso(7)); others cost about a microsecond per reading."""


def cpu_lines(facts: HostFacts) -> Iterator[Line]:
    """Lines on the facts of `host_facts`."""
    yield _governor(facts.cpu_governors)
    yield _turbo(facts.cpu_turbo)
    yield _smt(facts.cpu_smt)
    yield _steal(facts)
    yield _clock(facts.clocksource)
    yield _load(facts.load_1min, facts.cpu_count)


def cpu_count_line(facts: HostFacts) -> Line:
    """The number of CPUs."""
    count, model = facts.cpu_count, facts.cpu_model or "model unknown"
    if count is None:
        return warning("CPUs", "the number cannot be read", "mount /sys")
    observed = f"{count}, {model}"
    if count == 1:
        return warning(
            "CPUs", observed, "server and client share one CPU, so a slower client looks like a slower server"
        )
    return ok("CPUs", observed)


def _governor(governors: Sequence[str] | None) -> Line:
    if governors is None:
        return ok("CPU governor", "not visible here: the hypervisor or the firmware decides")
    observed = ", ".join(governors)
    if list(governors) == ["performance"]:
        return ok("CPU governor", observed)
    return warning("CPU governor", observed, "while measuring: cpupower frequency-set --governor performance")


def _turbo(turbo: bool | None) -> Line:  # noqa: FBT001 - a fact, not a mode
    if turbo is None:
        return ok("CPU turbo", "not visible here")
    if not turbo:
        return ok("CPU turbo", "off")
    return warning(
        "CPU turbo",
        "on: the clock follows temperature and the number of busy cores",
        "while measuring: write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to …/cpu/cpufreq/boost",
    )


def _smt(smt: str | None) -> Line:
    if smt == "on":
        return warning(
            "CPU threads", "two of them share a core (SMT)", "give server and client whole cores by `cpus`"
        )
    return ok("CPU threads", "none shares a core" if smt else "not visible here")


def _steal(facts: HostFacts) -> Line:
    steal = facts.cpu_steal_fraction
    if steal is None:
        return warning("CPU steal", "cannot be read", "mount /proc")
    observed = f"{steal:.2%} of all time since boot went to other machines"
    if steal > _MOST_STEAL:
        return warning("CPU steal", observed, "use a quieter host or dedicated CPUs, and more blocks")
    return ok("CPU steal", observed)


def _clock(source: str | None) -> Line:
    if source is None:
        return warning("clock source", "cannot be read", "mount /sys")
    if source in _CHEAP_CLOCKS:
        return ok("clock source", source)
    return warning("clock source", f"{source}: each reading is slow", "boot with clocksource=tsc if it is stable")


def _load(load: float | None, cpus: int | None) -> Line:
    if load is None:
        return warning("load of others", "cannot be read", "mount /proc")
    observed = f"{load:.2f} tasks over the last minute" + ("" if cpus is None else f", on {cpus} CPUs")
    if load > _MOST_LOAD:
        return warning("load of others", observed, "stop what else runs here: `top` shows it")
    return ok("load of others", observed)
