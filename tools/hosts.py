"""Test hosts: machines to try two-host runs on, made of namespaces of this one, and removed without a trace.

    python -m tools.hosts up --count 2 [--engines] [--rate 1gbit]
    python -m tools.hosts sites
    python -m tools.hosts down

Each host has a network, process, mount, host name and control group namespace of its own, its own /run, /var/lib,
/root and /tmp, and an sshd with a key of its own; with `--engines` a dockerd too. Kernel, clock, CPUs and programs
are this machine's, so figures from such hosts are not of two machines.

Two switches join them, in a namespace without firewall rules: one by which this machine reaches each host's sshd
(10.213.7.0/24), and one that only the hosts are on (10.213.8.0/24), the measured network. `--rate` slows that one,
by a token bucket (tc-tbf(8)) at both ends of each wire.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATE, ROOTS = Path("/run/tare-hosts"), Path("/var/lib/tare-hosts")
NAMES = Path("/run/netns")
SCRIPT = Path(__file__).parents[1] / "scripts" / "test_host.sh"
SWITCH, UPLINK = "tare-switch", "tare-hosts"
MANAGED, MEASURED = "10.213.7", "10.213.8"
_GROUPS = Path("/sys/fs/cgroup")
_BURST, _QUEUE = "64kb", "20ms"
_QUICK_S, _UP_S, _ENGINE_S, _DOWN_S = 30.0, 30.0, 90.0, 30.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class HostsFailed(Exception):
    """What could not be made or removed, and why."""


@dataclass(frozen=True)
class TestHost:
    """One of them. `managed`: where its sshd listens; `measured`: its address on the network between the hosts."""

    __test__ = False  # no test, whatever pytest makes of the name

    number: int

    @property
    def name(self) -> str:
        """Host name, and that of its network namespace."""
        return f"tare-h{self.number}"

    @property
    def managed(self) -> str:
        """An address that this machine reaches."""
        return f"{MANAGED}.{self.number + 1}"

    @property
    def measured(self) -> str:
        """An address that only the hosts reach."""
        return f"{MEASURED}.{self.number + 1}"

    @property
    def root(self) -> Path:
        """What is its own of the file system."""
        return ROOTS / self.name

    def inside(
        self, *argv: str, timeout_s: float = _QUICK_S, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in its network namespace alone: enough for ip(8), and possible while its sshd is down."""
        return _run("nsenter", f"--net=/run/netns/{self.name}", *argv, timeout_s=timeout_s, check=check)

    def link(self, *, up: bool) -> None:
        """Plug the wire of the measured network in, or pull it out, at the switch."""
        _in_switch("ip", "link", "set", f"w{self.number}", "up" if up else "down")


def up(count: int, *, engines: bool = False, rate: str | None = None) -> tuple[TestHost, ...]:
    """Make `count` hosts and return when each answers. What an earlier call left is removed first."""
    down()
    hosts = tuple(TestHost(number) for number in range(1, count + 1))
    try:
        _make_keys(hosts)
        _make_switch()
        for host in hosts:
            _join(host, rate)
            _start(host, engines=engines)
        for host in hosts:
            _await(host, engines=engines)
        (STATE / "sites.yaml").write_text(sites(hosts))
    except BaseException:
        down()
        raise
    return hosts


def down() -> None:
    """Remove all hosts, whoever made them: processes by their control group and namespace, the rest by its name."""
    found = names()
    _kill(found)
    for name in (*found, SWITCH):
        if Path(f"/run/netns/{name}").exists():
            _run("ip", "netns", "delete", name)
    if Path(f"/sys/class/net/{UPLINK}").exists():
        _run("ip", "link", "delete", UPLINK, check=False)  # it may have gone with the switch
    _unmount_names()
    _remove_groups()
    for place in (STATE, ROOTS):
        shutil.rmtree(place, ignore_errors=True)
        if place.exists():
            raise HostsFailed(f"{place} could not be removed: see what is mounted there")


def _unmount_names() -> None:
    """`ip netns add` mounts the directory of names on itself and leaves that; it goes with the last name."""
    mounted = f" {NAMES} " in Path("/proc/self/mounts").read_text()  # a bind of itself: `ismount` sees none
    if mounted and not any(NAMES.iterdir()):
        _run("umount", str(NAMES), check=False)  # somebody else's `ip` may be at work in it


