"""The inside of a virtual machine as a `Host`, and how its task ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.deployments import Instance
from tare.errors import RunFailed, TimedOut
from tare.record.made_by import GuestClock
from tare.sites import Completed, Host, Output, Process
from tare.sites.reading import ending

_LINES, _LONGEST = 3, 160
_PANIC = "Kernel panic"
"""Start of a panic; the last lines of the dump behind it say nothing."""
_READ_S = 60.0
_SPARE_S = 15.0
"""Extra time for an answer: the machine itself ends a late program, so the caller gives up only if it does not."""
_GONE, _LATE = 3, 4


@dataclass(frozen=True)
class DiskSpace:
    """Space that a file system had left for a user, and its size."""

    free_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class GuestEnd:
    """`code`: exit code, negative for a signal. `oom_kills`: number of OOM kills by the machine's kernel.

    `disk_space`: target of the task on a virtual disk → space left on this disk.
    """

    code: int
    oom_kills: int | None = None
    disk_space: Mapping[str, DiskSpace] = field(default_factory=dict)


def guest_end(host: Host, status: str) -> GuestEnd | None:
    """Read the status file that the machine wrote; `None` while it is missing or incomplete."""
    raw = host.read(status)
    if not raw or not raw.endswith(b"\n"):
        return None
    parsed = json.loads(raw)
    filesystems = {
        target: DiskSpace(space["free_bytes"], space["bytes"]) for target, space in parsed.get("rooms", {}).items()
    }
    return GuestEnd(int(parsed["code"]), parsed.get("oom_kills"), filesystems)


def words_of(host: Host, path: str) -> str | None:
    """`console: …` with the file's last lines, preceded by a panic if there is one; `None` for an empty file."""
    text = ending(host, path).decode(errors="replace")
    lines = [line.strip()[:_LONGEST] for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    last = lines[-_LINES:]
    panic = next((line for line in reversed(lines) if _PANIC in line), None)
    shown = last if panic is None or panic in last else [panic, *last[1:]]
    return f"{Path(path).suffix.lstrip('.')}: {' / '.join(shown)}"


SCRIPT = Path(__file__).with_name("guest_line.py")


@dataclass
class GuestHost(Host):
    """Sends requests over the line. `line`: path of its two FIFOs. `script`: path of guest_line.py.

    `pid`: QEMU's.
    """

    host: Host
    line: str
    script: str
    pid: int
    name: str = "guest"

    @classmethod
    def of(cls, host: Host, instance: Instance) -> GuestHost:
        """The inside of an instance's machine. Raises `RunFailed` for an instance without a machine."""
        if instance.guest is None:
            raise RunFailed(f"{instance.task.name} is in no virtual machine")
        return cls(host, instance.guest.line, instance.guest.script, instance.process.pid)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run one of the machine's few own programs."""
        del env
        done = self.execute(argv, timeout_s=timeout_s, stdin=stdin)
        if check and done.code != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            reason = f": {words[-1]}" if words else ""
            raise RunFailed(f"{argv[0]} ended with {done.code} in the virtual machine{reason}")
        return done

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Not supported: a machine runs one task."""
        del output, env, announce
        raise RunFailed(f"{argv[0]} cannot be started in a virtual machine: it runs one task")

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Not supported: everything that a machine needs is on its disks."""
        del source, mode
        raise RunFailed(f"{target} cannot be written in a virtual machine")

    def get(self, source: str, target: Path) -> None:
        """Not supported, like `put`."""
        del target
        raise RunFailed(f"{source} cannot be copied out of a virtual machine")

    def read(self, path: str) -> bytes | None:
        """Read a file of the machine; `None` if it does not exist."""
        content = self.ask({"verb": "read", "path": path}, _READ_S)["content"]
        return None if content is None else bytes.fromhex(content)

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """As `Host.links`, for links alone: the machine has no find. Its readlink leaves out what is missing."""
        targets = self.run(["readlink", *places], timeout_s=_READ_S, check=False).text.splitlines()
        if len(targets) in (0, len(places)):
            return dict(zip(places, targets, strict=False))
        return (
            {}
            if len(places) == 1
            else {path: target for each in places for path, target in self.links([each]).items()}
        )

    def execute(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"", inside: bool = False, user: str = ""
    ) -> Completed:
        """Run a program to its end.

        `inside`: in the task's root, as the task's user or another user of the image.
        """
        request = {
            "verb": "run",
            "argv": list(argv),
            "inside": inside,
            "user": user,
            "stdin": stdin.hex(),
            "timeout_s": timeout_s,
        }
        answer = self.ask(request, timeout_s + _SPARE_S)
        if answer["code"] is None:
            raise TimedOut(f"{argv[0]} did not end within {timeout_s:g} s in the virtual machine")
        return Completed(
            tuple(argv), int(answer["code"]), bytes.fromhex(answer["stdout"]), bytes.fromhex(answer["stderr"])
        )

    def clock(self) -> GuestClock | None:
        """Uptime of the machine on the host's CLOCK_MONOTONIC."""
        answer = self._answer({"verb": "read", "path": "/proc/uptime"}, _READ_S)
        content = answer["ok"]["content"]
        if content is None:
            return None
        uptime_s = float(bytes.fromhex(content).split()[0])
        return GuestClock(uptime_s, answer["asked_ns"], answer["answered_ns"])

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Send one request. Raises `RunFailed` with the machine's error, or if the machine has ended."""
        answer: Mapping[str, Any] = self._answer(request, timeout_s)["ok"]
        return answer

    def _answer(self, request: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        argv = ["python3", "-I", "-S", self.script, self.line, str(self.pid), f"{timeout_s:g}"]
        done = self.host.run(argv, timeout_s=timeout_s + _SPARE_S, stdin=json.dumps(request).encode(), check=False)
        if done.code == _GONE:
            raise RunFailed("the virtual machine has ended")
        if done.code == _LATE:
            raise TimedOut(f"the virtual machine did not answer within {timeout_s:g} s")
        if done.code != 0:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            raise RunFailed(f"the virtual machine cannot be asked: {words[-1] if words else done.code}")
        answer: Mapping[str, Any] = json.loads(done.stdout)
        if "error" in answer:
            raise RunFailed(f"in the virtual machine: {answer['error']}")
        return answer
