"""Faults of tare's own processes and of what they stand on: signals, room, files, processes, clock, other tares."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tare.run.attempt.death import oom_kills
from tare.sites.layout import Layout, make_home
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tools.chaos import clock
from tools.chaos.processes import text
from tools.chaos.session import SESSION_S, Session
from tools.chaos.tally import BrokenOff

Fault = Callable[[Session], bool]
"""Returns whether it struck: there may be no such process at that moment."""

POWER_CUT = "power cut"
ENDED_BY_TARE = {0, 1, 2, 3, 5}
"""Exit codes that a fault may lead to: fine, a run failed, store or machine could not do it, runs differ."""
_LET_IN, _OVER_S = {0, 1, 5}, 10.0
"""Codes of a tare that had the store, and how long one may take to end that gave it up before."""
_HOG = """
import mmap, sys
room = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(room), 4096):
    room[at] = 1
"""
_NOBODY = "65534"
_HOUR_S = 3600
_LONGEST_STOP_S = 30.0


def kill_tare(session: Session) -> bool:
    """SIGKILL of tare."""
    return session.signal([session.pid], signal.SIGKILL)


def end_tare(session: Session) -> bool:
    """SIGTERM of tare, which then tears down."""
    return session.signal([session.pid], signal.SIGTERM)


def stop_tare(session: Session) -> bool:
    """SIGSTOP of tare."""
    return session.halt([session.pid], stop_s(session))


def kill_other(session: Session) -> bool:
    """SIGKILL of a process that tare started."""
    others = session.others()
    return bool(others) and session.signal([session.chance.choice(others)], signal.SIGKILL)


def stop_other(session: Session) -> bool:
    """SIGSTOP of a process that tare started."""
    others = session.others()
    return bool(others) and session.halt([session.chance.choice(others)], stop_s(session))


def stop_s(session: Session) -> float:
    """Mostly some seconds, up to 30; a tenth of a second to two with fakes, whose runs take half a second."""
    if session.ground.brisk:
        return session.chance.uniform(0.2, 2.0)
    return min(_LONGEST_STOP_S, 1.0 + session.chance.expovariate(1 / 4))


def a_while(session: Session) -> None:
    """What a shortage lasts."""
    time.sleep(session.chance.uniform(0.2, 2.0 if session.ground.brisk else 5.0))


def fill(name: str) -> Fault:
    """No room on one of the disks."""

    def fault(session: Session) -> bool:
        if (disk := session.ground.disks.get(name)) is None:
            return False
        try:
            disk.fill()
            a_while(session)
        finally:
            disk.empty()
        return True

    return fault


def fail_below(name: str) -> Fault:
    """EIO from below one of the disks: each write to new blocks, whoever made it, its writeback too."""

    def fault(session: Session) -> bool:
        if (disk := session.ground.disks.get(name)) is None:
            return False
        session.note_committed()
        try:
            disk.fail()
            a_while(session)
        finally:
            disk.mend()
        return True

    return fault


def cut_power(session: Session) -> bool:
    """Power of the whole machine: all disks lose what was not synced, and all of tare's processes are gone.

    What the store has at that moment was committed, and so synced.
    """
    if not {"store", "home"} <= set(session.ground.disks):
        return False
    session.note_committed()
    for disk in session.ground.disks.values():
        disk.lose_power()
    return session.signal([session.pid, *session.others(), *session.ground.processes()], signal.SIGKILL)


def calls_fail(whose: str, calls: str, error: str) -> Fault:
    """System calls of tare, or of a part, that return an error: strace(1) injects it.

    It struck where at least one call was made meanwhile, and failed.
    """

    def fault(session: Session) -> bool:
        pids = [session.pid] if whose == "tare" else session.part(whose)
        if not pids or shutil.which("strace") is None or session.phase() == "starting":
            return False  # of an interpreter that cannot load its modules there is nothing to learn
        with tempfile.NamedTemporaryFile() as calls_made:
            argv = ["strace", "--follow-forks", "-qqq", f"--output={calls_made.name}", f"--trace={calls}"]
            argv += [f"--inject={calls}:error={error}", *(f"--attach={pid}" for pid in pids)]
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as strace:
                try:
                    a_while(session)
                finally:
                    strace.send_signal(signal.SIGINT)  # lets go of what it has attached to
                    try:
                        strace.wait(20.0)
                    except subprocess.TimeoutExpired:
                        strace.kill()
            return b"(INJECTED)" in calls_made.read()

    return fault


@contextmanager
def limited(session: Session, kind: int, most: int) -> Iterator[None]:
    """Of tare's process, while this lasts."""
    before = resource.prlimit(session.pid, kind)
    resource.prlimit(session.pid, kind, (min(most, before[1]) if before[1] >= 0 else most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(session.pid, kind, before)


def few_files(session: Session) -> bool:
    """Tare can open no further file: EMFILE."""
    with (
        suppress(ProcessLookupError, PermissionError),
        limited(session, resource.RLIMIT_NOFILE, session.chance.randrange(3, 12)),
    ):
        a_while(session)
        return True
    return False


def short_files(session: Session) -> bool:
    """Tare's writes end short in files beyond some kilobytes, with EFBIG."""
    with (
        suppress(ProcessLookupError, PermissionError),
        limited(session, resource.RLIMIT_FSIZE, session.chance.randrange(0, 60_000)),
    ):
        a_while(session)
        return True
    return False


def no_processes(session: Session) -> bool:
    """Tare can start no process and no thread: EAGAIN by the pids controller, which holds for root too."""
    group = session.ground.group.pids
    if group is None:
        return False
    limit = group / "pids.max"
    try:
        limit.write_text((group / "pids.current").read_text())
        a_while(session)
    finally:
        limit.write_text("max")
    return True


def out_of_memory(session: Session) -> bool:
    """Tare's control group is out of memory: the kernel kills in it, and spares who took it all."""
    group = session.ground.group.memory
    return group is not None and exhaust(group)


def exhaust(group: Path) -> bool:
    """Fill a memory group to a limit just above what it uses, by a process that the kernel may not choose.

    It struck where the kernel killed a process meanwhile.
    """
    killed = oom_kills(LocalHost())
    used, limit = (group / name for name in ("memory.usage_in_bytes", "memory.limit_in_bytes"))
    if not used.exists():
        used, limit = group / "memory.current", group / "memory.max"
    try:
        before, most = limit.read_text().strip(), int(used.read_text()) + (24 << 20)
        limit.write_text(str(min(most, int(before)) if before.isdecimal() else most))
    except (OSError, ValueError):
        return False
    script = 'echo -1000 >/proc/self/oom_score_adj; echo $$ >"$1"; shift; exec "$@"'
    hog = [sys.executable, "-I", "-S", "-c", _HOG, str(256 << 20)]
    try:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["sh", "-c", script, "sh", str(group / "cgroup.procs"), *hog],
                capture_output=True, timeout=3.0, check=False,
            )  # fmt: skip
    finally:
        with suppress(OSError):
            limit.write_text("-1" if limit.name == "memory.limit_in_bytes" and int(before) >= 1 << 60 else before)
    return oom_kills(LocalHost()) != killed


def step_clock(session: Session) -> bool:
    """The wall clock of tare and of its programs steps by an hour, on or back, and later again."""
    file = session.env.get(clock.FILE)
    if file is None:
        return False
    for seconds in (session.chance.choice((-_HOUR_S, _HOUR_S)), session.chance.choice((-_HOUR_S, 0, _HOUR_S))):
        clock.step(Path(file), seconds)
        a_while(session)
    return True


def second_tare(session: Session) -> bool:
    """Another tare on the same store, at the same time: it must be refused, or the first is over by then."""
    code = _must_end(session, session.command, session.env, ENDED_BY_TARE)
    if code in _LET_IN:
        with suppress(subprocess.TimeoutExpired):
            session.tare.wait(_OVER_S)
            return True
        raise AssertionError(f"a second tare on the store of one at work was let in, and ended with {code}")
    return True


def another_home(session: Session) -> bool:
    """Another tare with a home of its own, on a store of its own, at the same time: neither knows of the other."""
    return _beside(session)


def another_user(session: Session) -> bool:
    """The same of a user who is not root."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    return _beside(session, _NOBODY)


def _beside(session: Session, user: str | None = None) -> bool:
    """Its images, and its kernel of virtual machines, are copies of the first home's. `user`: who runs it."""
    prefix = () if user is None else ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--")
    where = session.place / "home" if "home" in session.ground.disks else session.place
    place = where / f"beside-{len(session.played)}-{session.pid}"
    place.mkdir()
    words, at = list(session.command), session.command.index("--store")
    words[at + 1] = str(place / "store")
    try:
        make_home(place / "home")
        if (images := session.place / "home" / "images").is_dir():
            (place / "home" / "images").mkdir()
            ready = [str(path) for path in images.iterdir() if not path.name.startswith(".")]
            subprocess.run(["cp", "-a", *ready, str(place / "home" / "images")], check=True, timeout=60)
        if (kernel := session.place / "home" / "machines" / "kernel").is_dir():
            (place / "home" / "machines").mkdir()
            subprocess.run(["cp", "-a", str(kernel), str(place / "home" / "machines")], check=True, timeout=60)
        if user is not None:
            subprocess.run(["chown", "-R", f"{user}:{user}", str(place)], check=True, timeout=60)
        env = {**session.env, "TARE_HOME": str(place / "home"), "HOME": str(place)}
        _must_end(session, [*prefix, *words, "--blocks", "1"], env, {0})
        if left := _noted(place / "home", place):
            raise AssertionError(f"a second tare left in its ledger: {', '.join(left)}")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return True


def _noted(home: Path, scratch: Path) -> list[str]:
    """What a ledger has, read from a copy: tare opens none of another user's."""
    copy = Layout(scratch / "copy").ledger
    copy.parent.mkdir()
    for file in home.glob(f"{copy.name}*"):
        shutil.copy(file, copy.parent)
    return [str(entry) for entry in SqliteLedger(copy).entries() if not entry.keep]


def _must_end(session: Session, words: Sequence[str], env: Mapping[str, str], codes: set[int]) -> int:
    """The code that it ended with, one of these."""
    with session.ground.start(words, subprocess.PIPE, env) as beside:
        pid = session.ground.pid(beside)
        try:
            stderr = output_of(beside, pid, session.beside_s)
        except (AssertionError, BrokenOff):
            session.signal([pid], signal.SIGKILL)
            raise
    if beside.returncode not in codes or b"Traceback" in stderr:
        raise AssertionError(f"a second tare ended with {beside.returncode}: {stderr.decode()[-400:]}")
    return beside.returncode


def output_of(beside: subprocess.Popen[bytes], pid: int, within_s: float = SESSION_S) -> bytes:
    """Its output, once it has ended: within so many seconds in which it had a CPU or wanted none.

    Raises `BrokenOff` where it had to wait for a CPU longer than that.
    """
    began, waited_s = time.monotonic(), 0.0
    while (left_s := began + within_s + waited_s - time.monotonic()) > 0:
        try:
            return beside.communicate(timeout=left_s)[1]
        except subprocess.TimeoutExpired:
            waited_s = without_cpu_s(pid)
        if waited_s > within_s:
            raise BrokenOff(f"this machine is too busy: a second tare waited {waited_s:.0f} s for a CPU")
    at = text(f"/proc/{pid}/wchan") or "nothing"
    raise AssertionError(
        f"a second tare did not end within {within_s:g} s in which it had a CPU; it waits for {at}"
    )


def without_cpu_s(pid: int) -> float:
    """How long a process was ready to run and did not (proc(5), schedstat); 0 where nobody counts."""
    counts = text(f"/proc/{pid}/schedstat").split()
    return int(counts[1]) / 1e9 if len(counts) > 1 else 0.0


FAULTS: Mapping[str, Fault] = {
    "kill -9 tare": kill_tare,
    "SIGTERM of tare": end_tare,
    "kill -9 a process of tare's": kill_other,
    "SIGSTOP of tare": stop_tare,
    "SIGSTOP of a process of tare's": stop_other,
    "no room for the store": fill("store"),
    "EIO below the store": fail_below("store"),
    POWER_CUT: cut_power,
    "EIO in tare's fsync": calls_fail("tare", "fsync,fdatasync", "EIO"),
    "EIO in tare's database": calls_fail("tare", "pwrite64,pread64", "EIO"),
    "no more open files": few_files,
    "open fails in tare": calls_fail("tare", "openat", "ENFILE"),
    "short writes": short_files,
    "no more processes": no_processes,
    "fork fails in tare": calls_fail("tare", "clone,clone3,fork,vfork", "EAGAIN"),
    "out of memory: tare": out_of_memory,
    "clock of tare's stepped by 1 h": step_clock,
    "a second tare": second_tare,
    "another home's tare": another_home,
    "another user's tare": another_user,
}
"""On fakes and on real studies."""


def named(faults: Mapping[str, Fault], words: Sequence[str]) -> Mapping[str, Fault]:
    """Those with any of these words in their names; all without words. Ends the call where none has."""
    chosen = {name: fault for name, fault in faults.items() if not words or any(word in name for word in words)}
    if not chosen:
        raise SystemExit(f"no fault has {' or '.join(words)} in its name: {', '.join(faults)}")
    return chosen
