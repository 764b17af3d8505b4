"""A user of the tests' own with a rootless Podman that answers: made, used, removed with all that is theirs.

    python -m tools.rootless run [--fuse] COMMAND...

runs a command that finds it (TARE_PODMAN_ROOTLESS). Needs root, and podman, slirp4netns and uidmap. /dev/net/tun
and /dev/fuse are open to the service in a mount namespace of its own, however they are on the machine.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from uuid import uuid4

STATE = Path("/var/lib/tare-rootless")
RUNTIME = Path("/run/user")
"""As pam_systemd makes it: sockets below it have names that are just short enough (unix(7))."""
VARIABLE = "TARE_PODMAN_ROOTLESS"
_CALL_S, _START_S = 60.0, 60.0
_FIRST, _COUNT = 3_000_000, 65_536
_DEVICES = {"net/tun": (10, 200), "fuse": (10, 229)}
"""Character devices by their numbers (Documentation/admin-guide/devices.txt)."""
_WITH_DEVICES = """
mount --make-rprivate / && for name in tun fuse; do
    place=/dev/$name; [ "$name" != tun ] || place=/dev/net/tun
    [ ! -e "$place" ] || mount --bind "$1/$name" "$place" || exit 1
done && shift && exec "$@"
"""
_NEEDED = ("podman", "slirp4netns", "newuidmap", "setpriv", "useradd")


class RootlessFailed(Exception):
    """What could not be made, and why."""


@dataclass(frozen=True)
class Rootless:
    """`address`: of the user's service. `uid`: the user's."""

    name: str
    uid: int
    address: str
    state: Path


@contextlib.contextmanager
def made(*, fuse: bool = False, numbers: int = _COUNT) -> Iterator[Rootless]:
    """A user with a service. `fuse`: its overlay is fuse-overlayfs, and not the kernel's.

    `numbers`: how many other users a container may have (subuid(5)).
    """
    if missing := [name for name in (*_NEEDED, *(["fuse-overlayfs"] if fuse else [])) if not shutil.which(name)]:
        raise RootlessFailed(f"not installed: {', '.join(missing)} (scripts/packages.sh test)")
    name = f"tare-{uuid4().hex[:8]}"
    state = STATE / name
    try:
        _make_user(name, state, numbers)
        yield from _served(name, state, fuse=fuse)
    finally:
        _remove_user(name, state)


def _served(name: str, state: Path, *, fuse: bool) -> Iterator[Rootless]:
    user = pwd.getpwnam(name)
    own = ["--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=file", "--storage-driver=overlay"]
    if fuse:
        own.append(f"--storage-opt=overlay.mount_program={shutil.which('fuse-overlayfs')}")
    address = f"unix://{state}/podman.sock"
    argv = ["unshare", "--mount", "sh", "-c", _WITH_DEVICES, "sh", str(state), "setpriv", f"--reuid={user.pw_uid}"]
    argv += [f"--regid={user.pw_gid}", "--init-groups", "podman", *own, "system", "service", "--time=0", address]
    env = {
        "HOME": user.pw_dir,
        "USER": name,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "XDG_RUNTIME_DIR": str(RUNTIME / str(user.pw_uid)),
    }
    with (state / "log").open("wb") as log:
        # In a session of its own: a signal to the caller's group is the command's, which still needs the service.
        service = subprocess.Popen(argv, stdout=log, stderr=log, env=env, cwd="/", start_new_session=True)
        try:
            deadline = time.monotonic() + _START_S
            while not (state / "podman.sock").exists():
                if service.poll() is not None or time.monotonic() > deadline:
                    raise RootlessFailed(f"podman does not serve: {(state / 'log').read_text().strip()}")
                time.sleep(0.05)
            yield Rootless(name, user.pw_uid, address, state)
        finally:
            service.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.wait(20)
            service.kill()
            service.wait(20)


def _make_user(name: str, state: Path, count: int) -> None:
    state.mkdir(parents=True)
    for place in (STATE, state):
        place.chmod(0o755)
    _run(
        "useradd",
        "--system",
        "--user-group",
        "--home-dir",
        str(state / "home"),
        "--shell",
        "/usr/sbin/nologin",
        name,
    )
    if count:
        _give_numbers(name, count)
    user = pwd.getpwnam(name)
    for place in (state, state / "home", RUNTIME / str(user.pw_uid)):
        place.mkdir(parents=True, exist_ok=True)
        os.chown(place, user.pw_uid, user.pw_gid)
    (RUNTIME / str(user.pw_uid)).chmod(0o700)
    for device, numbers_of in _DEVICES.items():
        node = state / Path(device).name
        os.mknod(node, 0o666 | 0o020000, os.makedev(*numbers_of))
        node.chmod(0o666)


def _give_numbers(name: str, count: int) -> None:
    taken = [line.split(":") for line in Path("/etc/subuid").read_text().splitlines() if line.count(":") == 2]
    first = max([_FIRST, *(int(start) + int(many) for _, start, many in taken)])
    numbers = f"{first}-{first + count - 1}"
    _run("usermod", "--add-subuids", numbers, "--add-subgids", numbers, name)


def _remove_user(name: str, state: Path) -> None:
    """The user's processes first, pause process and watchers too: there is nobody else behind that number."""
    with contextlib.suppress(KeyError):
        uid = pwd.getpwnam(name).pw_uid
        deadline = time.monotonic() + _CALL_S
        while (left := processes_of(uid)) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        _run("userdel", name)
        shutil.rmtree(RUNTIME / str(uid), ignore_errors=True)
    shutil.rmtree(state, ignore_errors=True)
    with contextlib.suppress(OSError):
        STATE.rmdir()


def processes_of(uid: int) -> list[int]:
    """Those that are not dead already and only wait for a parent."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (place / "status").read_text()
            rows = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            if int(rows["Uid"].split()[0]) == uid and rows["State"].split()[0] not in "ZX":
                found.append(int(place.name))
    return found


def _run(*argv: str) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=_CALL_S)
    if done.returncode != 0:
        raise RootlessFailed(f"{argv[0]} ended with {done.returncode}: {done.stderr.strip()}")


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _handle(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    """End this program by way of its clean-up, which a further signal does not cut short."""
    _handle(signal.SIG_IGN)
    sys.exit(128 + number)


def _passing_on_signals(command: list[str], env: dict[str, str]) -> int:
    """Run the command. SIGINT and SIGTERM end it, also while it starts; the service and the user go after it."""
    given, running = list[int](), list[subprocess.Popen[bytes]]()

    def pass_on(number: int, _: FrameType | None) -> None:
        given.append(number)
        for each in running:
            each.send_signal(number)

    _handle(pass_on)
    try:
        running.append(subprocess.Popen(command, env=env))
        for number in given:
            running[0].send_signal(number)
        return running[0].wait()
    finally:
        _handle(signal.SIG_IGN)


def main(words: list[str]) -> int:
    """The words of the command line."""
    if words[:1] != ["run"] or not words[1:]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    fuse = words[1] == "--fuse"
    _handle(_end)
    try:
        with made(fuse=fuse) as rootless:
            command = words[2:] if fuse else words[1:]
            return _passing_on_signals(command, {**os.environ, VARIABLE: rootless.address})
    except RootlessFailed as error:
        sys.stderr.write(f"tools.rootless: {error}\n")
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
