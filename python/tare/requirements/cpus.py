"""CPUs that limits and protocols name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.study.protocol_spec import DuetSpec, RotateSpec
from tare.study.values import cpu_set


def _of_limits(there: HostPlan) -> Iterator[Lack]:
    wanted = {placed.limits.cpus for placed in there.placements if placed.limits.cpus is not None}
    online = _online(there.host) if wanted else None
    if online is None:
        return
    for cpus in sorted(wanted):
        if missing := cpu_set(cpus) - online:
            why = f"limits.cpus {cpus!r} names CPU {_listed(missing)}, but this host has {_listed(online)}"
            yield Lack(why, "change limits.cpus in the study")


def _of_protocol(there: HostPlan) -> Iterator[Lack]:
    spec = DuetSpec(name="duet") if there.study is None else there.study.protocol
    if not isinstance(spec, DuetSpec | RotateSpec) or spec.cpus is None:
        return
    if (online := _online(there.host)) is None:
        return
    what = "a duet" if isinstance(spec, DuetSpec) else "`rotate`"
    each = "one set per arm" if isinstance(spec, DuetSpec) else "for servers and for clients"
    for cpus in spec.cpus:
        if missing := cpu_set(cpus) - online:
            why = (
                f"{what} needs CPUs {' and '.join(spec.cpus)}, {each}, and this host has no CPU "
                f"{_listed(missing)} but {_listed(online)}"
            )
            yield Lack(why, "change protocol.cpus, or use `interleave`")


def _online(host: Host) -> frozenset[int] | None:
    """CPUs of a host; `None` if they cannot be read, so that nothing is held against it."""
    raw = host.read("/sys/devices/system/cpu/online")
    return cpu_set(raw.decode()) if raw else None


def _listed(cpus: Iterable[int]) -> str:
    return ",".join(str(cpu) for cpu in sorted(cpus))


CPUS = Requirement(
    "CPUs",
    needed_by="limits.cpus",
    tried_how="/sys/devices/system/cpu/online",
    hint="change limits.cpus in the study",
    ask=_of_limits,
)
CPUS_OF_PROTOCOL = Requirement(
    "CPUs of the protocol",
    needed_by="protocol.cpus",
    tried_how="/sys/devices/system/cpu/online",
    hint="change protocol.cpus, or use `interleave`",
    ask=_of_protocol,
)
