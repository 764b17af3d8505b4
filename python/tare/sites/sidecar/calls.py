"""Calls of a user's host that the sidecar answers: programs for files, and files of runs and processes."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tare.errors import HostSilent, RunFailed, TimedOut, host_failed
from tare.sites import Completed
from tare.sites.layout import Layout
from tare.sites.reading import is_missing

CGROUPS = "/sys/fs/cgroup"
_TOOLS = frozenset(
    {
        *("chmod", "chown", "cp", "dd", "du", "find", "install", "ls", "mkdir", "mv", "readlink", "rm", "rmdir"),
        *("sha256sum", "stat", "sync", "tail", "test", "touch", "truncate", "xargs", "python3"),
    }
)
"""Programs of the host's own /usr that work on files; all other programs run as the user."""
_AGAIN = frozenset(
    {"chmod", "chown", "du", "find", "install", "ls", "readlink", "rm", "sha256sum", "stat", "sync", "tail", "test"}
)
"""Programs of these that may run twice with the same result: a lost sidecar may have run one already."""
_OF_PROCESSES = re.compile(r"/proc/\d+/(ns|fd|exe|environ|io|root|cwd)(/|$)")
_TRACKED = "/proc/net/nf_conntrack"
_OF_INIT = {_TRACKED: "/proc/1/net/nf_conntrack"}
"""Files of the host's network that the kernel shows root: the sidecar has no network, and reads process 1's."""
_SELF, _INIT = "/proc/self/ns/", "/proc/1/ns/"
"""The sidecar's namespaces are not the host's either, so those of process 1 are read."""
_CALL_S, _LONG_S = 60.0, 4 * 3600.0
_PART = 4 << 20
"""Bytes of a file in one answer."""


class Answers(Protocol):
    """The sidecar."""

    def ask(
        self, words: Mapping[str, Any], content: bytes = b"", *, timeout_s: float, again: bool = True
    ) -> tuple[dict[str, Any], bytes]:
        """Send a request to server.py. `again`: send it to a new sidecar if this one is lost."""
        ...

    def close(self) -> None:
        """Remove the sidecar until the next request."""
        ...


