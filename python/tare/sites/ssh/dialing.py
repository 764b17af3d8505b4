"""Connect to the agent of a host: through OpenSSH's client, or any command that starts the agent."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from tare.errors import EnvironmentLacks, RunFailed, TareError
from tare.sites.binaries import AGENT, find
from tare.sites.file import SshSpec
from tare.sites.local import LocalHost
from tare.sites.ssh.refusals import by_sudo, refusal

PREAMBLE = b"\ntare-agent 1\n"
_MOST_BEFORE = 1 << 16
"""Most bytes that a shell's start-up files may print before the preamble."""
_OPEN_S = 40.0
_COPY_S = 300.0
_KILL_S = 5.0

_NOT_THERE, _OTHER_MACHINE, _NOT_COPIED = 97, 96, 95
"""Exit codes of the scripts below."""
_PLACE = 'if [ "$(id -u)" = 0 ]; then d=/var/lib/tare; else d=${XDG_DATA_HOME:-$HOME/.local/share}/tare; fi'
_COPY = (
    'umask 077; {place}; p=$d/agent/{name}; m=$(uname -m); [ "$m" = {machine} ] || {{ echo "$m"; exit 96; }}; '
    'mkdir -p "$d"; [ -n "$(ls -A "$d")" ] || stat -c %i "$d" >"$d/.tare"; mkdir -p "$d/agent" && cat >"$p.$$" '
    '&& echo "{digest}  $p.$$" | sha256sum -c >/dev/null && chmod 700 "$p.$$" '
    '&& mv "$p.$$" "$p" || {{ rm -f "$p.$$"; exit 95; }}'
)
_CONNECT = '{place}; p=$d/agent/{name}; [ -x "$p" ] || exit 97; exec {sudo}"$p" connect {words}'

_OPTIONS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RequestTTY": "no",
    "EscapeChar": "none",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "LogLevel": "ERROR",
}
"""Override the user's configuration: no prompts, no unknown host keys, no agent forwarding."""


class NoConnection(Exception):
    """A command that ended, or printed nothing, before the agent answered."""

    def __init__(self, code: int | None, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Line:
    """A connection to the agent: a process whose standard streams carry frames."""

    def __init__(self, process: subprocess.Popen[bytes], errors: BinaryIO) -> None:
        self._process = process
        self._errors = errors
        assert process.stdin is not None  # noqa: S101 - for the type alone: both are pipes
        assert process.stdout is not None  # noqa: S101 - likewise
        self.inward = process.stdout.fileno()
        self.outward = process.stdin.fileno()
        os.set_blocking(self.outward, False)

    @property
    def pid(self) -> int:
        """Process ID of the connection's process."""
        return self._process.pid

    def last_words(self) -> str:
        """What the command printed on standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def break_off(self) -> None:
        """Kill the process at once; readers and writers see the end. The pipes stay open until `close`."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> int:
        """End the process and release its pipes; return its exit code."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            code = self._process.wait(timeout=_KILL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait(timeout=_KILL_S)
        self._errors.close()
        return code


def opened(argv: Sequence[str], *, limit_s: float = _OPEN_S) -> Line:
    """Run the command and return once the agent has answered. Raises `NoConnection`."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the line
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
    )
    line = Line(process, errors)
    try:
        if _spoke(line.inward, limit_s):
            return line
        process.wait(timeout=_KILL_S)
    except subprocess.TimeoutExpired:
        line.break_off()
    except BaseException:
        line.break_off()
        line.close()
        raise
    words = line.last_words()
    code = process.poll()
    line.close()
    raise NoConnection(code, words or f"no data arrived within {limit_s:g} s")


def _spoke(descriptor: int, limit_s: float) -> bool:
    heard, deadline = bytearray(), time.monotonic() + limit_s
    while len(heard) < _MOST_BEFORE:
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return False
        # One byte at a time, so that nothing behind the preamble is consumed.
        if not (byte := os.read(descriptor, 1)):
            return False
        heard += byte
        if heard.endswith(PREAMBLE):
            return True
    return False


class Dialer(Protocol):
    """Connects to the agent of one host."""

    def dial(self) -> Line:
        """Make a new connection. Raises `EnvironmentLacks` with one sentence if that is not possible."""
        ...


@dataclass(frozen=True)
class CommandDialer:
    """Starts the agent with a command on this machine, for tests of everything but SSH itself."""

    argv: tuple[str, ...]

    def dial(self) -> Line:
        """Run the command."""
        try:
            return opened(self.argv)
        except NoConnection as error:
            raise EnvironmentLacks(f"{self.argv[0]} did not reach its agent: {error.words}") from error


