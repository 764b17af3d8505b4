"""Cost of single kernel events on this machine: bare, and in a container under each seccomp filter.

calibrate/kernel_events.py measures each in two ways that should agree: docs/reference/unit-costs.md.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from docker.errors import DockerException
from docker.types import Mount
from requests.exceptions import RequestException
from scipy.special import stdtrit

from tare.deployments.container.once import in_container, tree
from tare.errors import RunFailed, TareError
from tare.sites import Host
from tare.study.values import Strict

if TYPE_CHECKING:
    from docker import DockerClient

Event = Literal["syscall", "fault", "wakeup", "read", "fsync", "read-cpu", "write-cpu", "packet", "exit"]
EVENTS: Mapping[Event, str] = {
    "syscall": "system call",
    "fault": "page fault",
    "wakeup": "wake-up across CPUs",
    "read": "read of 4 KiB",
    "fsync": "fsync of 4 KiB",
    "read-cpu": "CPU of a read",
    "write-cpu": "CPU of a write",
    "packet": "packet",
    "exit": "VM exit",
}
_BY_PROGRAM: Sequence[Event] = ("syscall", "fault", "wakeup", "read", "fsync", "read-cpu", "write-cpu")
"""Events that `PROGRAM` measures; packets are measured by link_costs.py, `exit` in a guest."""
PROGRAM = Path(__file__).parent.parent / "calibrate" / "kernel_events.py"
REPEATS = 9
_TIME_S = 180.0
_FILTERS: Sequence[Literal["default", "unconfined"]] = ("default", "unconfined")
_PLACE: Mapping[str | None, str] = {
    None: "bare", "default": "container, seccomp default", "unconfined": "container, unconfined",
}  # fmt: skip
_AGREE = math.log(1.5)
"""Two ways agree within a factor of 1.5, or if their intervals overlap."""
_INSIDE = "/tare-kernel-events.py"
_PLACES = ("layer=/tmp", "bind=/bind", "volume=/volume")
"""Where a container reads and writes: its own layer, a directory of the host, a volume of the engine's."""


class EventCost(Strict):
    """Nanoseconds of one event: means over repeats, in the first and in the second way.

    `where`: `bare` or `container`; `seccomp`: the filter of a container; `storage`: of reads and writes to disk;
    `link`: of packets; `accelerator`: of a VM exit.
    `low`, `high`: 95 % intervals (Student's t over repeats).
    """

    event: Event
    where: Literal["bare", "container", "vm"]
    seccomp: Literal["default", "unconfined"] | None = None
    storage: str | None = None
    link: str | None = None
    accelerator: Literal["kvm"] | None = None
    ns: float
    low: float
    high: float
    n: int
    second_ns: float
    second_low: float
    second_high: float

    @property
    def name(self) -> str:
        """The event with its storage or link."""
        return ", ".join(filter(None, (EVENTS[self.event], self.storage, self.link)))

    @property
    def agree(self) -> bool:
        """Whether the two ways agree."""
        apart = self.low > self.second_high or self.second_low > self.high
        if not apart:
            return True
        return min(self.ns, self.second_ns) > 0 and abs(math.log(self.ns / self.second_ns)) <= _AGREE


def bare_events(host: Host, storages: Mapping[str, str]) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Measure all events outside containers; also return what is lacking. `storages`: name → directory."""
    places = [f"{name}={path}" for name, path in storages.items()]
    argv = [sys.executable, "-I", "-S", str(PROGRAM), str(REPEATS), ",".join(_BY_PROGRAM), *places]
    done = host.run(argv, timeout_s=_TIME_S)
    return costs_of(done.stdout, "bare", None)


def contained_events(
    host: Host, client: DockerClient, seccomp: Literal["default", "unconfined"], bind: Path
) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Measure the same in a container, with the host's own Python. `bind`: a directory of the host for its disk.

    Raises `RunFailed` if that is impossible. Removes image and container afterwards.
    """
    python = os.path.realpath(sys.executable)
    shared = dict.fromkeys(
        path for path in ("/usr", sys.base_prefix) if path == "/usr" or not path.startswith("/usr")
    )
    try:
        done = in_container(
            host,
            client,
            _image(),
            [python, "-I", "-S", _INSIDE, str(REPEATS), ",".join(_BY_PROGRAM), *_PLACES],
            prefix="tare-weigh",
            timeout_s=_TIME_S,
            volumes={
                **{path: {"bind": path, "mode": "ro"} for path in shared},
                str(bind): {"bind": "/bind", "mode": "rw"},
            },
            mounts=[Mount("/volume", None, type="volume")],  # without a name: it goes with its container
            network_mode="none",
            security_opt=["seccomp=unconfined"] if seccomp == "unconfined" else [],
        )
    except (DockerException, RequestException) as error:
        raise RunFailed(f"the engine cannot run {PROGRAM.name}: {error}") from error
    if done.code:
        output = (done.stdout + done.stderr).decode(errors="replace")
        raise RunFailed(f"{PROGRAM.name} failed in a container: {output[-200:]}")
    return costs_of(done.stdout, "container", seccomp)


