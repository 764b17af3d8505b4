"""Kill tare and the processes of fake sites at random moments, and show that nothing is lost, doubled or left.

    python -m tools.chaos_fleet --kills 50 --seed 1 [--within 4]

Each session is one `tare run` on several sites; it meets up to three kills, and the next goes on with the same
store. tare's own process has the scheduler in it. Exit code 0 if all held; the seed that is printed first plays the
same kills again, at the same moments after a session's start or, in four of five, after its first site's. Where a
start takes longer than the kills are apart, nothing would ever be made: then more seconds with `--within`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.unit.run.fleet.fake_site import layout_of, swept

from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger
from tools.chaos.canaries import Canaries
from tools.chaos.faults import Fault, kill_tare
from tools.chaos.ground import FAKES, ROOT, Here
from tools.chaos.session import Session
from tools.chaos.studies import FAKES as STUDY
from tools.chaos.trial import Chaos, play

SITES = ("north", "south", "east")
LONGEST_S = 4.0
_SETTLED_S = 10.0
_STARTED_S = 120.0
_LATER = 0.8
"""Share of the sessions whose faults wait for a site."""


def sites_file(names: Sequence[str]) -> str:
    """Sites of two hosts each, which nobody connects to: their processes are fakes."""
    rows = [f"  - {{name: {name}, sut: {{ssh: {name}-a}}, client: {{ssh: {name}-b}}}}\n" for name in names]
    return f"format: 1\nsites:\n{''.join(rows)}"


def processes_of(place: Path, module: str = "") -> list[int]:
    """All processes that work for fake sites below `place`, or those that run `module`."""
    mark, found = f"FAKE_SITES={place}/".encode(), []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            ours = entry.name.isdecimal() and mark in (entry / "environ").read_bytes()
            if ours and module.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def _has_forked(place: Path) -> bool:
    """Whether the process that forks those of sites has done so."""
    return len(processes_of(place, "fake_site")) > 1


def kill_site(session: Session) -> bool:
    """SIGKILL of the process of a site, of this tare's or of one that was killed before."""
    return _kill_one(session, processes_of(session.place, "fake_site"))


def kill_below_site(session: Session) -> bool:
    """SIGKILL of a server or client on a site."""
    sites = {session.tare.pid, *processes_of(session.place, "fake_site")}
    return _kill_one(session, [pid for pid in processes_of(session.place) if pid not in sites])


def _kill_one(session: Session, pids: Sequence[int]) -> bool:
    return bool(pids) and session.signal([session.chance.choice(sorted(pids))], signal.SIGKILL)


KILLS: Mapping[str, Fault] = {
    "tare with its scheduler": kill_tare,
    "the process of a site": kill_site,
    "a process below a site": kill_below_site,
}


@dataclass
class FleetChaos(Chaos):
    """Kills of a fleet; what a killed process of a site left is removed by the next, or as by `tare clean`."""

    def _faults(self, session: Session, most: int) -> int | None:
        """As `Chaos`; most begin when a site is there, which takes a busy machine longer than faults are apart."""
        if self.rng.random() < _LATER:
            end = time.monotonic() + _STARTED_S
            while not _has_forked(self.place) and session.tare.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
        return super()._faults(session, most)

    def left(self) -> list[str]:
        """As `Chaos`, on each site."""
        left = super().left()
        for site in SITES:
            layout = layout_of(self.place / "sites", site)
            swept(layout)
            left += [f"{site}: {entry.kind} {entry.ident}" for entry in SqliteLedger(layout.ledger).entries()
                      if not entry.keep]  # fmt: skip
            left += [f"{site}: {path}" for path in layout.work.glob("*")]
        end = time.monotonic() + _SETTLED_S
        while (pids := processes_of(self.place)) and time.monotonic() < end:
            time.sleep(0.1)
        left += [f"process {pid}" for pid in pids]
        return [*left, *(f"staged: {path}" for path in (self.store / "staging").glob("*"))]

    def check_store(self) -> None:
        """As `Trial`; each block on one site."""
        super().check_store()
        places: dict[int, set[str | None]] = {}
        for record in self.opened().records():
            if record.outcome.ok:
                places.setdefault(record.block, set()).add(record.site)
        self.problems += [
            f"block {block} was made on {places[block]}" for block in places if len(places[block]) > 1
        ]


def main() -> int:
    """Kill; counts go to stdout as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.chaos_fleet", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--within", type=float, default=LONGEST_S, help="most seconds between kills (default: 4)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}\n")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tare-chaos-fleet-") as scratch:
        place = Path(scratch)
        trial = trial_in(place, given.seed, given.within)
        canaries = Canaries(place / "canaries")
        try:
            play(trial, canaries, given.kills)
        finally:
            canaries.end()
        runs = sum(len(list((path / "raw").iterdir())) for path in trial.stores.iterdir())
    summary = {
        "kills": trial.tally.faults, "violations": len(trial.problems), "stores": trial.number,
        "attempts kept": runs, "seconds": round(time.monotonic() - began), "played": trial.tally.kinds,
        "sessions": trial.tally.sessions, "seed": given.seed,
    }  # fmt: skip
    sys.stderr.write("".join(f"VIOLATION: {problem}\n" for problem in trial.problems))
    print(json.dumps(summary, indent=1))
    return 1 if trial.problems else 0


def trial_in(place: Path, seed: int, within_s: float) -> FleetChaos:
    """The study of `tools.chaos` on three fake sites."""
    (place / "disk").mkdir()
    (place / "study.yaml").write_text(STUDY.replace("blocks: 4", "blocks: 9"))
    (place / "sites.yaml").write_text(sites_file(SITES))
    env = {
        **os.environ, "TARE_HOME": str(place / "home"), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        "FAKE_SITES": str(place / "sites"), "DOCKER_HOST": "unix:///nonexistent",
    }  # fmt: skip
    os.environ["DOCKER_HOST"] = env["DOCKER_HOST"]
    command = [*FAKES, "run", str(place / "study.yaml"), "--sites", str(place / "sites.yaml"), "--quiet"]
    return FleetChaos(
        command,
        place / "disk" / "stores",
        Random(seed),
        within_s,
        layout=Layout(place / "home"),
        ground=Here(place, env=env),
        env=env,
        faults=KILLS,
    )


if __name__ == "__main__":
    sys.exit(main())
