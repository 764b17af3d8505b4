"""The machine tare runs on, for a user who is not root: the engine's sidecar reaches what is its containers'."""

from __future__ import annotations

import io
import os
import re
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from docker import DockerClient

from tare.errors import HostSilent, RunFailed, TareError, TimedOut, host_failed
from tare.sites import Completed, Host
from tare.sites.engine import engine_facts
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sidecar.container import CGROUPS, Sidecar
from tare.sites.sidecar.server import CHANGED

_TOOLS = frozenset(
    {
        *("chmod", "chown", "cp", "dd", "du", "find", "install", "ls", "mkdir", "mv", "readlink", "rm", "rmdir"),
        *("sha256sum", "stat", "sync", "test", "touch", "truncate", "xargs", "python3"),
    }
)
"""Programs of a host's own /usr that work on files; whatever else a run starts is the user's."""
_OF_PROCESSES = re.compile(r"/proc/\d+/(ns|fd|exe|environ|io|root|cwd)(/|$)")
_TRY_S, _CALL_S = 30.0, 60.0
_LONG_S = 4 * 3600.0


class UserHost(LocalHost):
    """As `LocalHost`, but for what lies in a run's directories, in control groups, and in others' processes."""

    def __init__(self, sidecar: Sidecar, layout: Layout, name: str = "local") -> None:
        super().__init__(name)
        self._sidecar = sidecar
        self._places: tuple[str, ...] = (str(layout.work), str(layout.snapshots), CGROUPS)

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
        if not (argv[0] in _TOOLS and env is None and self._of_others(argv, stdin)):
            return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)
        words = {"verb": "run", "argv": list(argv), "timeout_s": timeout_s}
        answer, content = self._sidecar.ask(words, stdin, timeout_s=timeout_s)
        spoken = " ".join([argv[0], *argv[1:2]])
        if answer.get("late"):
            raise TimedOut(f"{spoken} did not end within {timeout_s:g} s on {self.name} and was killed")
        if "errno" in answer:
            raise host_failed(f"{argv[0]} cannot be run on {self.name}", answer["errno"], answer["why"])
        done = Completed(tuple(argv), answer["code"], content[: answer["out"]], content[answer["out"] :])
        if check and done.code != 0:
            lines = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
            last = lines[-1] if lines else "it printed nothing"
            raise RunFailed(f"{spoken} ended with {done.code} on {self.name}: {last}")
        return done

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """By the sidecar where the directory may be another's."""
        if not self._held(target):
            super().put(source, target, mode=mode)
            return
        content = source if isinstance(source, bytes) else source.read_bytes()
        words = {"verb": "put", "path": target, "mode": mode, "in_place": target.startswith(CGROUPS)}
        answer, _ = self._sidecar.ask(words, content, timeout_s=_LONG_S)
        if "errno" in answer:
            raise RunFailed(f"{target} cannot be written on {self.name}: {answer['why']}")

    def get(self, source: str, target: Path) -> None:
        """By the sidecar where the file may be another's; what comes is the user's own."""
        if not self._held(source):
            super().get(source, target)
            return
        answer, content = self._sidecar.ask({"verb": "get", "path": source}, timeout_s=_LONG_S)
        if "errno" in answer:
            raise RunFailed(f"{source} cannot be copied from {self.name}: {answer['why']}")
        try:
            if answer["kind"] == "file":
                target.write_bytes(content)
            else:
                _spread(content, target)
        except OSError as error:
            raise RunFailed(f"{source} cannot be copied from {self.name}: {error}") from error

    def read(self, path: str) -> bytes | None:
        """By the sidecar what lies in a run's directories, and of processes what the kernel keeps from the user."""
        if not self._held(path) or path.startswith(CGROUPS):
            try:
                return super().read(path)
            except HostSilent:
                raise
            except RunFailed:
                if not _OF_PROCESSES.match(path):
                    raise
        answer, content = self._sidecar.ask({"verb": "read", "path": path}, timeout_s=_CALL_S)
        if "errno" not in answer:
            return content
        if answer["errno"] in _NOTHING_THERE:
            return None
        raise host_failed(f"{path} cannot be read on {self.name}", answer["errno"], answer["why"])

    def rest(self) -> None:
        """Take the sidecar away until it is needed again."""
        self._sidecar.close()

    def _of_others(self, argv: Sequence[str], stdin: bytes) -> bool:
        if any(self._held(word) or _OF_PROCESSES.match(word) for word in argv[1:]):
            return True
        first = stdin.split(b"\0", 1)[0] if argv[0] == "xargs" else b""
        return self._held(first.decode(errors="surrogateescape"))

    def _held(self, path: str) -> bool:
        return any(path == place or path.startswith(f"{place}/") for place in self._places)


def why_no_sidecar(host: Host, engine: DockerClient | None) -> str | None:
    """Why the engine does not reach files and processes of its containers for this user, found out by trying."""
    if not isinstance(host, UserHost) or engine is None:
        return None
    if engine_facts(engine).get("engine_rootless"):
        return "it runs as a user, too, and tare sets limits of its containers as root; run tare with sudo"
    try:
        host.run(["test", "-d", CGROUPS], timeout_s=_TRY_S)
    except TareError as error:
        return str(error)
    finally:
        host.rest()
    return None


_NOTHING_THERE = (2, 3, 20)
"""ENOENT, ESRCH and ENOTDIR, as `LocalHost.read` takes them."""


def _spread(content: bytes, target: Path) -> None:
    """Directories, files and links, and nothing outside of `target`."""
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            parts = [part for part in member.name.split("/") if part not in ("", ".")]
            if ".." in parts:
                raise OSError(f"{member.name!r} leads elsewhere")
            place = target.joinpath(*parts)
            if member.isdir():
                place.mkdir(exist_ok=True)
            elif member.issym():
                place.symlink_to(member.linkname)
            elif (file := tar.extractfile(member)) is not None:
                with file, place.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                place.chmod(member.mode & 0o777 | 0o600)
                os.utime(place, ns=(changed := int(member.pax_headers[CHANGED]), changed))
