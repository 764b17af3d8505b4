"""A host that does nothing: it records requests and answers from a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tare.errors import RunFailed
from tare.sites import Completed, Host, Output, Process

Answer: TypeAlias = Completed | Exception | Callable[[Sequence[str], bytes], Completed]


@dataclass(frozen=True)
class Call:
    """One recorded call. `what`: run, start, put, get or read."""

    what: str
    argv: tuple[str, ...] = ()
    path: str = ""
    content: bytes = b""
    env: Mapping[str, str] | None = None


@dataclass
class FakeHost(Host):
    """Answers `run` by the longest prefix of its argv in `answers`, else with exit code 0 and no output.

    `files` is its file system, `linked` its links: `read` returns what `put` wrote. Living processes have a
    /proc/PID/stat.
    """

    name: str = "fake"
    answers: dict[tuple[str, ...], Answer] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    linked: dict[str, str] = field(default_factory=dict)
    asked: list[Call] = field(default_factory=list)
    boot_id: str = "00000000-0000-4000-8000-000000000000"
    next_pid: int = 1000

    def __post_init__(self) -> None:
        self.files.setdefault("/proc/sys/kernel/random/boot_id", f"{self.boot_id}\n".encode())

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,  # noqa: ARG002 - nothing here takes time
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Answer from the script."""
        self.asked.append(Call("run", tuple(argv), content=stdin, env=env))
        done = self._answer(argv, stdin)
        if check and done.code != 0:
            raise RunFailed(f"{argv[0]} ended with {done.code} on {self.name}")
        return done

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Make a process that lives until `end`; the script's answer goes to its output files."""
        self.asked.append(Call("start", tuple(argv), env=env))
        done = self._answer(argv, b"")
        process = self.spawn(argv[0])
        if announce is not None:
            announce(process)
        self.files[output.stdout] = done.stdout
        self.files[output.stderr] = done.stderr
        return process

    def spawn(self, name: str = "fake") -> Process:
        """Add a living process to the machine."""
        pid, self.next_pid = self.next_pid, self.next_pid + 1
        fields = ["S", *["0"] * 18, str(pid * 10), *["0"] * 30]
        self.files[f"/proc/{pid}/stat"] = f"{pid} ({name}) {' '.join(fields)}\n".encode()
        return Process(pid, pid * 10, self.boot_id)

    def end(self, process: Process) -> None:
        """Remove a process from the machine."""
        self.files.pop(f"/proc/{process.pid}/stat", None)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:  # noqa: ARG002 - the contract's
        """Store the content under the path."""
        content = source if isinstance(source, bytes) else source.read_bytes()
        self.asked.append(Call("put", path=target, content=content))
        self.files[target] = content

    def get(self, source: str, target: Path) -> None:
        """Copy a stored file out."""
        self.asked.append(Call("get", path=source))
        if source not in self.files:
            raise RunFailed(f"{source} is not on {self.name}")
        target.write_bytes(self.files[source])

    def read(self, path: str) -> bytes | None:
        """Content that was put or prepared there; `None` if there is none."""
        self.asked.append(Call("read", path=path))
        return self.files.get(path)

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """Those of `linked` that are among the places, or directly inside."""
        return {path: to for path, to in self.linked.items() if {path, path.rpartition("/")[0]} & set(places)}

    def ran(self) -> list[tuple[str, ...]]:
        """Programs that were run or started so far, in order."""
        return [asked.argv for asked in self.asked if asked.what in ("run", "start")]

    def _answer(self, argv: Sequence[str], stdin: bytes) -> Completed:
        for length in range(len(argv), 0, -1):
            answer = self.answers.get(tuple(argv[:length]))
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, Completed):
                return answer
            if answer is not None:
                return answer(argv, stdin)
        return Completed(tuple(argv), 0)
