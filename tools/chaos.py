"""Play faults at random moments of real studies, and show that nothing is lost, doubled, left behind or touched.

    python -m tools.chaos --faults 50 --seed 1                     # a study of fakes: no root, no engine
    python -m tools.chaos --study percona-2016 --scale demo ...    # a real one: root and an engine

A session is one `tare run`; it meets up to three faults and is then killed or left to end. The next goes on with
the same store. With root, stores lie on a small file system, which one of the faults fills. Exit code 0 if all
held; the seed that is printed first plays the same faults again, at the same moments of a session.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tare.sites.layout import Layout
from tools.kill_nine import Trial, left_behind

ROOT = Path(__file__).resolve().parents[1]
FAKES = (sys.executable, str(ROOT / "tests" / "integration" / "runs" / "tare_with_fakes.py"))
STUDY = """
format: 1
name: chaos
question: Do the fakes survive?
sut: {image: "tar:/nowhere", database: fake, deployment: fake}
client: {image: "tar:/nowhere", deployment: fake}
workload: {name: fake, measure_s: 0.4, window_s: 0.1}
protocol: {name: fixed, blocks: 4, retries: 500, seed: 1, control: false}
factors:
  delay:
    sets: [sut.settings.delay_ms]
    levels:
      short: {}
      long: {sut.settings.delay_ms: 3}
baseline: short
"""
_SIZE = "64m"
_LONGEST_S = 3.0
_SESSION_S = 300.0
_ENDED_BY_TARE = {0, 1, 2, 3}
"""Exit codes that a fault may lead to: fine, a run failed, a store or a machine that could not do it."""


@dataclass
class Session:
    """One `tare run` under way. `place`: where all lies that it makes, the store in `disk` there."""

    tare: subprocess.Popen[bytes]
    command: Sequence[str]
    place: Path
    chance: Random
    env: Mapping[str, str]

    def others(self) -> list[int]:
        """Processes below tare's own: servers, clients, monitors, helpers."""
        parents = {int(pid): ppid for pid, ppid in _parents()}
        others, todo = [], [self.tare.pid]
        while todo:
            parent = todo.pop()
            below = [pid for pid, ppid in parents.items() if ppid == parent]
            others += below
            todo += below
        marked = f"{self.place}/".encode()
        ours = {self.tare.pid, os.getpid()}
        return [pid for pid in parents if pid not in ours and (pid in others or marked in _line(pid))]


def _parents() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                yield int(entry.name), int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill_tare(session: Session) -> None:
    """SIGKILL of tare."""
    session.tare.kill()


def end_tare(session: Session) -> None:
    """SIGTERM of tare, which then tears down."""
    session.tare.terminate()


def kill_other(session: Session) -> None:
    """SIGKILL of a process that tare started."""
    if others := session.others():
        with suppress(ProcessLookupError):
            os.kill(session.chance.choice(others), signal.SIGKILL)


def _halt(session: Session, pids: Sequence[int]) -> None:
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(session.chance.uniform(0.2, 2.0))


def stop_tare(session: Session) -> None:
    """SIGSTOP of tare for up to 2 s."""
    _halt(session, [session.tare.pid])


def stop_other(session: Session) -> None:
    """SIGSTOP of a process that tare started."""
    if others := session.others():
        _halt(session, [session.chance.choice(others)])


def fill_disk(session: Session) -> None:
    """No room under the store for up to 2 s."""
    disk = session.place / "disk"
    if not os.path.ismount(disk):
        return
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()
    time.sleep(session.chance.uniform(0.2, 2.0))
    filler.unlink(missing_ok=True)


