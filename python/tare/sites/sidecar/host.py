"""A host for a user who is not root there: the engine's sidecar reaches what is its containers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from docker import DockerClient

from tare.errors import TareError
from tare.sites import Completed, Host
from tare.sites.engine import engine_facts
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.put_all import NewFile
from tare.sites.sidecar.calls import CGROUPS, Answers, SidecarCalls
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link

_TRY_S = 30.0


class UserHost(LocalHost):
    """As `LocalHost`, but for what lies in a run's directories, in control groups, and in others' processes."""

    def __init__(self, sidecar: Answers, layout: Layout, name: str = "local") -> None:
        super().__init__(name)
        self.calls = SidecarCalls(sidecar, layout, name)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """By the sidecar where a program for files is given a path of others'."""
        if self.calls.takes(argv, stdin, env):
            return self.calls.run(argv, timeout_s=timeout_s, stdin=stdin, check=check)
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """By the sidecar where the directory may be another's."""
        if self.calls.holds(target):
            self.calls.put(source, target, mode=mode)
        else:
            super().put(source, target, mode=mode)

    def get(self, source: str, target: Path) -> None:
        """By the sidecar where the file may be another's; what comes is the user's own."""
        if self.calls.holds(source):
            self.calls.get(source, target)
        else:
            super().get(source, target)

    def read(self, path: str) -> bytes | None:
        """By the sidecar what lies in a run's directories, and of processes what the kernel keeps from the user."""
        return self.calls.read(path, super().read)


class SshUserHost(SshHost):
    """As `SshHost`, with the same exceptions; `sidecar` is a container of that host's engine."""

    def __init__(self, link: Link, sidecar: Answers, layout: Layout) -> None:
        super().__init__(link)
        self.calls = SidecarCalls(sidecar, layout, link.name)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """By the sidecar where a program for files is given a path of others'."""
        if self.calls.takes(argv, stdin, env):
            return self.calls.run(argv, timeout_s=timeout_s, stdin=stdin, check=check)
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """By the sidecar where the directory may be another's."""
        if self.calls.holds(target):
            self.calls.put(source, target, mode=mode)
        else:
            super().put(source, target, mode=mode)

    def put_all(self, files: Sequence[NewFile]) -> None:
        """One after the other where the sidecar has to write them."""
        held = [file for file in files if self.calls.holds(file.path)]
        for file in held:
            self.calls.put(file.content, file.path, mode=file.mode)
        super().put_all([file for file in files if file not in held])

    def get(self, source: str, target: Path) -> None:
        """By the sidecar where the file may be another's; what comes is the user's own."""
        if self.calls.holds(source):
            self.calls.get(source, target)
        else:
            super().get(source, target)

    def read(self, path: str) -> bytes | None:
        """By the sidecar what lies in a run's directories, and of processes what the kernel keeps from the user."""
        return self.calls.read(path, super().read)


def why_no_sidecar(host: Host, engine: DockerClient | None) -> str | None:
    """Why the engine does not reach files and processes of its containers for this user, found out by trying."""
    if not isinstance(host, UserHost | SshUserHost) or engine is None:
        return None
    if engine_facts(engine).get("engine_rootless"):
        return "it runs as a user, too, and tare sets limits of its containers as root; run tare with sudo"
    try:
        host.run(["test", "-d", CGROUPS], timeout_s=_TRY_S)
    except TareError as error:
        return str(error)
    finally:
        host.calls.rest()
    return None
