"""An NFS server for one run: NFS-Ganesha, in a network namespace that lives as long as its process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tare.deployments.cgroup.removal import warden
from tare.deployments.network.bridge import free_network
from tare.deployments.vm.network import remove_link
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host, Output, Process
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import digits_of
from tare.sites.process import alive, from_ident, to_ident

GANESHA = "ganesha.nfsd"
PORT = 2049
_CALL_S, _START_S, _GRACE_S = 30.0, 30.0, 2.0
_POLL_S = 0.02
_LISTENING = "0A"
"""State of a listening socket in /proc/PID/net/tcp (proc_pid_net(5), TCP_LISTEN)."""


@dataclass(frozen=True)
class NfsEndpoint:
    """A listening server. `export`: the directory that is its root.

    `address`: its own address; `near`: the host's.
    """

    process: Process
    export: str
    address: str
    near: str


@dataclass(frozen=True)
class GaneshaServer:
    """The server of one place. `home`: its directory, without links in its path. `name`: the place's name."""

    host: Host
    ledger: Ledger
    home: str
    name: str

    @property
    def export(self) -> str:
        """The directory that is served."""
        return f"{self.home}/export"

    @property
    def link(self) -> str:
        """The host's end of the link."""
        return f"tarn{digits_of(self.name, self.ledger.owner_on(self.host.name), 9)}"

    @property
    def process(self) -> Process | None:
        """The server's process, as it was written down when it was started; `None` if there is none."""
        ident = self.host.read(f"{self.home}/server")
        return None if ident is None else from_ident(ident.decode())

    def serve(self, *, sync: bool) -> NfsEndpoint:
        """Start the server and wait until it listens. Everything made is in the ledger, and `end` removes it."""
        host, home = self.host, self.home
        host.run(["install", "-d", "-m", "0755", "--", self.export, f"{home}/recovery"], timeout_s=_CALL_S)
        config = config_text(self.export, f"{home}/recovery", sync=sync)
        host.put(config.encode(), f"{home}/ganesha.conf")
        output = Output(f"{home}/ganesha.stdout", f"{home}/ganesha.stderr")
        process = host.start(server_argv(home), output=output, announce=self._note)
        self._wait_until(process, lambda: self._has_own_network(process), "has no network namespace of its own")
        address, near = self._connect(process)
        self._wait_until(process, lambda: listens(host, process.pid), "does not listen")
        return NfsEndpoint(process, self.export, address, near)

    def end(self) -> None:
        """End the process, and with it its namespace and the link; safe if nothing was started."""
        if (process := self.process) is not None:
            if alive(self.host, process):
                words = ("end", str(process.pid), str(process.started_ticks), f"{_GRACE_S:g}")
                warden(self.host, *words, timeout_s=_CALL_S)
            self.ledger.forget(Kind.SERVER, to_ident(process), host=self.host.name)
        remove_link(self.host, self.link)
        self.ledger.forget(Kind.LINK, self.link, host=self.host.name)

    def _note(self, process: Process) -> None:
        self.ledger.note(Kind.SERVER, to_ident(process), host=self.host.name)
        self.host.put(to_ident(process).encode(), f"{self.home}/server")

    def _connect(self, process: Process) -> tuple[str, str]:
        """Make a veth pair and move one end to the server; return the server's address and the host's."""
        network = free_network(self.host, self.name)
        near, address = (str(each) for each in network.hosts())
        inside = ("nsenter", "--target", str(process.pid), "--net", "--", "ip")
        self.ledger.note(Kind.LINK, self.link, host=self.host.name)
        peer = ("peer", "name", "eth0", "netns", str(process.pid))
        commands = (
            ("ip", "link", "add", "name", self.link, "type", "veth", *peer),
            ("ip", "address", "add", f"{near}/{network.prefixlen}", "dev", self.link),
            ("ip", "link", "set", "dev", self.link, "up"),
            (*inside, "address", "add", f"{address}/{network.prefixlen}", "dev", "eth0"),
            (*inside, "link", "set", "dev", "lo", "up"),
            (*inside, "link", "set", "dev", "eth0", "up"),
        )
        try:
            for command in commands:
                self.host.run(command, timeout_s=_CALL_S)
        except RunFailed as error:
            if not alive(self.host, process):
                raise self._ended() from error
            raise EnvironmentLacks(
                f"no link to the NFS server can be made: {error.what}",
                hint="it needs root, iproute2, and a kernel that has veth",
            ) from error
        return address, near

    def _has_own_network(self, process: Process) -> bool:
        """Whether the server is in its own namespace: a link made too early would stay in the host's."""
        places = ["/proc/self/ns/net", f"/proc/{process.pid}/ns/net"]
        seen = self.host.run(["readlink", *places], timeout_s=_CALL_S, check=False).text.split()
        return len(set(seen)) == len(places)

    def _wait_until(self, process: Process, there: Callable[[], bool], lacking: str) -> None:
        deadline = time.monotonic() + _START_S
        while not there():
            if not alive(self.host, process):
                raise self._ended()
            if time.monotonic() > deadline:
                raise EnvironmentLacks(f"the NFS server {lacking} after {_START_S:g} s: {self._last_words()}")
            time.sleep(_POLL_S)

    def _ended(self) -> EnvironmentLacks:
        return EnvironmentLacks(
            f"the NFS server ended before it served: {self._last_words()}",
            hint="apt-get install nfs-ganesha nfs-ganesha-vfs",
        )

    def _last_words(self) -> str:
        lines = [line for name in ("ganesha.stderr", "ganesha.log") for line in self._lines(name)]
        return lines[-1] if lines else "it printed nothing"

    def _lines(self, name: str) -> Iterator[str]:
        yield from (self.host.read(f"{self.home}/{name}") or b"").decode(errors="replace").strip().splitlines()


def server_argv(home: str) -> list[str]:
    """Command of the server: in the foreground, in its own network namespace, without D-Bus.

    On D-Bus it would meet another Ganesha.
    """
    files = ("-f", f"{home}/ganesha.conf", "-L", f"{home}/ganesha.log", "-p", f"{home}/ganesha.pid")
    no_bus = f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={home}/no-bus"
    return ["env", no_bus, "unshare", "--net", "--", GANESHA, "-F", *files, "-N", "NIV_EVENT"]


def config_text(export: str, recovery: str, *, sync: bool) -> str:
    """Configuration of NFSv4 only, on one TCP port, so that no port mapper or lock manager is needed.

    No grace period, as there are no earlier clients. Owners are numeric, as the host need not know the image's
    users. `sync`: everything that a client writes is on disk before it is answered (ganesha-export-config(8),
    NFS_Commit).
    """
    return f"""NFS_CORE_PARAM {{
    Protocols = 4;
    NFS_Port = {PORT};
    Enable_UDP = false;
    Enable_NLM = false;
    Enable_RQUOTA = false;
}}
NFSv4 {{
    Graceless = true;
    Only_Numeric_Owners = true;
    RecoveryRoot = "{recovery}";
}}
EXPORT {{
    Export_Id = 1;
    Path = "{export}";
    Pseudo = "/";
    Protocols = 4;
    Transports = TCP;
    SecType = sys;
    Access_Type = RW;
    Squash = no_root_squash;
    NFS_Commit = {"true" if sync else "false"};
    FSAL {{
        Name = VFS;
    }}
}}
"""


def listens(host: Host, pid: int) -> bool:
    """Whether a program listens at the port, in the network namespace of a process."""
    tables = ((host.read(f"/proc/{pid}/net/{name}") or b"").decode() for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return any(row[1].endswith(f":{PORT:04X}") and row[3] == _LISTENING for row in rows)