def _limit(session: Session, kind: int, most: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        before = resource.prlimit(session.tare.pid, kind)
        resource.prlimit(session.tare.pid, kind, (min(most, before[1]) if before[1] >= 0 else most, before[1]))
        time.sleep(session.chance.uniform(0.2, 2.0))
        resource.prlimit(session.tare.pid, kind, before)


def few_files(session: Session) -> None:
    """Tare can open no further file for up to 2 s."""
    _limit(session, resource.RLIMIT_NOFILE, session.chance.randrange(3, 12))


def short_files(session: Session) -> None:
    """Tare's writes end short in files beyond some kilobytes, with EFBIG."""
    _limit(session, resource.RLIMIT_FSIZE, session.chance.randrange(0, 60_000))


def second_tare(session: Session) -> None:
    """Another tare on the same store, at the same time: it must be refused, or the first is over by then."""
    done = subprocess.run(session.command, env=session.env, capture_output=True, timeout=_SESSION_S, check=False)
    if done.returncode not in _ENDED_BY_TARE or b"Traceback" in done.stderr:
        raise AssertionError(f"a second tare ended with {done.returncode}: {done.stderr.decode()[-300:]}")


FAULTS: Mapping[str, Callable[[Session], None]] = {
    "kill -9 tare": kill_tare,
    "end tare": end_tare,
    "kill -9 a process of tare's": kill_other,
    "stop tare": stop_tare,
    "stop a process of tare's": stop_other,
    "fill the disk": fill_disk,
    "no more open files": few_files,
    "short writes": short_files,
    "a second tare": second_tare,
}


@dataclass
class Canaries:
    """What other programs have on the machine, which no fault and no clearing up may touch."""

    directory: Path
    process: subprocess.Popen[bytes] = field(init=False)
    before: str = field(init=False)

    def __post_init__(self) -> None:
        (self.directory / "tare").mkdir(parents=True)
        (self.directory / "tare" / "store.sqlite").write_bytes(b"not tare's")
        (self.directory / "link").symlink_to("tare")
        self.process = subprocess.Popen(["sleep", "100000"], start_new_session=True)
        self.before = self._listing()

    def _listing(self) -> str:
        paths = sorted(self.directory.rglob("*"))
        answers = [
            (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, path.is_file() and path.read_bytes())
            for path in paths
        ]
        return hashlib.sha256(repr(answers).encode()).hexdigest()

    def problems(self) -> list[str]:
        """What was touched."""
        problems = [] if self.process.poll() is None else ["a process of somebody else's was ended"]
        return problems if self._listing() == self.before else [*problems, "files of somebody else's were changed"]


@dataclass
class Chaos(Trial):
    """Faults instead of kills. `place`: where stores and home are."""

    place: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, Callable[[Session], None]] = field(default_factory=lambda: FAULTS)
    played: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)

    def session(self, faults: int) -> bool:
        """One `tare run` with up to so many faults; `False` where it came to its end."""
        command = [*self.command, "--store", str(self.store)]
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=output) as tare:
                under_way = Session(tare, command, self.place, self.rng, self.env)
                code = self._faults(under_way, faults)
            output.seek(0)
            words = output.read().decode(errors="replace")
        self.ends["killed" if code is None or code < 0 else str(code)] += 1
        if "Traceback (most recent call last)" in words and not _in_wrapper(words):
            self.problems.append(f"a traceback: {words[-1500:]}")
        if code is not None and code >= 0 and code not in _ENDED_BY_TARE | {130, 143}:
            self.problems.append(f"tare run ended with {code}: {words[-300:]}")
        self.look()
        return code != 0

    def _faults(self, session: Session, most: int) -> int | None:
        for _ in range(most):
            with suppress(subprocess.TimeoutExpired):
                return session.tare.wait(self.rng.uniform(0.0, self.longest_s))
            name = self.rng.choice(sorted(self.faults))
            self.played[name] += 1
            try:
                self.faults[name](session)
            except AssertionError as error:
                self.problems.append(str(error))
        try:
            return session.tare.wait(_SESSION_S if self.rng.random() < 0.3 else self.rng.uniform(0, self.longest_s))
        except subprocess.TimeoutExpired:
            session.tare.kill()
            self.played["kill -9 tare"] += 1
            return None

    def finish(self) -> None:
        """Run the study to its end undisturbed, and look at everything."""
        for _ in range(5):  # a run that failed for good in a session is told by it, and made good by no later one
            command = [*self.command, "--store", str(self.store)]
            done = subprocess.run(command, env=self.env, capture_output=True, timeout=1800, check=False)
            if done.returncode == 0:
                break
        if done.returncode != 0:
            self.problems.append(f"the last tare run ended with {done.returncode}: {done.stderr.decode()[-400:]}")
        if self.problems:
            return
        self.look()
        self.check_store()
        failed = [record for record in self.opened().records() if not record.outcome.ok]
        self.problems += [
            f"{record.run_id} failed without a reason" for record in failed if not record.outcome.reason
        ]
        self.problems += self.left()

    def left(self) -> list[str]:
        """What is still there that should be gone."""
        return list(left_behind(self.opened(), self.layout))


def _in_wrapper(words: str) -> bool:
    """Whether the fakes' wrapper was hit while it was still loading modules, which the command itself guards."""
    return "tare_with_fakes.py" in words and "cli.main()" not in words and "exec_module" in words


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system of its own, where root may make one."""
    place.mkdir(parents=True, exist_ok=True)
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tare-chaos", str(place)],
            check=False,
            capture_output=True,
        ).returncode
    )
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=False)


def main() -> int:
    """Play the faults; counts go to stdout as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--study", help="In place of the fakes; needs what it needs.")
    parser.add_argument("--scale", default="demo", help="Of that study.")
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}\n")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tare-chaos-") as scratch:
        place = Path(scratch)
        with small_disk(place / "disk"):
            trial = _trial(given, place)
            canaries = Canaries(Path(scratch, "canaries"))
            try:
                play(trial, canaries, given.faults)
            finally:
                canaries.process.kill()
                canaries.process.wait()
    summary = {
        "faults": trial.played.total(), "violations": len(trial.problems), "stores": trial.number,
        "seconds": round(time.monotonic() - began), "played": trial.played, "sessions": trial.ends,
        "seed": given.seed,
    }  # fmt: skip
    sys.stderr.write("".join(f"VIOLATION: {problem}\n" for problem in trial.problems))
    print(json.dumps(summary, indent=1))
    return 1 if trial.problems else 0


def _trial(given: argparse.Namespace, place: Path) -> Chaos:
    env = {**os.environ, "TARE_HOME": str(place / "home"), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    if given.study is None:
        (place / "study.yaml").write_text(STUDY)
        command = [*FAKES, "run", str(place / "study.yaml"), "--quiet"]
        os.environ["DOCKER_HOST"] = env["DOCKER_HOST"] = "unix:///nonexistent"
    else:
        command = [sys.executable, "-m", "tare", "run", given.study, "--scale", given.scale, "--quiet"]
    layout = Layout(place / "home")
    return Chaos(
        command, place / "disk" / "stores", Random(given.seed), _LONGEST_S, layout=layout, place=place, env=env
    )


def play(trial: Chaos, canaries: Canaries, faults: int) -> None:
    """Session by session, until so many faults were played or one shows something; then the study to its end."""
    trial.stores.mkdir()
    while trial.played.total() < faults and not trial.problems:
        under_way = trial.session(min(3, faults - trial.played.total()))
        trial.problems += canaries.problems()
        if not under_way and not trial.problems:
            trial.next_store()
    if not trial.problems:
        trial.finish()
        trial.problems += canaries.problems()


if __name__ == "__main__":
    sys.exit(main())
