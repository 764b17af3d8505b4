"""Where sessions are played: this machine, with fakes, or a test host of `tools.hosts` with its own engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tare.deployments.vm.kernel import kernel_of
from tare.errors import TareError
from tare.record.run_record import to_tree
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout, make_home
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tools import hosts
from tools.chaos.clock import steppable
from tools.chaos.disks import Disk, run
from tools.chaos.processes import only_child, part_of, with_variable, with_word
from tools.chaos.session import Group
from tools.chaos.tally import BrokenOff
from tools.lab import GROUPS, PATH, TestHost

ROOT = Path(__file__).resolve().parents[2]
FAKES = (sys.executable, str(ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py"))
TARE = (sys.executable, "-m", "tare")
_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; cd / && exec "$@"'
"""The groups' files, `--`, a command."""
_NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup")
_CANARIES_TAKE = ("busybox", "iptables", "nft")
_ENGINE_S = 90.0
_BUILD_S = 900.0


def environment(place: Path) -> dict[str, str]:
    """Of tare: a home of its own, and where it can be had a wall clock that can be stepped."""
    env = {
        **os.environ,
        "TARE_HOME": str(place / "home"),
        "HOME": str(place),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {**env, **steppable(place)}


@dataclass
class Here:
    """The machine itself; with root, disks and control groups of its own."""

    place: Path
    brisk: bool = True
    env: Mapping[str, str] = field(default_factory=dict)
    group: Group = field(default_factory=Group)
    disks: dict[str, Disk] = field(default_factory=dict)
    spared: str = ""

    def start(self, command: Sequence[str], output: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """In its groups."""
        files = [str(each / "cgroup.procs") for each in (self.group.memory, self.group.pids) if each is not None]
        words = ["sh", "-c", _JOIN, "sh", *dict.fromkeys(files), "--", *command]
        return subprocess.Popen(words, env=dict(env), stdout=subprocess.DEVNULL, stderr=output)

    def pid(self, tare: subprocess.Popen[bytes]) -> int:
        """The shell has become it."""
        return tare.pid

    def inside(self, argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Here."""
        return run(argv, check=check)

    def processes(self) -> list[int]:
        """All that names its directory, stands in its group or has its environment."""
        group = self.group.pids or self.group.memory
        inside = [] if group is None else [int(line) for line in (group / "cgroup.procs").read_text().split()]
        word = f"{self.place}/".encode()
        return sorted({*with_word(word), *inside, *with_variable(b"TARE_HOME=" + word)})

    def start_engine(self, options: Sequence[str] = ()) -> None:
        """There is none."""


@dataclass
class OnTestHost:
    """A test host with an engine; the driver stays outside and sees all of it."""

    place: Path
    host: TestHost
    brisk: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    group: Group = field(default_factory=Group)
    disks: dict[str, Disk] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    spared: str = ""
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _init: int = 0

    def start(self, command: Sequence[str], output: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """In the host's namespaces and groups."""
        own = {self.group.memory, self.group.pids} - {None}
        parents = {each.parent for each in own if each is not None}
        tops = [top / self.host.name for top in hosts._tops() if top / self.host.name not in parents]
        files = [str(each / "cgroup.procs") for each in (*tops, *own) if each is not None]
        return self._popen([*files], command, output, env)

    def _popen(
        self, files: Sequence[str], command: Sequence[str], output: int, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        words = ["sh", "-c", _JOIN, "sh", *files, "--", *self._entering(), *command]
        return subprocess.Popen(
            words, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=output
        )

    def _entering(self) -> list[str]:
        self._init = self._init or hosts.init_of(self.host)
        return ["nsenter", f"--target={self._init}", *_NAMESPACES, "--"]

    def pid(self, tare: subprocess.Popen[bytes]) -> int:
        """The child of nsenter(1)."""
        return only_child(tare.pid)

    def inside(self, argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """In the host's namespaces, with nothing of this process's environment."""
        return run([*self._entering(), "env", "-i", f"PATH={PATH}", *argv], check=check)

    def processes(self) -> list[int]:
        """The host's, all of them."""
        return sorted(hosts.members([self.host.name]))

    def start_engine(self, options: Sequence[str] = ()) -> None:
        """Unless one runs with these very options; return when it answers. Raises `BrokenOff`."""
        running = [pid for pid in self.processes() if part_of(pid) == "dockerd"]
        if running and tuple(options) == self.options:
            with suppress(BrokenOff):  # one that hangs, as it may after its containerd was killed, is made anew
                self._await_engine()
                return
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _ENGINE_S / 2
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            while (running := [pid for pid in self.processes() if part_of(pid) == "dockerd"]) and (
                time.monotonic() < end
            ):
                time.sleep(0.1)
        self.inside(["rm", "-f", "/run/docker.pid"])
        files = [str(top / self.host.name / "cgroup.procs") for top in hosts._tops()]
        script = 'exec dockerd "$@" >>/run/dockerd.log 2>&1'
        command = ["setsid", "sh", "-c", script, "sh", *options]
        self._started = [each for each in self._started if each.poll() is None]
        self._started.append(self._popen(files, command, subprocess.DEVNULL, {"PATH": PATH}))
        self.options = tuple(options)
        self._await_engine()

    def _await_engine(self) -> None:
        end = time.monotonic() + _ENGINE_S
        while self.inside(["timeout", "10", "docker", "version"], check=False).returncode != 0:
            if time.monotonic() > end:
                log = self.inside(["tail", "-n", "5", "/run/dockerd.log"], check=False).stdout
                raise BrokenOff(f"the engine of {self.host.name} does not answer: {log}")
            time.sleep(0.3)


def _make_group(below: str, name: str) -> Group:
    """Where the kernel has the controllers, v1 or v2; empty where it does not."""
    made: dict[str, Path] = {}
    for controller, proof in (("memory", "memory.stat"), ("pids", "pids.max")):
        own = GROUPS / controller if (GROUPS / controller).is_dir() else GROUPS
        path = own / below / name
        with suppress(OSError):
            path.mkdir(exist_ok=True)
            if (path / proof).exists():
                made[controller] = path
    return Group(made.get("memory"), made.get("pids"))


def _remove_group(group: Group) -> None:
    for path in {group.memory, group.pids} - {None}:
        end = time.monotonic() + 10.0
        while path is not None and path.exists() and time.monotonic() < end:
            with suppress(OSError):
                path.rmdir()
            time.sleep(0.05)


@contextmanager
def here(place: Path) -> Iterator[Here]:
    """All lies below `place`."""
    facts = place / "facts.json"  # the same at the end as at the beginning, whatever a machine in use does
    facts.write_text(json.dumps(to_tree(host_facts(LocalHost(), data_path=str(place)))))
    # As `tare` sets for itself; what lets the fakes in loads numpy before it calls tare.
    more = {"DOCKER_HOST": "unix:///nonexistent", "HOST_FACTS": str(facts), "OPENBLAS_NUM_THREADS": "1"}
    ground = Here(place, env={**environment(place), **more})
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        (place / "disk").mkdir()
        yield ground
        return
    ground.group = _make_group("", f"tare-chaos-{os.getpid()}")
    disks = {
        "store": Disk(place / "disk", 64, place / "below"),
        "home": Disk(place / "home", 1536, place / "under"),
    }
    try:
        for disk in disks.values():
            disk.make()
        ground.disks = disks
        yield ground
    finally:
        for pid in ground.processes():  # after a violation no study is run to its end, which would remove them
            if pid != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for disk in disks.values():
            disk.remove()
        _remove_group(ground.group)


@contextmanager
def on_test_host(place: Path, images: Sequence[str], *, machines: bool = False) -> Iterator[OnTestHost]:
    """A new test host with an engine, on which `place` is seen by the same name.

    `machines`: it has a kernel for virtual machines, which it could not fetch by itself.
    """
    disks = {
        "store": Disk(place / "disk", 256, place / "below"),
        "home": Disk(place / "home", 3072, place / "under"),
    }
    home = default_layout().home
    if missing := [program for program in _CANARIES_TAKE if not shutil.which(program, path=PATH)]:
        raise BrokenOff(f"canaries need {' and '.join(missing)}: scripts/packages.sh test installs what tests need")
    try:
        for disk in disks.values():
            disk.make()
        for name in images:
            _bring(name, home, place / "home")
        if machines:
            _bring_kernel(home, place / "home")
        with hosts.made(1, engines=True) as (host,):
            ground = OnTestHost(place, host, disks=disks)
            ground.env = {**environment(place), "PATH": f"{os.environ.get('PATH', '')}:{PATH}"}
            ground.env = {name: value for name, value in ground.env.items() if name != "DOCKER_HOST"}
            ground.inside(["umount", "--lazy", "/root"], check=False)  # a Python may be there
            ground.inside(["ip", "route", "add", "default", "dev", "wire0"])  # clients of a Service need one
            for shared in (
                "/dev/shm",
                "/sys/kernel/mm/damon",
            ):  # others' files; what a machine may switch meanwhile
                ground.inside(["mount", "-t", "tmpfs", "tmpfs", shared], check=False)
            ground.group = _make_group(f"tare-hosts/{host.name}", "chaos")
            for disk in disks.values():
                disk.places_too.append(ground.inside)
            yield ground
    finally:
        for line in run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"]).stdout.splitlines():
            name, _, behind = line.strip().partition(" ")
            if behind.strip() == f"{place}/canary.img":  # outlives the host's namespaces
                run(["losetup", "--detach", name], check=False)
        for disk in disks.values():
            disk.remove()


def _bring_kernel(home: Path, to: Path) -> None:
    """The one that this machine has, or fetches now; whether KVM works is tried anew."""
    here, layout = LocalHost(), Layout(home)
    try:
        kernel_of(here, SqliteLedger(layout.ledger), layout)
    except TareError as error:
        raise BrokenOff(f"there is no kernel for virtual machines: {error}") from None
    make_home(Path(to))
    Layout(to).machines.mkdir(mode=0o755)
    run(["cp", "-a", f"{layout.machines}/kernel", str(Layout(to).machines)])


def _bring(name: str, home: Path, to: Path) -> None:
    """An image that this machine has, or builds now, into another home."""
    argv = [*TARE, "images", "build", name]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    if done.returncode != 0:
        raise BrokenOff(f"the image {name} cannot be built: {done.stderr[-400:]}")
    (to / "images" / "keys").mkdir(parents=True, exist_ok=True)
    for description in (home / "images").glob("*/image.json"):
        reference = json.loads(description.read_bytes())["image"]["reference"]
        known = name in (reference, Path(reference).stem)  # a recipe's name or file, and a name may hold a dot
        if known and not (to / "images" / description.parent.name).exists():
            run(["cp", "-a", str(description.parent), str(to / "images")])
    for key in (home / "images" / "keys").iterdir():
        if (to / "images" / key.read_text().strip()).is_dir():
            shutil.copy(key, to / "images" / "keys")
