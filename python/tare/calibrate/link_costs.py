"""What a network link of the kernel adds to a request: macvlan and ipvlan, beside the same path without them.

Sent to a host and run as root by its Python: `link_costs.py REPEATS SECONDS TARE_LOAD SUBNET` prints JSON. SUBNET
is a free /27 that it divides among its links. After SECONDS no further repeat begins, if there were three.
`requests`: path → load → "server", "client" (CPU ns a request) and "time" (mean ns from one of a connection to its
next), a list with one figure for each repeat; `packets`: path → "first", "second" in the form of kernel_events.py;
`lacks`: what could not be measured, with the reason. Paths of one repeat follow
each other, so that a disturbance affects all of them.

Every link has an end in a namespace that nothing but this program holds, so the kernel removes all of them when it
ends, even by a signal.
"""

from __future__ import annotations

import ctypes
import ipaddress
import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

_LOADS = {"busy": (16, 100, 0.3), "alone": (1, 100, 0.2), "large": (16, 16384, 0.3)}
"""Load → connections, bytes of a reply, seconds; the same loads as in the study `unit-costs`."""
_PACKETS, _ALONE, _PACKET_BYTES = 2000, 1000, 100
_FEWEST = 3
_PORT, _PREFIX = 16379, 29
_CALL_S, _START_S, _POLL_S = 20.0, 10.0, 0.01
_NEWNET, _DEATH_SIGNAL = 0x40000000, 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_MODES = {"macvlan": "bridge", "ipvlan": "l2"}
Figures = dict[str, list[float]]


class PathError(Exception):
    """A path that cannot be made or measured here."""


_FAILURES = (OSError, PathError, subprocess.SubprocessError)
"""What leaves out one path; the others are measured."""


@dataclass(frozen=True)
class NetworkPath:
    """One path. `server`, `client`: open files of their namespaces, `None` for the machine's own."""

    name: str
    server: int | None
    client: int | None
    address: str


def main(repeats: int, seconds: float, program: str, subnet: str) -> None:
    """Make every path, measure each up to `repeats` times and print the figures."""
    until = time.monotonic() + seconds
    found = _Found({}, {}, {})
    with ExitStack() as stack:
        jobs = _jobs(stack)
        paths: dict[str, tuple[NetworkPath, int]] = {}
        for name, laid in _paths(ipaddress.IPv4Network(subnet)):
            try:
                path = laid(stack)
                paths[name] = (path, _serve(stack, program, path))
            except _FAILURES as error:
                found.lacks[name] = str(error)
        for done in range(repeats):
            if done >= _FEWEST and time.monotonic() > until:
                break
            for path, server in [each for name, each in paths.items() if name not in found.lacks]:
                found.add(program, path, server, jobs)
    whole = {name: each for name, each in found.requests.items() if name not in found.lacks}
    packets = {name: found.packets[name] for name in whole}
    lacks = [f"{name}: {why}" for name, why in found.lacks.items()]
    json.dump({"requests": whole, "packets": packets, "lacks": lacks}, sys.stdout)


@dataclass(frozen=True)
class _Found:
    """What was measured so far, by path; and why a path is left out."""

    requests: dict[str, dict[str, Figures]]
    packets: dict[str, Figures]
    lacks: dict[str, str]

    def add(self, program: str, path: NetworkPath, server: int, jobs: Mapping[str, str]) -> None:
        """Measure a path once under every load, and a packet."""
        try:
            one = {load: _asked(program, path, server, jobs[load], load) for load in _LOADS}
            first, second = _packet(path)
        except _FAILURES as error:
            self.lacks[path.name] = str(error)
            return
        for load, figures in one.items():
            for quantity, value in figures.items():
                of_load = self.requests.setdefault(path.name, {}).setdefault(load, {})
                of_load.setdefault(quantity, []).append(value)
        for way, value in (("first", first), ("second", second)):
            self.packets.setdefault(path.name, {}).setdefault(way, []).append(value)


def _paths(subnet: ipaddress.IPv4Network) -> list[tuple[str, Callable[[ExitStack], NetworkPath]]]:
    """Every path with what makes it, each on a part of the subnet."""
    wire, macvlan, ipvlan, pod = subnet.subnets(new_prefix=_PREFIX)
    return [
        ("loopback", lambda _: NetworkPath("loopback", None, None, "127.0.0.1")),
        ("wire", lambda stack: _between_hosts(stack, wire, None)),
        ("macvlan", lambda stack: _between_hosts(stack, macvlan, "macvlan")),
        ("ipvlan", lambda stack: _between_hosts(stack, ipvlan, "ipvlan")),
        ("pod-macvlan", lambda stack: _pod(stack, pod)),
    ]


