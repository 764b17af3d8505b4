"""Kills of tare and of the processes of fake sites: `--study fleet`.

tare's own process has the scheduler in it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.unit.run.fleet.fake_site import layout_of, swept

from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger
from tools.chaos.faults import Fault, kill_tare, named
from tools.chaos.ground import FAKES, ROOT, Here
from tools.chaos.session import Session
from tools.chaos.studies import FAKES as STUDY
from tools.chaos.trial import Call, Chaos

SITES = ("north", "south", "east")
_LONGEST_S = 4.0
_SETTLED_S = 10.0


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
        """As `Stores`; each block on one site."""
        super().check_store()
        places: dict[int, set[str | None]] = {}
        for record in self.opened().records():
            if record.outcome.ok:
                places.setdefault(record.block, set()).add(record.site)
        self.problems += [
            f"block {block} was made on {places[block]}" for block in places if len(places[block]) > 1
        ]


def fleet_trial(call: Call) -> FleetChaos:
    """The study of fakes on three sites of fakes."""
    place = call.place
    (place / "disk").mkdir()
    (place / "study.yaml").write_text(STUDY.replace("blocks: 4", "blocks: 9"))
    (place / "sites.yaml").write_text(sites_file(SITES))
    env = {
        **os.environ, "TARE_HOME": str(place / "home"), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        "FAKE_SITES": str(place / "sites"),
    }  # fmt: skip
    return FleetChaos(
        [*FAKES, "run", str(place / "study.yaml"), "--sites", str(place / "sites.yaml"), "--quiet"],
        place / "disk" / "stores",
        call.chance,
        call.longest_s or _LONGEST_S,
        layout=Layout(place / "home"),
        ground=Here(place, env=env),
        env=env,
        faults=named(KILLS, call.kinds),
        there=lambda _: _has_forked(place),
        tally=call.tally,
    )
