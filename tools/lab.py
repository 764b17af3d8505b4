"""What test hosts of one set are called, and where they are, so that several sets live on one machine.

`tools.hosts` makes and removes them.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tare.sites.layout import default_layout

ALL_STATE, ALL_ROOTS = Path("/run/tare-hosts"), Path("/var/lib/tare-hosts")
NAMES = Path("/run/netns")
CHECKOUT = Path(__file__).resolve().parents[1]
SCRIPT = CHECKOUT / "scripts" / "test_host.sh"
GROUPS = Path("/sys/fs/cgroup")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_QUICK_S = 30.0
_MADE = itertools.count()


class HostsFailed(Exception):
    """What could not be made or removed, and why."""


@dataclass(frozen=True)
class Lab:
    """A set of test hosts made together. `tag`: hexadecimal digits, part of all their names.

    `owner`: the process with which they are to end; `None` where they stay until they are removed.
    """

    tag: str
    owner: str | None = None

    @property
    def state(self) -> Path:
        """Keys, logs, sites.yaml."""
        return ALL_STATE / self.tag

    @property
    def roots(self) -> Path:
        """The hosts' own files."""
        return ALL_ROOTS / self.tag

    @property
    def switch(self) -> str:
        """The network namespace of both switches."""
        return f"tare-{self.tag}-switch"

    @property
    def uplink(self) -> str:
        """The network device by which this machine reaches the hosts."""
        return f"tare-{self.tag}"

    @property
    def network(self) -> int:
        """N of 10.213.N.0/24, this machine and the hosts, and 10.214.N.0/24, the hosts alone."""
        return int((self.state / "network").read_text())

    @property
    def sites(self) -> Path:
        """The sites.yaml of its hosts."""
        return self.state / "sites.yaml"

    @property
    def ssh_config(self) -> Path:
        """What ssh(1) needs to reach each by its name."""
        return self.state / "ssh_config"

    def in_switch(self, *argv: str) -> None:
        """Run a program where the wires end."""
        run("nsenter", f"--net={NAMES}/{self.switch}", *argv)


def own_lab() -> Lab:
    """That of this checkout and TARE_HOME: two users, or tests and a user, have two."""
    return Lab(_tag(f"{default_layout().home}\0{CHECKOUT}"))


def new_lab(owner: str) -> Lab:
    """One more of a process, named by its ident."""
    return Lab(_tag(f"{owner}\0{next(_MADE)}"), owner)


def _tag(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:4]


@dataclass(frozen=True)
class TestHost:
    """One of them. `managed`: where its sshd listens; `measured`: its address on the network between the hosts."""

    __test__ = False  # no test, whatever pytest makes of the name

    lab: Lab
    number: int
    network: int

    @property
    def name(self) -> str:
        """Host name, and that of its network namespace."""
        return f"tare-{self.lab.tag}-h{self.number}"

    @property
    def managed(self) -> str:
        """An address that this machine reaches."""
        return f"10.213.{self.network}.{self.number + 1}"

    @property
    def measured(self) -> str:
        """An address that only the hosts reach."""
        return f"10.214.{self.network}.{self.number + 1}"

    @property
    def root(self) -> Path:
        """What is its own of the file system."""
        return self.lab.roots / self.name

    def inside(
        self, *argv: str, timeout_s: float = _QUICK_S, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in its network namespace alone: enough for ip(8), and possible while its sshd is down."""
        return run("nsenter", f"--net={NAMES}/{self.name}", *argv, timeout_s=timeout_s, check=check)

    def link(self, *, up: bool) -> None:
        """Plug the wire of the measured network in, or pull it out, at the switch."""
        self.lab.in_switch("ip", "link", "set", f"w{self.number}", "up" if up else "down")


def run(*argv: str, timeout_s: float = _QUICK_S, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of this machine; raises `HostsFailed` where it cannot be, or ends with another code than 0."""
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
