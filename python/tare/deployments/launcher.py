"""Gives a bare process what a container engine would have given, then becomes it.

This file is copied to a host and run there by its own Python, so it needs the standard library only:

    python3 -I launcher.py start SPEC    start a task under a supervisor, print its pid, return
    python3 -I launcher.py exec SPEC     become a program inside a running task

SPEC is a JSON file, removed as soon as it is read. An error ends as one line on standard error and exit code
125. The supervisor does nothing but wait for the task, as containerd's shim does for a container, and writes
its exit code to the file `status`. What is mounted is told in docs/concepts/deployments.md.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import stat
import sys

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
RLIMIT_LOCKS = 10  # missing in the resource module
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "core": "/proc/kcore",
    "ptmx": "pts/ptmx",
}
FAILED = 125

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    """Raise the errno of a failed libc call, saying what was tried."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, fstype=None, flags=0, data=None):
    """mount(2)."""
    arguments = [os.fsencode(value) if value is not None else None for value in (source, target, fstype)]
    result = libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) if data is not None else None)
    check(result, f"cannot mount {fstype or source} on {target}")


def remount_read_only(target):
    """Make one mount read-only, keeping its other flags (whose ST_ and MS_ bits agree for these three)."""
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount(None, target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def enter_namespace(pid, kind, flag):
    """setns(2) into a namespace of the process `pid`."""
    handle = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        check(libc.setns(handle, flag), f"cannot enter the {kind} namespace of process {pid}")
    finally:
        os.close(handle)


def resolve(root, path):
    """`path` as a program whose root is `root` would reach it: links are followed, never out of `root`."""
    done, todo, links = [], [part for part in path.split("/") if part], 0
    while todo:
        part = todo.pop(0)
        if part in (".", ".."):
            del done[len(done) - 1 if part == ".." and done else len(done) :]
            continue
        here = os.path.join(root, *done, part)
        if not os.path.islink(here):
            done.append(part)
            continue
        links += 1
        if links > 40:
            raise OSError(f"too many links in {path}")
        target = os.readlink(here)
        if target.startswith("/"):
            done = []
        todo = [piece for piece in target.split("/") if piece] + todo
    return os.path.join(root, *done)


class Root:
    """The image's root made into a mount tree of our own; the tree on disk is never written to."""

    def __init__(self, rootfs):
        self.path = os.path.realpath(rootfs)
        self.mirrors = []
        mount(self.path, self.path, flags=MS_BIND | MS_REC)
        remount_read_only(self.path)

    def target(self, path, *, directory):
        """The place for a mount at `path`, made where the image has none."""
        where = resolve(self.path, path)
        if not os.path.exists(where):
            parent = where
            while not os.path.isdir(parent):
                parent = os.path.dirname(parent)
            if not os.access(parent, os.W_OK):
                self.mirror(parent)
            os.makedirs(where if directory else os.path.dirname(where), exist_ok=True)
            if not directory:
                os.close(os.open(where, os.O_CREAT | os.O_WRONLY, 0o644))
        return where

    def mirror(self, directory):
        """Lay a small writable directory over a read-only one, with all that it holds bound into it."""
        original = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            seen = os.fstat(original)
            options = f"mode={stat.S_IMODE(seen.st_mode):o},uid={seen.st_uid},gid={seen.st_gid},size=1m"
            mount("tmpfs", directory, "tmpfs", 0, options)
            below = f"/proc/self/fd/{original}"
            for entry in os.scandir(below):
                place = os.path.join(directory, entry.name)
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), place)
                    continue
                if entry.is_dir():
                    os.mkdir(place)
                else:
                    os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
                mount(f"{below}/{entry.name}", place, flags=MS_BIND | MS_REC)
        finally:
            os.close(original)
        self.mirrors.append(directory)

    def mount(self, fstype, path, flags=0, data=None):
        """A new file system at `path`."""
        mount(fstype, self.target(path, directory=True), fstype, flags, data)

    def bind(self, source, path, *, read_only, recursive=False):
        """A file or a directory of the host at `path`."""
        where = self.target(path, directory=os.path.isdir(source))
        mount(source, where, flags=MS_BIND | (MS_REC if recursive else 0))
        if read_only:
            remount_read_only(where)

    def scratch(self, path, mode):
        """A tmpfs with the mode that the directory has in the image, as runc gives it."""
        seen = resolve(self.path, path)
        if os.path.isdir(seen):
            mode = stat.S_IMODE(os.stat(seen).st_mode)
        self.mount("tmpfs", path, MS_NOSUID | MS_NODEV, f"mode={mode:o}")

    def devices(self, shm_bytes):
        """A minimal /dev, as an engine makes it."""
        self.mount("tmpfs", "/dev", MS_NOSUID, "mode=755,size=65536k")
        dev = os.path.join(self.path, "dev")
        for name, (major, minor) in DEVICES.items():
            os.mknod(os.path.join(dev, name), 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            os.chmod(os.path.join(dev, name), 0o666)  # whatever the umask
        for name, target in DEVICE_LINKS.items():
            os.symlink(target, os.path.join(dev, name))
        plain = MS_NOSUID | MS_NODEV | MS_NOEXEC
        self.mount("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
        self.mount("tmpfs", "/dev/shm", plain, f"mode=1777,size={shm_bytes}")  # noqa: S108 - inside the new root
        self.mount("mqueue", "/dev/mqueue", plain)

    def enter(self):
        """Make it the root of this process; what was mounted outside of it is gone from sight."""
        for directory in self.mirrors:
            remount_read_only(directory)
        os.chdir(self.path)
        number = SYS_PIVOT_ROOT.get(os.uname().machine)
        if number is None:
            raise OSError(f"tare does not know pivot_root's number on {os.uname().machine}")
        check(libc.syscall(ctypes.c_long(number), b".", b"."), f"cannot make {self.path} the root")
        check(libc.umount2(b".", MNT_DETACH), "cannot detach the host's root")
        os.chdir("/")


def build_root(spec):
    """A private mount namespace with the task's root in it."""
    check(libc.unshare(CLONE_NEWNS), "cannot make a mount namespace")
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    cgroups = cgroup_mounts()
    root = Root(spec["rootfs"])
    plain = MS_NOSUID | MS_NODEV | MS_NOEXEC
    root.mount("proc", "/proc", plain)
    root.mount("sysfs", "/sys", plain | MS_RDONLY)
    for path in cgroups:
        root.bind(path, path, read_only=True)
    root.devices(spec["shm_bytes"])
    for scratch in spec["tmpfs"]:
        root.scratch(scratch["target"], int(scratch["mode"], 8))
    for bind in spec["binds"]:
        root.bind(bind["source"], bind["target"], read_only=bind["read_only"], recursive=True)
    root.enter()


def cgroup_mounts():
    """Where the host shows its cgroups: a program may size itself by its limits (the JVM does)."""
    with open("/proc/self/mountinfo") as file:
        targets = [line.split()[4] for line in file]
    return [path for path in targets if path == "/sys/fs/cgroup" or path.startswith("/sys/fs/cgroup/")]


class User:
    """Who a task runs as, by the image's own /etc/passwd and /etc/group, with an engine's rules."""

    def __init__(self, wanted):
        name, _, group = wanted.partition(":")
        name = name or "0"
        passwd = [line for line in table("/etc/passwd") if len(line) >= 6]
        found = [line for line in passwd if name in (line[0], line[2])]
        if not found and not name.isdigit():
            raise OSError(f"the image has no user {name!r}")
        self.uid = int(found[0][2]) if found else int(name)
        self.gid = int(found[0][3]) if found else 0
        self.home = (found[0][5] if found else "") or "/"
        groups = [line for line in table("/etc/group") if len(line) >= 3]
        members = [(line, line[3].split(",") if len(line) > 3 else []) for line in groups]
        self.groups = [int(line[2]) for line, names in members if found and found[0][0] in names]
        if group:
            self.groups = []
            known = [int(line[2]) for line in groups if group in (line[0], line[2])]
            if not known and not group.isdigit():
                raise OSError(f"the image has no group {group!r}")
            self.gid = known[0] if known else int(group)

    def become(self):
        """Give up root for good."""
        os.setgroups([self.gid, *self.groups])
        os.setgid(self.gid)
        os.setuid(self.uid)


def table(path):
    """The fields of a passwd or group file."""
    try:
        with open(path, errors="replace") as file:
            return [line.rstrip("\n").split(":") for line in file]
    except FileNotFoundError:
        return []


def become(spec):
    """Limits, user, environment, directory; then the program itself. Never returns."""
    user = User(spec["user"])
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))  # the cpuset narrows it again
    if spec["own_output"]:
        for descriptor in (1, 2):  # so that /dev/stdout can be opened again after setuid
            os.fchown(descriptor, user.uid, user.gid)
    for name, (soft, hard) in spec["rlimits"].items():
        number = RLIMIT_LOCKS if name == "locks" else getattr(resource, f"RLIMIT_{name.upper()}")
        resource.setrlimit(number, (soft, hard))
    env = {"HOME": user.home, "HOSTNAME": socket.gethostname(), **spec["env"]}
    os.umask(0o022)
    user.become()
    os.chdir(spec["workdir"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would hand that on
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(spec["argv"][0], spec["argv"], env)
    except OSError as error:
        raise OSError(f"cannot execute {spec['argv'][0]}: {error.strerror}") from error


def join(spec):
    """Enter the task's cgroups, and the network namespace that it shares."""
    for path in spec["cgroup_procs"]:
        with open(path, "w") as file:
            file.write("0")
    if spec["network_of"]:
        enter_namespace(spec["network_of"], "net", CLONE_NEWNET)


def run_child(spec, failures):
    """The child's way from fork to exec; what fails goes into the pipe, which a successful exec closes."""
    try:
        os.setsid()
        os.umask(0o022)
        stdin = os.open("/dev/null", os.O_RDONLY)
        outputs = [
            os.open(spec[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
            for name in ("stdout", "stderr")
        ]
        for number, descriptor in enumerate((stdin, *outputs)):
            os.dup2(descriptor, number)
        join(spec)
        build_root(spec)
        become(spec)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it must reach the caller
        os.write(failures, describe(error).encode())
    finally:
        os._exit(FAILED)


def supervise(spec, report):
    """Start the child, tell how that went, wait for its end, write its exit code down."""
    os.setsid()
    silence = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(silence, number)
    failed, failures = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(failed)
        run_child(spec, failures)
    os.close(failures)
    message = read_all(failed)
    if message:
        os.write(report, json.dumps({"error": message.decode(errors="replace")}).encode())
        return
    with open(f"/proc/{child}/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    os.write(report, json.dumps({"pid": child, "started_ticks": ticks}).encode())
    os.close(report)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(spec["status"] + ".part", "w") as file:
        file.write(str(code))
    os.rename(spec["status"] + ".part", spec["status"])


def start(spec):
    """Fork the supervisor and pass on what it reports."""
    reported, report = os.pipe()
    if os.fork() == 0:
        os.close(reported)
        try:
            supervise(spec, report)
        except BaseException as error:  # noqa: BLE001 - the caller waits for a word
            os.write(report, json.dumps({"error": describe(error)}).encode())
        finally:
            os._exit(0)
    os.close(report)
    answer = json.loads(read_all(reported) or b'{"error": "the supervisor died"}')
    if "error" in answer:
        raise OSError(answer["error"])
    print(json.dumps(answer))  # noqa: T201 - the answer to whoever called


def execute(spec):
    """Become a program inside a running task."""
    pid = spec["enter"]
    join(spec)
    enter_namespace(pid, "mnt", CLONE_NEWNS)
    os.chdir("/")
    become(spec)


def read_all(descriptor):
    """Read to the end of a pipe."""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def describe(error):
    """One line."""
    text = str(error) if isinstance(error, OSError) and error.strerror is None else ""
    if isinstance(error, OSError) and not text:
        text = error.strerror + (f": {error.filename}" if error.filename else "")
    return " ".join((text or f"{type(error).__name__}: {error}").split())


def main():
    """Read SPEC, do as the first word says."""
    verb, path = sys.argv[1:]
    with open(path) as file:
        spec = json.load(file)
    os.unlink(path)
    try:
        {"start": start, "exec": execute}[verb](spec)
    except Exception as error:  # noqa: BLE001 - one line, whatever it was
        sys.stderr.write(describe(error) + "\n")
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