def _between_hosts(stack: ExitStack, subnet: ipaddress.IPv4Network, kind: str | None) -> NetworkPath:
    """A veth pair in place of the network between two hosts: the machine has one end, another namespace the other.

    With `kind`, the server is in a third namespace, on a link of that kind whose parent is the machine's end, as
    deployments/network/lan.py has the engine make it.
    """
    other, (here, there, inside) = _namespace(stack), _addresses(subnet)
    device = f"tarel{os.getpid()}{'wmi'[(None, 'macvlan', 'ipvlan').index(kind)]}"
    _ip("link", "add", "name", device, "type", "veth", "peer", "name", "wire", "netns", str(other.pid))
    stack.callback(_gone, device)
    _up(device, here)
    _up("wire", there, other)
    if kind is None:
        return NetworkPath("wire", None, other.fd, here.partition("/")[0])
    container = _namespace(stack)
    _child(device, container, kind, inside)
    return NetworkPath(kind, container.fd, other.fd, inside.partition("/")[0])


def _pod(stack: ExitStack, subnet: ipaddress.IPv4Network) -> NetworkPath:
    """Server and machine each on a macvlan of one parent, as deployments/pod lays `cni: macvlan`."""
    holder, container, (here, _, inside) = _namespace(stack), _namespace(stack), _addresses(subnet)
    master, own = (f"tarel{os.getpid()}{letter}" for letter in "po")
    _ip("link", "add", "name", master, "type", "veth", "peer", "name", "peer", "netns", str(holder.pid))
    stack.callback(_gone, master)
    _ip("link", "set", "dev", "peer", "up", within=holder)
    _ip("link", "set", "dev", master, "up")
    _child(master, container, "macvlan", inside)
    _ip("link", "add", "link", master, "name", own, "type", "macvlan", "mode", "bridge")
    _up(own, here)
    return NetworkPath("pod-macvlan", container.fd, None, inside.partition("/")[0])


@dataclass(frozen=True)
class _Namespace:
    """A network namespace: its first process and an open file of it."""

    pid: int
    fd: int


def _namespace(stack: ExitStack) -> _Namespace:
    """Make one that lasts as long as a child of this process, and that only as long as this process."""
    read, write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent(parent)
            code = 0 if _LIBC.unshare(_NEWNET) == 0 else ctypes.get_errno()
            os.write(write, bytes([code]))
            while code == 0:
                signal.pause()
        finally:
            os._exit(code)
    os.close(write)
    code = (os.read(read, 1) or b"\1")[0]
    os.close(read)
    stack.callback(_ended, pid)
    if code:
        raise PathError(f"no network namespace can be made: {os.strerror(code)}")
    fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    stack.callback(os.close, fd)
    made = _Namespace(pid, fd)
    _ip("link", "set", "dev", "lo", "up", within=made)
    return made


