"""Build machines as tare's users have them, and try tare on each (root, some gigabytes, two CPUs).

    python -m tools.machines build [--machines DIR] [SUITE...]
    python -m tools.machines test [--machines DIR] [--only WORDS] [SUITE...]

`build` keeps a kernel and one disk a suite, and makes them again when the script that made them has changed. `test`
installs the wheel of dist/ there, tries every account and engine, and writes docs/reference/tested-on.md. A machine
is ended after its trials, whatever they show; the exit code is 1 if any failed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.machines.matrix import Seen, engine_of, merged, page, parse, text

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE, LEDGER = ROOT / "docs/reference/tested-on.md", ROOT / "docs/reference/tested-on.jsonl"
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13", "testing": "Debian testing"}
IMAGES = ("redis-7", "tare-load")
SETTINGS = (
    "image-store", "userns-remap", "live-restore", "data-root", "log-driver", "ulimits", "no-proxy", "cgroupfs",
)  # fmt: skip
"""Settings of dockerd that trial.sh knows: with each one, setting.yaml."""
TRIALS = (
    ("root", "doctor"),
    ("root", "study root.yaml"),
    ("root", "study engine.yaml"),
    *(("root", f"setting {name}") for name in SETTINGS),
    ("root", "resume user.yaml"),
    ("root", "resume root.yaml"),
    ("root", "clean"),
    ("docker", "doctor"),
    ("docker", "init"),
    ("docker", "study user.yaml"),
    ("docker", "resume user.yaml"),
    ("docker", "clean"),
    ("plain", "doctor"),
    ("plain", "init"),
    ("plain", "study rootless.yaml"),
    ("plain", "clean"),
)
"""Account and trial of trial.sh, in this order."""
_BUILD_S, _CALL_S, _TRIAL_S = 7200, 900, 1800


def build(machines: Path, suites: Sequence[str]) -> None:
    """Make the kernel and the disks that are missing or were made by another script."""
    _made(machines / "kernel", "linux", ["kernel.sh", str(machines / "kernel")], ["kernel.sh", "kernel.config"])
    for suite in suites:
        _made(machines / suite, "disk.img", ["image.sh", str(machines / suite), suite], ["image.sh"])


def _made(place: Path, product: str, argv: Sequence[str], sources: Sequence[str]) -> None:
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in sources)).hexdigest()
    mark = place / "made-by"
    if (place / product).exists() and mark.exists() and mark.read_text() == digest:
        return
    subprocess.run([str(HERE / argv[0]), *argv[1:]], check=True, timeout=_BUILD_S)
    mark.write_text(digest)


def prepare(machines: Path) -> tuple[Path, Path]:
    """The wheel of dist/ and an archive of the prepared images."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit("tare: dist/ must hold one wheel: make release")
    home, archive = machines / "home", machines / "images.tar"
    for image in IMAGES:
        subprocess.run(
            [sys.executable, "-m", "tare", "images", "build", image],
            env={**os.environ, "TARE_HOME": str(home)},
            check=True,
            timeout=_BUILD_S,
        )
    subprocess.run(
        ["tar", "--numeric-owner", "-C", str(home), "-cf", str(archive), "images"], check=True, timeout=_CALL_S
    )
    return wheels[0], archive


class Guest:
    """One machine while it runs."""

    def __init__(self, place: Path) -> None:
        self._place, self._name = place, f"tare-{place.name}"

    def do(self, verb: str, *words: str, limit_s: int = _CALL_S) -> subprocess.CompletedProcess[str]:
        """Run guest.sh and return its output."""
        argv = [str(HERE / "guest.sh"), verb, str(self._place), self._name, *words]
        kernel = {"KERNEL": str(self._place.parent / "kernel" / "linux")}
        return subprocess.run(
            argv, env={**os.environ, **kernel}, capture_output=True, text=True, check=False, timeout=limit_s
        )

    def must(self, verb: str, *words: str) -> str:
        """As `do`; a failure ends the trials."""
        done = self.do(verb, *words)
        if done.returncode != 0:
            raise SystemExit(f"tare: {verb} of {self._name} failed: {(done.stderr or done.stdout).strip()[-800:]}")
        return done.stdout


