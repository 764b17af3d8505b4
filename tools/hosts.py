"""Test hosts: machines to try two-host runs on, made of namespaces of this one, and removed without a trace.

    python -m tools.hosts up --count 2 | --pairs 3 [--engines] [--rate 1gbit]
    python -m tools.hosts sites | where
    python -m tools.hosts down

Each host has a network, process, mount, host name and control group namespace of its own, its own /run, /var/lib,
/root and /tmp, and an sshd with a key of its own; with `--engines` a dockerd too. Kernel, clock, CPUs and programs
are this machine's, so figures from such hosts are not of two machines.

Two switches join them, in a namespace without firewall rules: one by which this machine reaches each host's sshd
(10.213.N.0/24), and one that only the hosts are on (10.214.N.0/24), the measured network. `--rate` slows that one,
by a token bucket (tc-tbf(8)) at both ends of each wire.

All names hold four digits that follow from this checkout and TARE_HOME, and N is one that no route or other set of
hosts uses: several users of one machine have test hosts at the same time. `where` prints where their sites.yaml is.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive, from_ident, to_ident
from tools.lab import ALL_STATE, GROUPS, NAMES, PATH, SCRIPT, HostsFailed, Lab, TestHost, new_lab, own_lab, run

_BURST, _QUEUE = "64kb", "20ms"
_PROGRAMS = ("sshd", "ip", "dockerd")
_UP_S, _ENGINE_S, _DOWN_S, _TURN_S = 30.0, 90.0, 30.0, 240.0


def up(
    count: int, *, engines: bool = False, rate: str | None = None, lab: Lab | None = None, pairs: bool = False
) -> tuple[TestHost, ...]:
    """Make `count` hosts and return when each answers. `pairs`: every two are a site of their own.

    Removed first is what an earlier call left of the lab (by default this checkout's own), and every lab whose
    owner was killed.
    """
    lab = lab or own_lab()
    if missing := [program for program in _PROGRAMS[: 3 if engines else 2] if not shutil.which(program, path=PATH)]:
        raise HostsFailed(
            f"a test host needs {' and '.join(missing)}: scripts/packages.sh hosts installs what it needs"
        )
    with _turn():
        for path in ALL_STATE.glob("*/owner"):
            if not alive(LocalHost(), from_ident(path.read_text())):
                _remove(Lab(path.parent.name))
        _remove(lab)
        try:
            return _make(lab, count, engines=engines, rate=rate, pairs=pairs)
        except BaseException:
            _remove(lab)
            raise


def down(lab: Lab | None = None) -> None:
    """Remove all hosts of a lab (by default this checkout's own), whoever made them."""
    with _turn():
        _remove(lab or own_lab())


@contextmanager
def _turn() -> Iterator[None]:
    """One lab at a time: they share the choice of networks, and directories whose last user removes them."""
    held = os.open(ALL_STATE.parent, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _TURN_S
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HostsFailed(f"another tools.hosts has been at work for {_TURN_S:g} s") from None
                time.sleep(0.1)
        yield
    finally:
        os.close(held)


def _make(lab: Lab, count: int, *, engines: bool, rate: str | None, pairs: bool) -> tuple[TestHost, ...]:
    lab.state.mkdir(mode=0o700, parents=True)
    if lab.owner is not None:
        (lab.state / "owner").write_text(lab.owner)
    network = _free_network(lab)
    (lab.state / "network").write_text(f"{network}\n")
    hosts = tuple(TestHost(lab, number, network) for number in range(1, count + 1))
    _make_keys(lab, hosts)
    _make_switch(lab)
    for host in hosts:
        _join(host, rate)
        _start(host, engines=engines)
    for host in hosts:
        _await(host, engines=engines)
    lab.sites.write_text(sites_of_pairs(hosts) if pairs else sites(hosts))
    return hosts


def _free_network(lab: Lab) -> int:
    """The same for a lab whenever it is free, since a store keeps addresses."""
    routes = run("ip", "-4", "-o", "route", "show", "table", "all").stdout
    taken: set[int] = {int(found) for found in re.findall(r"\b10\.21[34]\.(\d+)\.", routes)}
    taken |= {int(path.read_text()) for path in ALL_STATE.glob("*/network")}
    first = int(lab.tag, 16) % 256
    for step in range(256):
        number = (first + step) % 256
        if number not in taken:
            return number
    raise HostsFailed("this machine has a route into each of 10.213.0.0/24 to 10.213.255.0/24: none is free")


def _remove(lab: Lab) -> None:
    """Processes by their control group and namespace, the rest by its name."""
    found = names(lab)
    _kill(found)
    for name in (*found, lab.switch):
        if (NAMES / name).exists():
            run("ip", "netns", "delete", name)
    if Path(f"/sys/class/net/{lab.uplink}").exists():
        run("ip", "link", "delete", lab.uplink, check=False)  # it may have gone with the switch
    _unmount_names()
    _remove_groups(found)
    for place in (lab.roots, lab.state):  # the state is what a later call finds it by
        shutil.rmtree(place, ignore_errors=True)
        if place.exists():
            raise HostsFailed(f"{place} could not be removed: see what is mounted there")
        with contextlib.suppress(OSError):  # another lab's is in it
            place.parent.rmdir()


def _unmount_names() -> None:
    """`ip netns add` mounts the directory of names on itself and leaves that; it goes with the last name."""
    mounted = f" {NAMES} " in Path("/proc/self/mounts").read_text()  # a bind of itself: `ismount` sees none
    if mounted and not any(NAMES.iterdir()):
        run("umount", str(NAMES), check=False)  # somebody else's `ip` may be at work in it


@contextmanager
def made(count: int, *, engines: bool = False, rate: str | None = None) -> Iterator[tuple[TestHost, ...]]:
    """Hosts of this process alone while this lasts, beside whatever others are there."""
    lab = new_lab(to_ident(own_process()))
    hosts = up(count, engines=engines, rate=rate, lab=lab)
    try:
        yield hosts
    finally:
        down(lab)


def sites(hosts: Sequence[TestHost]) -> str:
    """A sites.yaml: server on the first host, or one node on each but the last, and the client on the last."""
    return f"format: 1\nsites:\n{_site('test-hosts', hosts)}"


def sites_of_pairs(hosts: Sequence[TestHost]) -> str:
    """A sites.yaml of pair-1, pair-2, …: the server on the first host of each, the client on its second."""
    pairs = zip(hosts[::2], hosts[1::2], strict=True)
    return "format: 1\nsites:\n" + "".join(_site(f"pair-{n}", pair) for n, pair in enumerate(pairs, 1))


def _site(name: str, hosts: Sequence[TestHost]) -> str:
    *servers, client = [_entry(host) for host in hosts]
    if not servers:
        servers = [client]
    sut = servers[0] if len(servers) == 1 else f"[{', '.join(servers)}]"
    return f"  - name: {name}\n    sut: {sut}\n    client: {client}\n"


def _entry(host: TestHost) -> str:
    return f"{{ssh: {host.name}, address: {host.measured}, ssh_config: {host.lab.ssh_config}}}"


def _ssh_config(lab: Lab, hosts: Sequence[TestHost]) -> str:
    return "".join(
        f"Host {host.name}\n  HostName {host.managed}\n  User root\n  IdentityFile {lab.state}/client.key\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {lab.state}/known_hosts\n  StrictHostKeyChecking yes\n"
        for host in hosts
    )


def _make_keys(lab: Lab, hosts: Sequence[TestHost]) -> None:
    state, keys = lab.state, lab.roots / "keys"
    for name in ("client", *(host.name for host in hosts)):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(state / f"{name}.key"))
    keys.mkdir(parents=True)
    for host in hosts:
        shutil.copy(state / f"{host.name}.key", keys)
    shutil.copy(state / "client.key.pub", keys / "authorized_keys")
    (keys / "sshd_config").write_text(
        f"AuthorizedKeysFile {keys}/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\nPidFile /run/sshd.pid\nMaxStartups 100\nMaxSessions 100\n"
        f"SetEnv PATH={PATH}\n"
    )
    lab.ssh_config.write_text(_ssh_config(lab, hosts))
    known = [f"{host.managed} {(state / f'{host.name}.key.pub').read_text()}" for host in hosts]
    (state / "known_hosts").write_text("".join(known))


def _make_switch(lab: Lab) -> None:
    run("ip", "netns", "add", lab.switch)
    for bridge in ("managed", "measured"):
        lab.in_switch("ip", "link", "add", bridge, "type", "bridge", "forward_delay", "0")
        lab.in_switch("ip", "link", "set", bridge, "up")
    run("ip", "link", "add", lab.uplink, "type", "veth", "peer", "name", "uplink", "netns", lab.switch)
    lab.in_switch("ip", "link", "set", "uplink", "master", "managed", "up")
    run("ip", "address", "add", f"10.213.{lab.network}.1/24", "dev", lab.uplink)
    run("ip", "link", "set", lab.uplink, "up")


def _join(host: TestHost, rate: str | None) -> None:
    in_switch = host.lab.in_switch
    run("ip", "netns", "add", host.name)
    host.inside("ip", "link", "set", "lo", "up")
    for port, bridge, device, address in (
        (f"m{host.number}", "managed", "mgmt0", host.managed),
        (f"w{host.number}", "measured", "wire0", host.measured),
    ):
        in_switch("ip", "link", "add", port, "type", "veth", "peer", "name", device, "netns", host.name)
        in_switch("ip", "link", "set", port, "master", bridge, "up")
        host.inside("ip", "address", "add", f"{address}/24", "dev", device)
        host.inside("ip", "link", "set", device, "up")
    if rate is not None:
        bucket = ("root", "tbf", "rate", rate, "burst", _BURST, "latency", _QUEUE)
        host.inside("tc", "qdisc", "add", "dev", "wire0", *bucket)
        in_switch("tc", "qdisc", "add", "dev", f"w{host.number}", *bucket)


def _start(host: TestHost, *, engines: bool) -> None:
    words = [str(SCRIPT), host.name, host.managed, str(host.lab.roots / "keys"), str(host.root)]
    host.root.mkdir(parents=True)
    log = host.lab.state / f"{host.name}.log"
    # Forked twice, so that it is nobody's child: it outlives whoever made it.
    detached = 'exec setsid --fork "$@" >"$0" 2>&1 </dev/null'
    run("env", "-i", f"PATH={PATH}", "sh", "-c", detached, str(log), *words, *(["engine"] if engines else []))


def _await(host: TestHost, *, engines: bool) -> None:
    """Until its sshd lets us in, and its engine answers."""
    _until(host, ["true"], _UP_S, "its sshd does not let us in")
    if engines:
        _until(host, ["docker", "version"], _ENGINE_S, "its engine does not answer")


def _until(host: TestHost, argv: list[str], limit_s: float, what: str) -> None:
    deadline = time.monotonic() + limit_s
    while (done := ssh(host, *argv, check=False)).returncode != 0:
        if time.monotonic() > deadline:
            log = (host.lab.state / f"{host.name}.log").read_text(errors="replace")
            raise HostsFailed(f"{host.name}: {what} after {limit_s:g} s: {done.stderr.strip()}\n{log}")
        time.sleep(0.2)


def ssh(host: TestHost, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program on it as a user of SSH would."""
    options = ["-F", str(host.lab.ssh_config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    return run("ssh", *options, host.name, "--", *argv, check=check)


def names(lab: Lab) -> tuple[str, ...]:
    """Of all its hosts of which anything is there."""
    pattern = f"tare-{lab.tag}-h[0-9]*"
    namespaces = {path.name for path in NAMES.glob(pattern)}
    groups = {path.name for top in _tops() for path in top.glob(pattern)}
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


def cut_power(lab: Lab, site: str) -> tuple[str, ...]:
    """End all processes on the hosts of a site of `sites_of_pairs`. Returns the names of the hosts."""
    pair = site.removeprefix("pair-")
    if not site.startswith("pair-") or not pair.isdecimal():
        raise HostsFailed(f"{site} is no pair of test hosts: they are called pair-1, pair-2, …")
    cut = tuple(f"tare-{lab.tag}-h{number}" for number in (2 * int(pair) - 1, 2 * int(pair)))
    if missing := set(cut) - set(names(lab)):
        raise HostsFailed(f"there is no host {', '.join(sorted(missing))}: make pairs by tools.hosts up --pairs")
    _kill(cut)
    return cut


def members(hosts: Sequence[str]) -> frozenset[int]:
    """The processes of these hosts, by their pids on this machine."""
    pids: set[int] = set()
    for name in hosts:
        for top in _tops():
            for folder, _, _ in os.walk(top / name):  # what goes meanwhile is passed over
                with contextlib.suppress(OSError):
                    pids |= {int(line) for line in Path(folder, "cgroup.procs").read_text().split()}
        if (NAMES / name).exists():
            pids |= {int(line) for line in run("ip", "netns", "pids", name, check=False).stdout.split()}
    return frozenset(pids - {0})


def _tops() -> frozenset[Path]:
    """In each hierarchy, below which the groups of all hosts are; nothing of others', which come and go."""
    return frozenset(path for pattern in ("tare-hosts", "*/tare-hosts") for path in GROUPS.glob(pattern))


def init_of(host: TestHost) -> int:
    """The pid here of a host's process 1, by which its namespaces are entered (pid_namespaces(7), NSpid)."""
    for pid in members([host.name]):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
            if len(numbers) > 1 and numbers[-1] == "1":
                return pid
    raise HostsFailed(f"{host.name} has no process 1")


def _remove_groups(hosts: Sequence[str]) -> None:
    """Deepest first; the kernel may hold on to one for a moment after its last process."""
    deadline = time.monotonic() + _DOWN_S
    for top in _tops():
        for own in (top / name for name in hosts):
            while own.exists():
                for path in sorted((*own.rglob("*/"), own), key=lambda path: -len(path.parts)):
                    with contextlib.suppress(OSError):
                        path.rmdir()
                if own.exists():
                    if time.monotonic() > deadline:
                        raise HostsFailed(f"the control group {own} cannot be removed")
                    time.sleep(0.05)
        with contextlib.suppress(OSError):  # another lab's are in it
            top.rmdir()


def _own_sites() -> Path:
    if not (found := own_lab().sites).exists():
        raise HostsFailed("this checkout has no test hosts: make some by `make hosts`")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with a sentence about what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("up", "sites", "where", "down"))
    parser.add_argument("--count", type=int, default=2, help="how many hosts (default 2)")
    parser.add_argument("--pairs", type=int, help="in place of --count: how many sites of two hosts each")
    parser.add_argument("--engines", action="store_true", help="with a container engine on each")
    parser.add_argument("--rate", help="of the measured network, as tc(8) writes it: 1gbit")
    given = parser.parse_args(words)
    try:
        if given.action == "up":
            count = given.count if given.pairs is None else 2 * given.pairs
            up(count, engines=given.engines, rate=given.rate, pairs=given.pairs is not None)
        if given.action == "down":
            down()
        elif given.action == "where":
            print(_own_sites())
        else:
            print(f"# {_own_sites()}\n{_own_sites().read_text()}", end="")
    except (HostsFailed, OSError) as error:
        print(f"tare: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
