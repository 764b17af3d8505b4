"""A host's own resources: TARE_HOME, address, memory and disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tare.deployments import MACHINES
from tare.deployments.vm.vm import KERNEL_BYTES
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.sites.layout import ADVICE, home_on
from tare.study.model import ArmSettings, Placement
from tare.study.protocol_spec import DuetSpec, RotateSpec
from tare.study.values import size_bytes

_CALL_S = 30.0
_SPARE_DISK = 1.1
"""Factor on the estimated disk space: a tenth more is cheaper than a study that ends with a full disk."""
_LOCAL = "local"
_NOT_ITS_OWN = 3
_BINDS = f"""\
import errno, socket, sys
address = sys.argv[1]
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as way:
    try:
        way.bind((address, 0))
    except OSError as error:
        sys.exit({_NOT_ITS_OWN} if error.errno == errno.EADDRNOTAVAIL else 0)
"""
"""The program exits with `_NOT_ITS_OWN` if no interface of the host has the address."""


def _home(there: HostPlan) -> Iterator[Lack]:
    if there.layout is not None and (fault := home_on(there.host, str(there.layout.home)).fault) is not None:
        yield Lack(fault, "give the host another `home` in sites.yaml" if there.in_sites else ADVICE)


def _address(there: HostPlan) -> Iterator[Lack]:
    if there.address is None:
        return
    argv = ["python3", "-I", "-S", "-c", _BINDS, there.address]
    if there.host.run(argv, timeout_s=_CALL_S, check=False).code == _NOT_ITS_OWN:
        yield Lack(
            f"none of its interfaces has the address {there.address}",
            "set `address` in sites.yaml to an address of this host on the measured network",
        )


def _memory(there: HostPlan) -> Iterator[Lack]:
    if not there.uses or (size := memory_bytes(there.host)) is None:
        return
    for name, wanted in _at_once(there).items():
        if wanted > size:
            why = (
                f"arm {name} may use {wanted / 2**30:.1f} GiB of memory by its limits, but this host has "
                f"{size / 2**30:.1f} GiB"
            )
            yield Lack(why, "lower limits.memory")


def _at_once(there: HostPlan) -> Mapping[str, int]:
    """Who wants memory → bytes wanted at a time: each arm, or those that run at once together."""
    wanted = defaultdict[str, int](int)
    for use in there.uses:
        own = _memory_of(use.placement)
        if there.in_sites:  # one node a host, and server and client only in turns
            wanted[use.arm] = max(wanted[use.arm], own)
        else:
            wanted[use.arm] += own * (1 if use.settings is None else use.settings.sut.nodes)
    protocol = None if there.study is None else there.study.protocol
    if isinstance(protocol, RotateSpec):
        return {" and ".join(wanted): sum(wanted.values())}
    if there.study is None or not isinstance(protocol, DuetSpec):
        return wanted
    baseline = there.study.baseline
    return {
        f"{name} with {baseline}": own + wanted[baseline] for name, own in tuple(wanted.items()) if name != baseline
    }


def _memory_of(placement: Placement) -> int:
    """Memory of a placement by its limits, in bytes; a virtual machine needs some more for its kernel."""
    limit, kernel = placement.limits.memory, placement.deployment in MACHINES
    return (0 if limit is None else size_bytes(limit)) + kernel * KERNEL_BYTES


def _huge_pages(there: HostPlan) -> Iterator[Lack]:
    if not reserved_pages(there.host):
        yield Lack("this host has reserved none", "sysctl -w vm.nr_hugepages=NUMBER, if its kernel has them")


def wants_huge_pages(settings: ArmSettings) -> bool:
    """Whether a server does not start, or silently goes without, unless explicit huge pages are reserved."""
    given = settings.sut.settings
    return any(given.get(name) in (True, 1, "on", "ON") for name in ("huge_pages", "large_pages"))


def reserved_pages(host: Host) -> int:
    """Number of reserved explicit huge pages; 0 where the kernel has none."""
    for line in (host.read("/proc/meminfo") or b"").decode().splitlines():
        if line.startswith("HugePages_Total:"):
            return int(line.split()[1])
    return 0


def _disk(there: HostPlan) -> Iterator[Lack]:
    """Only hosts of servers hold loaded data."""
    if there.data_bytes is None or there.layout is None or not there.served:
        return
    free = free_bytes(there.host, str(there.layout.home))
    if free is not None and (wanted := there.data_bytes * _SPARE_DISK) > free:
        where = "set `home` in sites.yaml" if there.in_sites and there.host.name != _LOCAL else "set TARE_HOME"
        yield Lack(
            f"the data needs about {wanted / 1e9:.1f} GB of disk, but {free / 1e9:.1f} GB are free",
            f"make room, or {where} to a larger file system",
        )


def memory_bytes(host: Host) -> int | None:
    """Size of a host's memory; `None` if it cannot be read."""
    for line in (host.read("/proc/meminfo") or b"").decode().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


def free_bytes(host: Host, path: str) -> int | None:
    """Free bytes on the file system where `path` will be, from its nearest existing directory (df(1))."""
    while path != "/":
        done = host.run(["df", "--output=avail", "-B1", "--", path], timeout_s=_CALL_S, check=False)
        if done.code == 0:
            return int(done.text.split()[-1])
        path = path.rpartition("/")[0] or "/"
    return None


HOME = Requirement(
    "home",
    needed_by="every run",
    tried_how="test(1) of TARE_HOME, or of its nearest directory",
    hint=ADVICE,
    ask=_home,
    essential=True,
)
ADDRESS = Requirement(
    "address",
    needed_by="the site's other hosts",
    tried_how="binding a socket to it, without listening",
    hint="set `address` in sites.yaml",
    ask=_address,
    between_hosts=True,
)
MEMORY = Requirement(
    "memory",
    needed_by="limits.memory",
    tried_how="MemTotal in /proc/meminfo",
    hint="lower limits.memory",
    ask=_memory,
)
HUGE_PAGES = Requirement(
    "reserved huge pages",
    needed_by="arms with `huge_pages` or `large_pages` on",
    tried_how="HugePages_Total in /proc/meminfo",
    hint="reserve huge pages (vm.nr_hugepages), or leave the setting out",
    ask=_huge_pages,
)
DISK = Requirement(
    "disk",
    needed_by="loaded data",
    tried_how="df(1) where TARE_HOME is or will be",
    hint="free some space, or set TARE_HOME elsewhere",
    ask=_disk,
)