def trials(guest: Guest, suite: str, today: str, only: str) -> Iterator[Seen]:
    """Try everything on a machine that runs, or what begins with `only`."""
    script = "/srv/trial.sh"
    guest.must("run", "root", script, "install")
    found = json.loads(guest.must("run", "root", script, "facts"))
    guest.must("run", "root", script, "images")
    for account, words in TRIALS:
        if not words.startswith(only):
            continue
        done = guest.do("run", account, script, *words.split(), limit_s=_TRIAL_S)
        last = (done.stdout.strip() or done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        for tried, result in results(words, done.returncode, last).items():
            arm = tried.partition(", arm ")[2] or ("rootless" if account == "plain" else "docker")
            engine = engine_of(repeated(arm, words), found)
            yield Seen(
                SUITES[suite], f"{found['kernel']} (UML)", found["systemd"], found["driver"], found["python"],
                account, tried, engine, result, today,
            )  # fmt: skip


def results(words: str, code: int, last: str) -> Mapping[str, str]:
    """What was tried → what was seen, from the exit code and the last line of a trial.

    The end of each arm counts even if Docker did not come back with its usual settings afterwards.
    """
    if last.startswith("{"):
        return {f"{title(words)}, arm {arm}": end for arm, end in json.loads(last).items()}
    return {words: last if words.startswith("doctor") or code != 0 else "works"}


def repeated(arm: str, words: str) -> str:
    """The arm that the control of a trial's study repeats; any other arm is itself."""
    if arm != "baseline-again":
        return arm
    study = (HERE / words.rpartition(" ")[2]).read_text()
    return study.partition("\nbaseline: ")[2].split()[0]


def title(words: str) -> str:
    """A trial of several arms as a row names it: `study`, `storages`, `resume engines`, `dockerd userns-remap`."""
    verb, _, what = words.partition(" ")
    if verb == "setting":
        return f"dockerd {what}"
    if what == "engine.yaml":
        return "storages"
    return "resume engines" if words == "resume root.yaml" else verb


def keep(seen: Seen) -> None:
    """Add a trial to the ledger and write the page anew."""
    everything = merged(parse(LEDGER.read_text()) if LEDGER.exists() else [], [seen])
    LEDGER.write_text(text(everything))
    PAGE.write_text(page(everything))


def test(machines: Path, suites: Sequence[str], only: str) -> int:
    """Boot each machine, try everything, write the page; 1 if any trial failed."""
    wheel, images = prepare(machines)
    files = [str(HERE / "trial.sh"), *map(str, sorted(HERE.glob("*.yaml")))]
    today, failed = datetime.datetime.now(tz=datetime.UTC).date().isoformat(), 0
    for suite in suites:
        guest = Guest(machines / suite)
        try:
            guest.must("up")
            guest.must("put", *files, str(wheel), str(images))
            for seen in trials(guest, suite, today, only):
                print(seen.distribution, seen.account, seen.tried, seen.result, sep=": ", flush=True)
                keep(seen)
                failed += seen.result != "works" and not seen.tried.startswith("doctor")
        finally:
            guest.do("down")
    return min(failed, 1)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("build", "test"))
    parser.add_argument("suites", nargs="*", default=list(SUITES), metavar="SUITE")
    parser.add_argument("--machines", type=Path, default=ROOT / "build/machines")
    parser.add_argument("--only", default="", metavar="WORDS", help="trials whose words begin so: setting")
    given = parser.parse_args()
    if given.verb == "build":
        build(given.machines.resolve(), given.suites)
        return 0
    return test(given.machines.resolve(), given.suites, given.only)


if __name__ == "__main__":
    sys.exit(main())