def _image() -> bytes:
    """Make a root file system with the program alone and links into /usr, where the host's is mounted."""
    return tree(
        {_INSIDE: PROGRAM.read_bytes()},
        0o644,
        folders={"usr": 0o755, "bind": 0o755, "volume": 0o755, "tmp": 0o1777},
        links={name: f"usr/{name}" for name in ("bin", "lib", "lib64")},
    )


def costs_of(
    printed: bytes, where: Literal["bare", "container"], seccomp: Literal["default", "unconfined"] | None
) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Parse the program's output. Raises `RunFailed` if it is incomplete."""
    found = []
    try:
        tree = json.loads(printed)
        for event, of in tree["events"].items():
            for storage, ways in of.items():
                found.append(event_cost(event, ways, where=where, seccomp=seccomp, storage=storage or None))
        return tuple(found), tuple(f"{where}: {why}" for why in tree["lacks"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"the output of {PROGRAM.name} is incomplete: {error}") from error


def event_cost(  # noqa: PLR0913 - all that tells events apart
    event: Event,
    ways: Mapping[str, Sequence[float]],
    *,
    where: Literal["bare", "container", "vm"],
    seccomp: Literal["default", "unconfined"] | None = None,
    storage: str | None = None,
    link: str | None = None,
    accelerator: Literal["kvm"] | None = None,
) -> EventCost:
    """Summarise both ways' figures. Raises `KeyError`, `TypeError` or `ValueError` if one is missing."""
    first, second = _mean(ways["first"]), _mean(ways["second"])
    return EventCost(
        event=event, where=where, seccomp=seccomp, storage=storage, link=link,
        accelerator=accelerator,
        ns=first[0], low=first[1], high=first[2], n=len(ways["first"]),
        second_ns=second[0], second_low=second[1], second_high=second[2],
    )  # fmt: skip


def _mean(values: Sequence[float]) -> tuple[float, float, float]:
    mean, n = statistics.fmean(values), len(values)
    reach = float(stdtrit(n - 1, 0.975)) * statistics.stdev(values) / math.sqrt(n)
    return mean, mean - reach, mean + reach


def filter_cost(costs: Sequence[EventCost]) -> tuple[float, float] | None:
    """Return the ns that the default seccomp filter adds to a system call, in each way; `None`: not measured."""
    calls = {each.seccomp: each for each in costs if each.event == "syscall" and each.where == "container"}
    default, without = calls.get("default"), calls.get("unconfined")
    if default is None or without is None:
        return None
    return default.ns - without.ns, default.second_ns - without.second_ns


def event_lines(costs: Sequence[EventCost]) -> Iterator[str]:
    """Return a table of 80 columns: microseconds, half of the 95 % interval, second way, agreement."""
    if not costs:
        return
    yield "\N{MICRO SIGN}s an event, \N{PLUS-MINUS SIGN} half of the 95 % interval, and measured in a second way"
    yield ""
    for each in costs:
        place = _PLACE[each.seccomp] if each.accelerator is None else f"virtual machine, {each.accelerator}"
        figure = f"{_us(each.ns)} \N{PLUS-MINUS SIGN}{_us(each.high - each.ns)}"
        agree = "" if each.agree else " differs"
        yield f"{each.name:<23}{place:<27}{figure:>13} {_us(each.second_ns):>7}{agree}".rstrip()
    added = filter_cost(costs)
    if added is not None:
        yield ""
        ways = f"{added[0]:.0f} ns to a system call, in the second way {added[1]:.0f} ns"
        yield f"the default seccomp filter adds {ways}"


def _us(ns: float) -> str:
    """Format microseconds with as many digits as fit a column."""
    return f"{ns / 1000:.{2 if abs(ns) < 100_000 else 0}f}"


def measured_events(
    host: Host, client: DockerClient | None, folder: Path
) -> tuple[tuple[EventCost, ...], tuple[str, ...]]:
    """Measure bare and, with an engine, in containers with and without its filter; also return what is lacking.

    `folder`: a directory of the host, on the disk that holds data.
    """
    costs, lacks = bare_events(host, {"host": str(folder), "tmpfs": "/dev/shm"})  # noqa: S108 - a tmpfs is wanted
    if client is None:
        return costs, (*lacks, "container: no engine answers")
    for seccomp in _FILTERS:
        try:
            more, without = contained_events(host, client, seccomp, folder)
        except TareError as error:
            lacks += (f"container, seccomp {seccomp}: {error}",)
            continue
        costs, lacks = (*costs, *more), (*lacks, *without)
    return costs, lacks
