"""A real sshd on loopback, with keys, configuration and port of its own, as an ordinary process."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tare.sites.file import SshSpec


@dataclass
class Sshd:
    """`place`: keys, configuration and log. `port`: where it listens."""

    place: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def config(self) -> Path:
        """What a user's ~/.ssh/config would say of it."""
        return self.place / "ssh_config"

    def spec(self, **keys: object) -> SshSpec:
        """How sites.yaml would name it, as the host `far`."""
        return SshSpec.model_validate({"ssh": "far", "ssh_config": str(self.config), **keys})

    def up(self) -> None:
        """Start it; returns when it listens."""
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None
        argv = [program, "-D", "-f", str(self.place / "sshd_config"), "-E", str(self.place / "log")]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60
        while not self._listens():
            assert self.process.poll() is None, (self.place / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert self.process.poll() is None, (self.place / "log").read_text()

    def _listens(self) -> bool:
        with socket.socket() as knocking:
            return knocking.connect_ex(("127.0.0.1", self.port)) == 0

    def connections(self) -> list[int]:
        """The processes that serve a connection each."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def cut(self) -> None:
        """Kill the processes of all connections, as a network that fails would; new ones are still taken."""
        for pid in self.connections():
            os.kill(pid, signal.SIGKILL)

    def down(self) -> None:
        """Kill it with all its connections."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)  # or it would take a connection that is not cut
            self.cut()
            self.process.kill()
            self.process.wait(timeout=60)
            self.process = None


@contextmanager
def running(place: Path) -> Iterator[Sshd]:
    """One that lets this user in, by the key in `place`."""
    for name in ("host", "client", "stranger"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(argv, check=True, timeout=60)
    with claimed_port() as port:
        yield from _running(Sshd(place, port))


@contextmanager
def claimed_port() -> Iterator[int]:
    """A port that stays free while no sshd listens: the kernel and tare give out others, tests see the claim."""
    for port in range(18000, 19000):
        with socket.socket(socket.AF_UNIX) as claim, socket.socket() as trial:
            try:
                claim.bind(f"\0tare-test-port-{port}")
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            trial.close()
            yield port
            return
    raise AssertionError("no port is free")


def _running(sshd: Sshd) -> Iterator[Sshd]:
    place = sshd.place
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    shutil.copy(place / "client.pub", place / "authorized_keys")
    (place / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {sshd.port}\nHostKey {place}/host\n"
        f"AuthorizedKeysFile {place}/authorized_keys\n"
        f"StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\nMaxStartups 100\n"
        f'SetEnv "PATH={os.environ["PATH"]}"\n'
    )
    (place / "ssh_config").write_text(
        f"Host *\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {place}/client\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {place}/known_hosts\n"
    )
    trust(sshd, "host")
    sshd.up()
    try:
        yield sshd
    finally:
        sshd.down()


def trust(sshd: Sshd, key: str | None) -> None:
    """Make the key of that name the host key that is known here; `None`: none is."""
    known = sshd.place / "known_hosts"
    known.write_text("" if key is None else f"[127.0.0.1]:{sshd.port} {(sshd.place / f'{key}.pub').read_text()}")
