"""Give a bare process what a container engine would have given it, then become that process.

This file is copied to a host and run there by the host's Python, so it uses the standard library only:

    python3 -I -S launcher.py start    start a task under a supervisor, print its pid, return
    python3 -I -S launcher.py exec     become a program inside a running task

Standard input begins with the specification, as JSON behind its length in ten digits; the rest is the program's
input. An error is one line on standard error and exit code 125. The supervisor waits for the task, as
containerd's shim does, and writes its exit code to the file `status`. Mounts: docs/concepts/deployments.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWUSER = 0x00020000, 0x40000000, 0x10000000
POD_NAMESPACES = {"uts": 0x04000000, "ipc": 0x08000000, "pid": 0x20000000}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MS_STRICTATIME = 1 << 12, 1 << 14, 1 << 18, 1 << 24
MNT_DETACH, SIOCSIFFLAGS, IFF_UP = 2, 0x8914, 1
PLAIN = MS_NOSUID | MS_NODEV | MS_NOEXEC
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
RLIMIT_LOCKS = 10  # missing in the resource module
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
STREAMS = {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
DEVICE_LINKS = {"fd": "/proc/self/fd", **STREAMS, "core": "/proc/kcore", "ptmx": "pts/ptmx"}
FAILED, DIGITS, MAX_LINKS = 125, 10, 40  # links as in path_resolution(7)

Spec = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)


class LaunchError(Exception):
    """Something could not be done; the message is for the user."""


def check(result: int, what: str) -> None:
    """Raise `LaunchError` with the errno of a failed libc call; `what` says what was tried."""
    if result != 0:
        raise LaunchError(f"cannot {what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: Path, fstype: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system (mount(2))."""
    words = [os.fsencode(word) for word in (source, target, fstype)]
    result = libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(data))
    check(result, f"mount {source or 'anew'} on {target}")


def remount_read_only(target: Path) -> None:
    """Make one mount read-only and keep its other flags (ST_ and MS_ flags have the same bits)."""
    kept = os.statvfs(target).f_flag & PLAIN
    mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def enter_namespace(pid: int, kind: str, flag: int) -> None:
    """Enter a namespace of the process `pid`, as setns(2)."""
    with Path(f"/proc/{pid}/ns/{kind}").open("rb") as handle:
        check(libc.setns(handle.fileno(), flag), f"enter the {kind} namespace of process {pid}")


def resolve(root: Path, path: str) -> Path:
    """Path on the host of `path` as a program with the root `root` sees it; links never lead out of `root`."""
    done: list[str] = []
    todo = [part for part in path.split("/") if part]
    links = 0
    while todo:
        part = todo.pop(0)
        if part in (".", ".."):
            done = done[:-1] if part == ".." else done
            continue
        here = root.joinpath(*done, part)
        if not here.is_symlink():
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            raise LaunchError(f"too many links in {path}")
        target = str(here.readlink())
        if target.startswith("/"):
            done = []
        todo = [piece for piece in target.split("/") if piece] + todo
    return root.joinpath(*done)