@contextmanager
def made(count: int, *, engines: bool = False, rate: str | None = None) -> Iterator[tuple[TestHost, ...]]:
    """Hosts while this lasts."""
    hosts = up(count, engines=engines, rate=rate)
    try:
        yield hosts
    finally:
        down()


def sites(hosts: Sequence[TestHost]) -> str:
    """A sites.yaml: server on the first host, or one node on each but the last, and the client on the last."""
    *servers, client = [_entry(host) for host in hosts]
    if not servers:
        servers = [client]
    sut = servers[0] if len(servers) == 1 else f"[{', '.join(servers)}]"
    return f"format: 1\nsites:\n  - name: test-hosts\n    sut: {sut}\n    client: {client}\n"


def _entry(host: TestHost) -> str:
    return f"{{ssh: {host.name}, address: {host.measured}, ssh_config: {STATE}/ssh_config}}"


def ssh_config(hosts: Sequence[TestHost]) -> str:
    """What ssh(1) needs to reach each by its name."""
    return "".join(
        f"Host {host.name}\n  HostName {host.managed}\n  User root\n  IdentityFile {STATE}/client.key\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {STATE}/known_hosts\n  StrictHostKeyChecking yes\n"
        for host in hosts
    )


def _make_keys(hosts: Sequence[TestHost]) -> None:
    STATE.mkdir(mode=0o700)
    for name in ("client", *(host.name for host in hosts)):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(STATE / f"{name}.key"))
    (ROOTS / "keys").mkdir(parents=True)
    for name in [host.name for host in hosts]:
        shutil.copy(STATE / f"{name}.key", ROOTS / "keys")
    shutil.copy(STATE / "client.key.pub", ROOTS / "keys" / "authorized_keys")
    (ROOTS / "keys" / "sshd_config").write_text(
        f"AuthorizedKeysFile {ROOTS}/keys/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\nPidFile /run/sshd.pid\nMaxStartups 100\nMaxSessions 100\n"
        f"SetEnv PATH={PATH}\n"
    )
    (STATE / "ssh_config").write_text(ssh_config(hosts))
    (STATE / "known_hosts").write_text(
        "".join(f"{host.managed} {(STATE / f'{host.name}.key.pub').read_text()}" for host in hosts)
    )


def _make_switch() -> None:
    _run("ip", "netns", "add", SWITCH)
    for bridge in ("managed", "measured"):
        _in_switch("ip", "link", "add", bridge, "type", "bridge", "forward_delay", "0")
        _in_switch("ip", "link", "set", bridge, "up")
    _run("ip", "link", "add", UPLINK, "type", "veth", "peer", "name", "uplink", "netns", SWITCH)
    _in_switch("ip", "link", "set", "uplink", "master", "managed", "up")
    _run("ip", "address", "add", f"{MANAGED}.1/24", "dev", UPLINK)
    _run("ip", "link", "set", UPLINK, "up")


def _join(host: TestHost, rate: str | None) -> None:
    _run("ip", "netns", "add", host.name)
    host.inside("ip", "link", "set", "lo", "up")
    for port, bridge, device, address in (
        (f"m{host.number}", "managed", "mgmt0", host.managed),
        (f"w{host.number}", "measured", "wire0", host.measured),
    ):
        _in_switch("ip", "link", "add", port, "type", "veth", "peer", "name", device, "netns", host.name)
        _in_switch("ip", "link", "set", port, "master", bridge, "up")
        host.inside("ip", "address", "add", f"{address}/24", "dev", device)
        host.inside("ip", "link", "set", device, "up")
    if rate is not None:
        bucket = ("root", "tbf", "rate", rate, "burst", _BURST, "latency", _QUEUE)
        host.inside("tc", "qdisc", "add", "dev", "wire0", *bucket)
        _in_switch("tc", "qdisc", "add", "dev", f"w{host.number}", *bucket)


def _start(host: TestHost, *, engines: bool) -> None:
    words = [str(SCRIPT), host.name, host.managed, str(ROOTS / "keys"), str(host.root)]
    host.root.mkdir(parents=True)
    log = STATE / f"{host.name}.log"
    # Forked twice, so that it is nobody's child: it outlives whoever made it.
    detached = 'exec setsid --fork "$@" >"$0" 2>&1 </dev/null'
    _run("env", "-i", f"PATH={PATH}", "sh", "-c", detached, str(log), *words, *(["engine"] if engines else []))