@dataclass(frozen=True)
class SshDialer:
    """Connects with OpenSSH's client, and copies the agent if the host does not have it.

    `agent`: the local program.
    """

    spec: SshSpec
    session: str
    agent: Path

    def dial(self) -> Line:
        """Connect; if the agent is missing, copy it and connect again."""
        try:
            return self._connected()
        except NoConnection as error:
            if error.code != _NOT_THERE:
                raise self._refused(error.code, error.words) from error
        self._copy()
        try:
            return self._connected()
        except NoConnection as error:
            raise self._refused(error.code, error.words) from error

    def argv(self, script: str) -> list[str]:
        """Command line of ssh(1) with a script for the host's sh, whatever the user's login shell is."""
        return [*ssh_argv(self.spec), "--", self.spec.ssh, f"exec sh -c {shlex.quote(script)}"]

    def _connected(self) -> Line:
        home = ["--home", self.spec.home] if self.spec.home else []
        words = shlex.join(["--session", self.session, *home])
        sudo = "sudo -n " if self.spec.sudo else ""
        return opened(self.argv(_CONNECT.format(place=self._place, name=self._name, sudo=sudo, words=words)))

    @property
    def _place(self) -> str:
        return _place_of(self.spec)

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.agent.read_bytes()).hexdigest()

    @property
    def _name(self) -> str:
        return f"tare-agent-{self._digest[:16]}"

    def _copy(self) -> None:
        script = _COPY.format(place=self._place, name=self._name, digest=self._digest, machine=platform.machine())
        with self.agent.open("rb") as program:
            try:
                done = subprocess.run(
                    self.argv(script), stdin=program, capture_output=True, check=False, timeout=_COPY_S,
                    start_new_session=True,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise EnvironmentLacks(
                    f"tare's agent could not be copied to {self.spec.display_name} within {_COPY_S:g} s",
                    hint="is the network between this machine and the host too slow?",
                ) from error
        words = done.stderr.decode(errors="replace").strip()
        if done.returncode == _OTHER_MACHINE:
            machine = done.stdout.decode(errors="replace").strip()
            raise EnvironmentLacks(
                f"{self.spec.display_name} is a {machine} machine, and tare has an agent for "
                f"{platform.machine()} only",
                hint="run tare on a machine of the same kind",
            )
        if done.returncode == _NOT_COPIED:
            last = words.splitlines()[-1] if words else "no reason was given"
            raise EnvironmentLacks(
                f"tare's agent could not be copied to {self.spec.display_name}: {last}",
                hint="free disk space there, or give the host another `home` in sites.yaml",
            )
        if done.returncode != 0:
            raise self._refused(done.returncode, words)

    def _refused(self, code: int | None, words: str) -> TareError:
        return refusal(self.spec, code, words, self._sudoers() if by_sudo(words) else None)

    def _sudoers(self) -> str | None:
        """Line for sudoers for this user, as the host computes it; `None` if it does not answer."""
        try:
            asked = subprocess.run(
                self.argv(sudoers_script(self.spec)), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                timeout=_OPEN_S, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        return asked.stdout.decode(errors="replace").strip() or None if asked.returncode == 0 else None


def _place_of(spec: SshSpec) -> str:
    return f"d={shlex.quote(spec.home)}" if spec.home and not spec.sudo else _PLACE


def sudoers_script(spec: SshSpec) -> str:
    """Script that prints, on the host, the line with which sudo starts the agent without a password."""
    place = _place_of(spec.model_copy(update={"sudo": True}))  # where it will be looked up then
    return f'{place}; echo "$(id -un) ALL=(root) NOPASSWD: $d/agent/tare-agent-*"'


def ssh_argv(spec: SshSpec) -> list[str]:
    """ssh(1) with the options that tare insists on, up to the destination."""
    config = ["-F", spec.ssh_config] if spec.ssh_config else []
    return ["ssh", "-T", *config, *(word for key, value in _OPTIONS.items() for word in ("-o", f"{key}={value}"))]


def agent_program() -> Path:
    """Path of tare-agent of this tare. Raises `RunFailed` if it is missing."""
    if (agent := find(LocalHost(), AGENT)) is None:
        raise RunFailed("tare-agent is missing", hint=AGENT.hint)
    return Path(agent)