class SidecarCalls:
    """`name`: of the host. `layout`: of its TARE_HOME."""

    def __init__(self, sidecar: Answers, layout: Layout, name: str) -> None:
        self._sidecar = sidecar
        self._name = name
        self.places: tuple[str, ...] = (str(layout.work), str(layout.snapshots), CGROUPS)

    def takes(self, argv: Sequence[str], stdin: bytes, env: Mapping[str, str] | None) -> bool:
        """Whether the sidecar must run this program: a program for files with a path that may belong to others."""
        if argv[0] not in _TOOLS or env is not None:
            return False
        if any(self.holds(word) or _OF_PROCESSES.match(word) for word in argv[1:]):
            return True
        first = stdin.split(b"\0", 1)[0] if argv[0] == "xargs" else b""
        return self.holds(first.decode(errors="surrogateescape"))

    def holds(self, path: str) -> bool:
        """Whether a file at the path may belong to others."""
        return any(path == place or path.startswith(f"{place}/") for place in self.places)

    def run(self, argv: Sequence[str], *, timeout_s: float, stdin: bytes, check: bool) -> Completed:
        """As `Host.run`."""
        places = [f"{_INIT}{word.removeprefix(_SELF)}" if word.startswith(_SELF) else word for word in argv]
        words = {"verb": "run", "argv": places, "timeout_s": timeout_s}
        answer, content = self._sidecar.ask(words, stdin, timeout_s=timeout_s, again=argv[0] in _AGAIN)
        spoken = " ".join([argv[0], *argv[1:2]])
        if answer.get("late"):
            raise TimedOut(f"{spoken} did not end within {timeout_s:g} s on {self._name} and was killed")
        if "errno" in answer:
            raise host_failed(f"{argv[0]} cannot be run on {self._name}", answer["errno"], answer["why"])
        done = Completed(tuple(argv), answer["code"], content[: answer["out"]], content[answer["out"] :])
        if check and done.code != 0:
            lines = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
            last = lines[-1] if lines else "it printed nothing"
            raise RunFailed(f"{spoken} ended with {done.code} on {self._name}: {last}")
        return done

    def put(self, source: Path | bytes, target: str, *, mode: int) -> None:
        """As `Host.put`."""
        content = source if isinstance(source, bytes) else source.read_bytes()
        words = {"verb": "put", "path": target, "mode": mode, "in_place": target.startswith(CGROUPS)}
        answer, _ = self._sidecar.ask(words, content, timeout_s=_LONG_S)
        if "errno" in answer:
            raise RunFailed(f"{target} cannot be written on {self._name}: {answer['why']}")

    def get(self, source: str, target: Path) -> None:
        """As `Host.get`; the files become the user's own, and arrive in parts."""
        answer, listing = self._sidecar.ask({"verb": "list", "path": source}, timeout_s=_LONG_S)
        if "errno" in answer:
            raise RunFailed(f"{source} cannot be copied from {self._name}: {answer['why']}")
        try:
            self._get(source, target, json.loads(listing))
        except OSError as error:
            raise RunFailed(f"{source} cannot be copied from {self._name}: {error}") from error

    def _get(self, source: str, target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        """Copy directories, files and links, and nothing outside of `target`."""
        if rows[0]["kind"] != "directory":
            self._get_file(source, target, rows[0])
            return
        target.mkdir(parents=True, exist_ok=True)
        for row in rows[1:]:
            place = target / row["path"]
            # A container names its files itself, and a link that it made earlier may lead anywhere.
            if ".." in Path(row["path"]).parts or not place.parent.resolve().is_relative_to(target.resolve()):
                raise OSError(f"{row['path']!r} leads elsewhere")
            if row["kind"] == "directory":
                place.mkdir(exist_ok=True)
            elif row["kind"] == "link":
                place.symlink_to(row["link"])
            elif row["kind"] == "file":
                self._get_file(source, place, row)

    def _get_file(self, source: str, target: Path, row: Mapping[str, Any]) -> None:
        """Write under another name until the file is complete."""
        scratch = target.with_name(f"{target.name}.{secrets.token_hex(8)}")
        try:
            with scratch.open("wb") as file:
                for part in self._parts(source, row["path"]):
                    file.write(part)
            if row["path"]:  # as a copy of a tree keeps them
                scratch.chmod(row["mode"] & 0o777 | 0o600)
                os.utime(scratch, ns=(row["modified_ns"], row["modified_ns"]))
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)

    def _parts(self, source: str, below: str) -> Iterator[bytes]:
        offset, whole = 0, False
        while not whole:
            words = {"verb": "part", "path": source, "below": below, "offset": offset, "limit": _PART}
            answer, content = self._sidecar.ask(words, timeout_s=_CALL_S)
            if "errno" in answer:
                raise OSError(answer["errno"], answer["why"])
            yield content
            offset, whole = offset + len(content), answer["whole"]

    def read(self, path: str, by_user: Callable[[str], bytes | None]) -> bytes | None:
        """As `Host.read`. `by_user`: reads what the user may read; for processes, it is tried first."""
        if not self.holds(path) or path.startswith(CGROUPS):
            try:
                return by_user(path)
            except HostSilent:
                raise
            except RunFailed:
                if not _OF_PROCESSES.match(path) and path not in _OF_INIT:
                    raise
        answer, content = self._sidecar.ask({"verb": "read", "path": _OF_INIT.get(path, path)}, timeout_s=_CALL_S)
        if "errno" not in answer:
            return content
        if is_missing(path, answer["errno"]):
            return None
        raise host_failed(f"{path} cannot be read on {self._name}", answer["errno"], answer["why"])

    def rest(self) -> None:
        """Remove the sidecar until it is needed again."""
        self._sidecar.close()
