"""A host for a non-root user: the engine's sidecar accesses what belongs to its containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from docker import DockerClient

from tare.errors import TareError
from tare.sites import Completed, Host, NewFile
from tare.sites.engine import engine_facts
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sidecar.calls import CGROUPS, Answers, SidecarCalls
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link

_TRY_S = 30.0


class UserHost(LocalHost):
    """As `LocalHost`, except for runs' directories, control groups and others' processes."""

    by_sidecar = True

    def __init__(self, sidecar: Answers, layout: Layout, name: str = "local") -> None:
        super().__init__(name)
        self.calls = SidecarCalls(sidecar, layout, name)

    def rest(self) -> None:
        """Remove the sidecar until the next request."""
        self.calls.rest()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a program, by the sidecar if it is a program for files with a path that may belong to others."""
        if self.calls.takes(argv, stdin, env):
            return self.calls.run(argv, timeout_s=timeout_s, stdin=stdin, check=check)
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file, by the sidecar if the directory may belong to others."""
        if self.calls.holds(target):
            self.calls.put(source, target, mode=mode)
        else:
            super().put(source, target, mode=mode)

    def get(self, source: str, target: Path) -> None:
        """Copy a file, by the sidecar if it may belong to others; the copy is the user's own."""
        if self.calls.holds(source):
            self.calls.get(source, target)
        else:
            super().get(source, target)

    def read(self, path: str) -> bytes | None:
        """Read a file, by the sidecar in runs' directories.

        The sidecar also reads process files that the kernel keeps from the user.
        """
        return self.calls.read(path, super().read)

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """Ask find, which the sidecar runs for others' processes."""
        return Host.links(self, places)


class SshUserHost(SshHost):
    """As `SshHost`, with the exceptions of `UserHost`; `sidecar` is a container of that host's engine."""

    by_sidecar = True

    def __init__(self, link: Link, sidecar: Answers, layout: Layout) -> None:
        super().__init__(link)
        self.calls = SidecarCalls(sidecar, layout, link.name)

    def rest(self) -> None:
        """Remove the sidecar until the next request."""
        self.calls.rest()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run a program, by the sidecar if it is a program for files with a path that may belong to others."""
        if self.calls.takes(argv, stdin, env):
            return self.calls.run(argv, timeout_s=timeout_s, stdin=stdin, check=check)
        return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file, by the sidecar if the directory may belong to others."""
        if self.calls.holds(target):
            self.calls.put(source, target, mode=mode)
        else:
            super().put(source, target, mode=mode)

    def put_all(self, files: Sequence[NewFile]) -> None:
        """Write files; those for the sidecar are written one after the other."""
        held = [file for file in files if self.calls.holds(file.path)]
        for file in held:
            self.calls.put(file.content, file.path, mode=file.mode)
        super().put_all([file for file in files if file not in held])

    def get(self, source: str, target: Path) -> None:
        """Copy a file, by the sidecar if it may belong to others; the copy is the user's own."""
        if self.calls.holds(source):
            self.calls.get(source, target)
        else:
            super().get(source, target)

    def read(self, path: str) -> bytes | None:
        """Read a file, by the sidecar in runs' directories.

        The sidecar also reads process files that the kernel keeps from the user.
        """
        return self.calls.read(path, super().read)


def why_no_sidecar(host: Host, engine: DockerClient | None) -> str | None:
    """Why the engine gives this user no access to files and processes of its containers, determined by a trial."""
    if not host.by_sidecar or engine is None:
        return None
    if engine_facts(engine).engine_rootless:
        return "it also runs as a user, and tare needs root to set limits of its containers; run tare with sudo"
    try:
        host.run(["test", "-d", CGROUPS], timeout_s=_TRY_S)
    except TareError as error:
        return str(error)
    finally:
        host.rest()
    return None