def _await(host: TestHost, *, engines: bool) -> None:
    """Until its sshd lets us in, and its engine answers."""
    _until(host, ["true"], _UP_S, "its sshd does not let us in")
    if engines:
        _until(host, ["docker", "version"], _ENGINE_S, "its engine does not answer")


def _until(host: TestHost, argv: list[str], limit_s: float, what: str) -> None:
    deadline = time.monotonic() + limit_s
    while (done := ssh(host, *argv, check=False)).returncode != 0:
        if time.monotonic() > deadline:
            log = (STATE / f"{host.name}.log").read_text(errors="replace")
            raise HostsFailed(f"{host.name}: {what} after {limit_s:g} s: {done.stderr.strip()}\n{log}")
        time.sleep(0.2)


def ssh(host: TestHost, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program on it as a user of SSH would."""
    options = ["-F", str(STATE / "ssh_config"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    return _run("ssh", *options, host.name, "--", *argv, check=check)


def names() -> tuple[str, ...]:
    """Of all hosts of which anything is there."""
    namespaces = {path.name for path in Path("/run/netns").glob("tare-h[0-9]*")}
    groups = {path.name for path in _GROUPS.glob("**/tare-hosts/tare-h[0-9]*")}
    return tuple(sorted(namespaces | groups))


def _kill(hosts: Sequence[str]) -> None:
    """Nothing survives process 1 of a host; until then what starts meanwhile is seen at the next look."""
    deadline = time.monotonic() + _DOWN_S
    while pids := members(hosts):
        if time.monotonic() > deadline:
            raise HostsFailed(f"processes {sorted(pids)} of {', '.join(hosts)} do not end")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def members(hosts: Sequence[str]) -> frozenset[int]:
    """The processes of these hosts, by their pids on this machine."""
    found: set[int] = set()
    for name in hosts:
        for path in _GROUPS.glob(f"**/tare-hosts/{name}/**/cgroup.procs"):
            with contextlib.suppress(OSError):
                found |= {int(line) for line in path.read_text().split()}
        if Path(f"/run/netns/{name}").exists():
            found |= {int(line) for line in _run("ip", "netns", "pids", name, check=False).stdout.split()}
    return frozenset(found - {0})


def init_of(host: TestHost) -> int:
    """The pid here of a host's process 1, by which its namespaces are entered (pid_namespaces(7), NSpid)."""
    for pid in members([host.name]):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
            if len(numbers) > 1 and numbers[-1] == "1":
                return pid
    raise HostsFailed(f"{host.name} has no process 1")


def _remove_groups() -> None:
    """Deepest first; the kernel may hold on to one for a moment after its last process."""
    tops = {path for pattern in ("tare-hosts", "*/tare-hosts") for path in _GROUPS.glob(pattern)}
    deadline = time.monotonic() + _DOWN_S
    for top in tops:
        while top.exists():
            for path in sorted((*top.rglob("*/"), top), key=lambda path: -len(path.parts)):
                with contextlib.suppress(OSError):
                    path.rmdir()
            if top.exists():
                if time.monotonic() > deadline:
                    raise HostsFailed(f"the control group {top} cannot be removed")
                time.sleep(0.05)


def _in_switch(*argv: str) -> None:
    _run("nsenter", f"--net=/run/netns/{SWITCH}", *argv)


def _run(*argv: str, timeout_s: float = _QUICK_S, check: bool = True) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}"}
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=environ,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostsFailed(f"{argv[0]} could not be run: {error}") from error
    if check and done.returncode != 0:
        raise HostsFailed(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}")
    return done


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with a sentence about what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("up", "sites", "down"))
    parser.add_argument("--count", type=int, default=2, help="how many hosts (default 2)")
    parser.add_argument("--engines", action="store_true", help="with a container engine on each")
    parser.add_argument("--rate", help="of the measured network, as tc(8) writes it: 1gbit")
    given = parser.parse_args(words)
    try:
        if given.action == "up":
            up(given.count, engines=given.engines, rate=given.rate)
        if given.action == "down":
            down()
        else:
            print((STATE / "sites.yaml").read_text(), end="")
    except (HostsFailed, OSError) as error:
        print(f"tare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