class Root:
    """The image's root as a mount tree of this process; the tree on disk is never written to."""

    def __init__(self, rootfs: str) -> None:
        self.path = Path(rootfs).resolve()
        self.mirrors: list[Path] = []
        mount(str(self.path), self.path, flags=MS_BIND | MS_REC)
        remount_read_only(self.path)

    def target(self, path: str, *, directory: bool) -> Path:
        """Return the mount point for `path`; make it if the image does not have it."""
        where = resolve(self.path, path)
        if not where.exists():
            parent = where.parent
            while not parent.is_dir():
                parent = parent.parent
            if not os.access(parent, os.W_OK):
                self.mirror(parent)
            (where if directory else where.parent).mkdir(parents=True, exist_ok=True)
            if not directory:
                where.touch(0o644)
        return where

    def mirror(self, directory: Path) -> None:
        """Cover a read-only directory with a small writable one into which all its entries are bound."""
        original = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            seen = os.fstat(original)
            options = f"mode={stat.S_IMODE(seen.st_mode):o},uid={seen.st_uid},gid={seen.st_gid},size=1m"
            mount("tmpfs", directory, "tmpfs", 0, options)
            for entry in Path(f"/proc/self/fd/{original}").iterdir():
                place = directory / entry.name
                if entry.is_symlink():
                    place.symlink_to(entry.readlink())
                    continue
                (place.mkdir if entry.is_dir() else place.touch)()
                mount(str(entry), place, flags=MS_BIND | MS_REC)
        finally:
            os.close(original)
        self.mirrors.append(directory)

    def mount(self, fstype: str, path: str, flags: int = 0, data: str = "") -> None:
        """Mount a new file system at `path`."""
        mount(fstype, self.target(path, directory=True), fstype, flags, data)

    def bind(self, source: str, path: str, *, read_only: bool, recursive: bool = False) -> None:
        """Mount a file or directory of the host at `path`."""
        where = self.target(path, directory=Path(source).is_dir())
        mount(source, where, flags=MS_BIND | (MS_REC if recursive else 0))
        if read_only:
            remount_read_only(where)

    def scratch(self, path: str, mode: int) -> None:
        """Mount a tmpfs with the mode that the directory has in the image, as runc does."""
        seen = resolve(self.path, path)
        if seen.is_dir():
            mode = stat.S_IMODE(seen.stat().st_mode)
        self.mount("tmpfs", path, MS_NOSUID | MS_NODEV, f"mode={mode:o}")

    def devices(self, shm_bytes: int | None) -> None:
        """Mount a minimal /dev, as an engine makes it."""
        self.mount("tmpfs", "/dev", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k")
        dev = resolve(self.path, "/dev")
        for name, (major, minor) in DEVICES.items():
            os.mknod(dev / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            (dev / name).chmod(0o666)  # independent of the umask
        for name, target in DEVICE_LINKS.items():
            if name != "core" or Path(target).exists():  # not every kernel has it
                (dev / name).symlink_to(target)
        self.mount("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
        size = "" if shm_bytes is None else f",size={shm_bytes}"
        self.mount("tmpfs", "/dev/shm", PLAIN, f"mode=1777{size}")  # noqa: S108 - in the new root
        self.mount("mqueue", "/dev/mqueue", PLAIN)

    def enter(self) -> None:
        """Make the tree the root of this process and detach everything mounted outside."""
        for directory in self.mirrors:
            remount_read_only(directory)
        os.chdir(self.path)
        number = SYS_PIVOT_ROOT.get(os.uname().machine)
        if number is None:
            raise LaunchError(f"the number of pivot_root(2) on {os.uname().machine} is not known to tare")
        check(libc.syscall(ctypes.c_long(number), b".", b"."), f"make {self.path} the root")
        check(libc.umount2(b".", MNT_DETACH), "detach the host's root")
        os.chdir("/")


def build_root(spec: Spec) -> None:
    """Make a private mount namespace with the task's root in it."""
    check(libc.unshare(CLONE_NEWNS), "make a mount namespace")
    mount("", Path("/"), flags=MS_REC | MS_PRIVATE)
    root = Root(spec["rootfs"])
    root.mount("proc", "/proc", PLAIN)
    root.mount("sysfs", "/sys", PLAIN | MS_RDONLY)
    for path in spec["cgroup_mounts"]:
        root.bind(path, path, read_only=True)
    root.devices(spec["shm_bytes"])
    for scratch in spec["scratch"]:
        root.scratch(scratch["target"], int(scratch["mode"], 8))
    for bind in spec["binds"]:
        root.bind(bind["source"], bind["target"], read_only=bind["read_only"], recursive=True)
    root.enter()


class User:
    """The user that a task runs as, resolved by the image's /etc/passwd and /etc/group with an engine's rules."""

    def __init__(self, wanted: str) -> None:
        name, _, group = wanted.partition(":")
        name = name or "0"
        account = next((row for row in table("/etc/passwd", 6) if name in (row[0], row[2])), None)
        if account is None and not name.isdigit():
            raise LaunchError(f"the image has no user {name!r}")
        self.uid = int(account[2]) if account else int(name)
        self.gid = int(account[3]) if account else 0
        self.home = (account[5] if account else "") or "/"
        groups = table("/etc/group", 4)
        self.groups = [int(row[2]) for row in groups if account and account[0] in row[3].split(",")]
        if group:
            known = [int(row[2]) for row in groups if group in (row[0], row[2])]
            if not known and not group.isdigit():
                raise LaunchError(f"the image has no group {group!r}")
            self.gid, self.groups = (known[0] if known else int(group)), []

    def become(self) -> None:
        """Switch to the user and give up root for good."""
        os.setgroups([self.gid, *self.groups])
        os.setgid(self.gid)
        os.setuid(self.uid)


def table(path: str, fields: int) -> list[list[str]]:
    """Rows of a passwd or group file that have at least `fields` fields; none of a FIFO, without waiting for it."""
    if not Path(path).exists():
        return []
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        lines = (file.read(64 << 20) or b"").decode(errors="replace").splitlines()
    return [row for row in (line.split(":") for line in lines) if len(row) >= fields]


def become(spec: Spec, user_namespace: int | None = None) -> NoReturn:
    """Set limits, user, environment and working directory, then execute the program. Import nothing here."""
    user, env = User(spec["user"]), {"HOSTNAME": os.uname().nodename, **spec["env"]}
    Path("/proc/self/oom_score_adj").write_text("0")
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))  # the cpuset narrows it again
    take_default_priority()
    if spec["own_output"]:
        for descriptor in (1, 2):  # so that the user can open /dev/stdout again
            os.fchown(descriptor, user.uid, user.gid)
    for name, (soft, hard) in spec["rlimits"].items():
        number = RLIMIT_LOCKS if name == "locks" else getattr(resource, f"RLIMIT_{name.upper()}")
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError) as error:
            raise LaunchError(f"the limit {name} cannot be set to {soft}:{hard}: {error}") from error
    env = {"HOME": user.home, **env}
    os.umask(0o022)
    if user_namespace is not None:  # after the limits, which only the host's root may raise
        check(libc.setns(user_namespace, CLONE_NEWUSER), "enter the task's user namespace")
    user.become()
    os.chdir(spec["workdir"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would inherit that
        signal.signal(number, signal.SIG_DFL)
    execute_program(spec["argv"], env)


def take_default_priority() -> None:
    """Drop what tare was started with (nice, chrt); an observation shows what a user without rights keeps."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def execute_program(argv: list[str], env: dict[str, str]) -> NoReturn:
    """Become the program, searched for as execvp(3) does: os.execvpe imports modules, which the new root lacks."""
    folders = [""] if "/" in argv[0] else [f"{each or '.'}/" for each in env.get("PATH", os.defpath).split(":")]
    number = errno.ENOENT
    for folder in folders:
        try:
            os.execve(folder + argv[0], argv, env)  # noqa: S606 - a shell is what must not be there
        except OSError as error:
            number = number if error.errno in (None, errno.ENOENT, errno.ENOTDIR) else error.errno
    raise LaunchError(f"cannot execute {argv[0]}: {os.strerror(number)}")


def join(spec: Spec) -> None:
    """Enter the task's cgroups and, if it shares one, another instance's network namespace."""
    if mover := spec.get("mover"):
        child = os.posix_spawnp(mover[0], [*mover, str(os.getpid())], os.environ)
        if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise LaunchError(f"{mover[0]} ended with {code}: its reason is in {spec['stderr']}")
    for path in spec["cgroup_procs"]:
        Path(path).write_text("0")
    if spec["network_of"]:
        enter_namespace(spec["network_of"], "net", CLONE_NEWNET)
    elif spec.get("own_network"):
        check(libc.unshare(CLONE_NEWNET), "make a network namespace")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:  # netdevice(7): struct ifreq
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


def run_child(spec: Spec, failures: int) -> NoReturn:
    """Run the child from fork to exec. An error is written to the pipe, which a successful exec closes."""
    try:
        os.setsid()
        os.umask(0o022)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "stdout"), (2, "stderr")):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            os.dup2(os.open(spec[name], flags, 0o644), number)
        join(spec)
        build_root(spec)
        become(spec)
    except BaseException as error:  # noqa: BLE001 - any error must reach the caller
        os.write(failures, describe(error).encode())
    finally:
        os._exit(FAILED)


def supervise(spec: Spec, report: int) -> None:
    """Start the child, report its pid or failure, wait for it, and write its exit code to the status file."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(silence, number)
    failed, failures = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(failed)
        run_child(spec, failures)
    os.close(failures)
    if message := os.fdopen(failed, "rb").read():
        raise LaunchError(message.decode(errors="replace"))
    ticks = int(Path(f"/proc/{child}/stat").read_bytes().rpartition(b")")[2].split()[19])
    os.write(report, json.dumps({"pid": child, "started_ticks": ticks}).encode())
    os.close(report)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    part = Path(spec["status"] + ".part")
    part.write_text(str(code))
    part.rename(spec["status"])


def start(spec: Spec) -> None:
    """Fork the supervisor and print what it reports."""
    reported, report = os.pipe()
    if os.fork() == 0:
        os.close(reported)
        try:
            supervise(spec, report)
        except BaseException as error:  # noqa: BLE001 - the caller waits for a report
            os.write(report, json.dumps({"error": describe(error)}).encode())
        finally:
            os._exit(0)
    os.close(report)
    answer = json.loads(os.fdopen(reported, "rb").read() or b'{"error": "the supervisor died"}')
    if "error" in answer:
        raise LaunchError(answer["error"])
    sys.stdout.write(json.dumps(answer))


def execute(spec: Spec) -> NoReturn:
    """Become a program inside a running task."""
    join(spec)
    if inside := spec.get("pod_of"):
        for kind, flag in POD_NAMESPACES.items():
            enter_namespace(inside, kind, flag)
    users = os.open(f"/proc/{spec['enter']}/ns/user", os.O_RDONLY | os.O_CLOEXEC) if spec.get("own_users") else None
    enter_namespace(spec["enter"], "mnt", CLONE_NEWNS)
    if inside and (child := os.fork()):  # a process keeps the pid namespace that it was made in
        os._exit(code if (code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) >= 0 else 128 - code)
    become(spec, users)


def read_exactly(count: int) -> bytes:
    """Read exactly `count` bytes of standard input, and none behind them."""
    content = b""
    while len(content) < count:
        if not (part := os.read(0, count - len(content))):
            raise LaunchError(f"the specification is cut short: {len(content)} of {count} bytes")
        content += part
    return content


def describe(error: BaseException) -> str:
    """Describe an error in one line."""
    text = str(error) if isinstance(error, (LaunchError, OSError)) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def main() -> None:
    """Run the command that the only argument names."""
    try:
        spec = json.loads(read_exactly(int(read_exactly(DIGITS))))
        {"start": start, "exec": execute}[sys.argv[1]](spec)
    except Exception as error:  # noqa: BLE001 - any error becomes one line
        sys.stderr.write(describe(error) + "\n")
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