def _ended(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process with its parent; end it at once if that has ended already."""
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel knew of the wish
        os._exit(1)


def _entered(fd: int | None) -> Callable[[], None]:
    """What a child process does before it becomes a program: enter the namespace, end with its parent."""
    parent = os.getpid()

    def enter() -> None:
        die_with_parent(parent)
        if fd is not None and _LIBC.setns(fd, _NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    return enter


def _addresses(subnet: ipaddress.IPv4Network) -> tuple[str, str, str]:
    """The machine's, the client host's and the container's, with the prefix length."""
    here, there, inside = list(subnet.hosts())[:3]
    return f"{here}/{_PREFIX}", f"{there}/{_PREFIX}", f"{inside}/{_PREFIX}"


def _ip(*words: str, within: _Namespace | None = None) -> None:
    """Run ip(8), in a namespace or in the machine's own."""
    try:
        done = subprocess.run(
            ["ip", *words],  # noqa: S607 - wherever this system has it
            capture_output=True,
            timeout=_CALL_S,
            check=False,
            preexec_fn=_entered(None if within is None else within.fd),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PathError(f"ip {' '.join(words)}: {error}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise PathError(f"ip {' '.join(words[:2])}: {lines[-1] if lines else done.returncode}")


def _gone(device: str) -> None:
    """Remove a link of the machine, with all that lies on it."""
    try:
        _ip("link", "delete", "dev", device)
    except PathError as error:
        sys.stderr.write(f"{error}\n")


def _up(device: str, address: str, within: _Namespace | None = None) -> None:
    _ip("address", "add", address, "dev", device, within=within)
    _ip("link", "set", "dev", device, "up", within=within)


def _child(parent: str, container: _Namespace, kind: str, address: str) -> None:
    """A link of `kind` on a parent of the machine, in the container's namespace."""
    words = ("type", kind, "mode", _MODES[kind])
    try:
        _ip("link", "add", "link", parent, "name", "eth0", "netns", str(container.pid), *words)
    except PathError as error:
        raise PathError(f"this kernel makes no {kind}: {error}") from error
    _up("eth0", address, container)


def _serve(stack: ExitStack, program: str, path: NetworkPath) -> int:
    """Start the server of a path; return its pid. It has ended when the stack is left."""
    server = subprocess.Popen(
        [program, "echo", f"--address={path.address}:{_PORT}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=_entered(path.server),  # noqa: PLW1509 - one thread alone
    )
    stack.callback(server.wait)
    stack.callback(server.kill)
    until = time.monotonic() + _START_S
    while server.poll() is None and time.monotonic() < until:
        asked = subprocess.run(
            [program, "ask", f"--address={path.address}:{_PORT}", "PING"],
            capture_output=True,
            timeout=_CALL_S,
            check=False,
            preexec_fn=_entered(path.client),
        )
        if asked.returncode == 0:
            return server.pid
        time.sleep(_POLL_S)
    raise PathError(f"no connection to its server at {path.address}:{_PORT}; a firewall of this machine may be why")


def _jobs(stack: ExitStack) -> Mapping[str, str]:
    """Load → file of its job, in memory, so that nothing is left even by a signal."""
    jobs = {}
    for load, (_, size, _) in _LOADS.items():
        steps = [{"send": f"GET {size}", "expect": {"bytes": size}}]
        fd = os.memfd_create(f"tare-{load}")
        stack.callback(os.close, fd)
        os.write(fd, json.dumps({"format": 1, "operations": [{"name": "get", "steps": steps}]}).encode())
        jobs[load] = f"/proc/{os.getpid()}/fd/{fd}"
    return jobs


def _asked(program: str, path: NetworkPath, server: int, job: str, load: str) -> dict[str, float]:
    """Run the client once; in ns a request: CPU time of both sides, and from one of a connection to its next."""
    connections, _, seconds = _LOADS[load]
    before = time.clock_gettime(_cpu_clock(server))
    done = subprocess.run(
        [
            *(program, "run", "--protocol=redis", f"--address={path.address}:{_PORT}", f"--job={job}"),
            *(f"--connections={connections}", f"--duration={seconds}", f"--window={seconds}"),
        ],
        capture_output=True,
        timeout=_CALL_S,
        check=False,
        preexec_fn=_entered(path.client),
    )
    served = time.clock_gettime(_cpu_clock(server)) - before
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise PathError(lines[-1] if lines else f"tare-load ended with {done.returncode}")
    measured: Any = json.loads(done.stdout)["measure"]
    requests = measured["requests"]
    if not requests or measured["failed"]:
        raise PathError(f"{measured['failed']} of {requests} requests failed")
    return {
        "server": 1e9 * served / requests,
        "client": measured["usage"]["cpu_ns"] / requests,
        "time": 1e9 * connections * measured["seconds"] / requests,  # as the study has it: a mean, not a median
    }


def _cpu_clock(pid: int) -> int:
    """CPU clock of a process, as clock_getcpuclockid(3) gives it (include/linux/posix-timers.h, CPUCLOCK_SCHED)."""
    return (~pid << 3) | 2


def _packet(path: NetworkPath) -> tuple[float, float]:
    """One UDP datagram, sent and received by one thread that has a socket at each end: no wake-up is in it.

    First: CPU time of a loop of both calls; second: each pair of calls timed alone, median. Both in ns.
    """
    with closing(_socket(path.server)) as server, closing(_socket(path.client)) as client:
        server.bind((path.address, 0))
        limit_receiving(server, _CALL_S)
        client.connect(server.getsockname())
        data = bytes(_PACKET_BYTES)
        for _ in range(_PACKETS // 10):  # the neighbour is looked up, caches fill
            client.send(data)
            server.recv(_PACKET_BYTES)
        began = time.thread_time_ns()
        for _ in range(_PACKETS):
            client.send(data)
            server.recv(_PACKET_BYTES)
        first = (time.thread_time_ns() - began) / _PACKETS
        alone = []
        for _ in range(_ALONE):
            at = time.perf_counter_ns()
            client.send(data)
            server.recv(_PACKET_BYTES)
            alone.append(time.perf_counter_ns() - at)
    return first, statistics.median(alone)


def limit_receiving(receiver: socket.socket, seconds: float) -> None:
    """Have a receive without data raise `BlockingIOError` after that time.

    The kernel keeps the limit: with `settimeout` each receive would call poll(2) too, and be timed with it.
    """
    whole, rest = divmod(seconds, 1)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(whole), int(rest * 1e6)))


def _socket(fd: int | None) -> socket.socket:
    """A UDP socket in a namespace; this thread is in its own again afterwards."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        if fd is not None and _LIBC.setns(fd, _NEWNET):
            raise OSError(ctypes.get_errno(), "a namespace cannot be entered")
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    finally:
        _LIBC.setns(own, _NEWNET)
        os.close(own)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4])
