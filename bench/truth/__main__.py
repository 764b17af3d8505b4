"""Comparisons whose truth is known, on a real machine, night after night; and what they prove so far.

    python -m bench.truth --hours 8 [--only redis] [--sites sites.yaml] [--ledger FILE]
    python -m bench.truth --show [--merge FILE]... [--page FILE --chart FILE]

Ordinary studies of identical servers and of known effects, of every protocol, database and path, taking turns
($TARE_HOME/truth). Each comparison becomes a line of the ledger once its study has ended; a study that is broken
off is gone on with. Needs root and a container engine; `--show` needs neither.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.truth.figures import proved
from bench.truth.ledger import Comparison, add, read
from bench.truth.page import chart, tables, within
from bench.truth.studies import CELLS, KINDS, ON_SITES
from tare.calibrate.archive import Archive, Place
from tare.calibrate.identify import identity_here
from tare.calibrate.outcome import ContrastResult
from tare.calibrate.session import Session, calibrate, next_place
from tare.calibrate.summary import Identity, identity_of_run
from tare.cli.study.progress import progress
from tare.cli.study.running import run_plan
from tare.errors import TareError
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.run.clock import Deadline, SystemClock
from tare.run.events import Observer
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import Engine, local_engine, local_machine
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.file import SiteSpec, load_sites
from tare.sites.layout import Layout, default_layout
from tare.store import Store, open_store
from tare.version import __version__

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "docs" / "truth" / "ledger.jsonl"
_GIT_S = 10.0


@dataclass(frozen=True)
class Night:
    """`kinds`: those that take turns. `sites`: where those of several sites are run."""

    archive: Archive
    identity: Identity
    kinds: Sequence[str]
    ledger: Path
    sites: Sequence[SiteSpec]


def run(night: Night, engine: Engine, layout: Layout, hours: float) -> None:
    """Study after study until the time is up; the one under way is gone on with by the next call.

    A kind that this machine cannot run, or whose runs are not alike, is left out for the rest of the night, aloud.
    """
    interrupts, clock = Interrupts(), SystemClock()
    deadline, left = Deadline(clock, 3600 * hours), list(night.kinds)

    def machine(plan: Plan, references: References) -> Machine:
        return replace(local_machine(plan, engine, interrupts, layout), references=references)

    @contextmanager
    def watch(place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        del place  # told before
        with progress(plan, done, quiet=False) as observer:
            yield observer

    write_down(night)
    began = clock.monotonic()
    while left and not deadline.passed:
        place = next_place(night.archive, night.identity, left)
        minutes = max(0.0, 60 * hours - (clock.monotonic() - began) / 60)
        sys.stderr.write(f"bench.truth: {place.path.name}, {minutes:.0f} minutes left\n")
        try:
            if CELLS[place.kind].protocol == ON_SITES:
                _on_sites(night, place)
            else:
                with interrupts.installed():
                    session = Session(night.archive, night.identity, [place.kind], machine, watch, clock)
                    calibrate(session, minutes, studies=1)
        except Interrupted as interrupted:
            sys.stderr.write(f"bench.truth: broken off by {interrupted}; every finished run is kept\n")
            return
        except TareError as error:
            sys.stderr.write(f"bench.truth: {place.kind} is left out: {error}\n")
            left.remove(place.kind)
        finally:
            write_down(night)


def _on_sites(night: Night, place: Place) -> None:
    """A whole study on all sites at once, as `tare run --sites` makes it."""
    place.path.parent.mkdir(parents=True, exist_ok=True)
    plan = expand(KINDS[place.kind].make(place.number))
    with run_plan(plan, place.path, quiet=False, sites=night.sites):
        pass


def write_down(night: Night) -> int:
    """Add all comparisons of ended studies that the ledger does not hold; how many those were.

    A study may be there in part, where a crash cut its last line off.
    """
    known = read([night.ledger]).keys
    new: list[Comparison] = []
    for place in night.archive.places(night.identity):
        result = night.archive.studied(place)
        store = None if result is None else open_store(place.path)
        if result is not None and store is not None:
            left = (each for each in result.observed if (store.id, each.arm) not in known)
            new += [_comparison(place, store, each) for each in left]
    return add(night.ledger, new)


def _comparison(place: Place, store: Store, seen: ContrastResult) -> Comparison:
    cell, last = CELLS[place.kind], store.records()[-1]
    identity = identity_of_run(last)
    ended = max(phase.began_at + phase.seconds for phase in last.phases)
    load, cpus = last.host.load_1min, identity.cpu_count
    return Comparison(
        store=store.id,
        at=round(ended, 3),
        tare=__version__,
        commit=commit(),
        machine=identity.machine_key,
        versions=identity.versions_key,
        cpu_model=identity.cpu_model,
        cpus=cpus,
        kernel=identity.kernel,
        engine=identity.engine,
        engine_version=identity.engine_version,
        load=None if load is None or not cpus else round(load / cpus, 3),
        protocol=cell.protocol,
        database=cell.database,
        path=cell.path,
        seed=place.number,
        arm=seen.arm,
        injected=seen.injection,
        truth=seen.truth,
        n=seen.n,
        point=seen.point,
        low=seen.low,
        high=seen.high,
        run_s=seen.run_s,
    )


def commit() -> str | None:
    """Of this checkout; `None` where it is none, or git is not there."""
    try:
        argv = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=_GIT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def chosen_kinds(only: Sequence[str], *, sites: bool) -> list[str]:
    """Whose names have each of `only`, or a part of it between bars; those of `sites` if there are sites."""
    possible = [name for name, cell in CELLS.items() if sites or cell.protocol != ON_SITES]
    return [name for name in possible if all(any(part in name for part in word.split("|")) for word in only)]


def main() -> None:
    """Measure, add, sum up."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--hours", type=float, default=8.0, help="begin no run after so long")
    options.add_argument(
        "--only", nargs="*", default=[], help="kinds with each of these words in their names; `a|b`: either"
    )
    options.add_argument("--sites", type=Path, help="sites file, on which the protocol `sites` is run")
    options.add_argument("--ledger", type=Path, default=LEDGER)
    options.add_argument("--show", action="store_true", help="run nothing")
    options.add_argument("--merge", type=Path, nargs="*", default=[], help="ledgers of other machines, to be added")
    options.add_argument("--page", type=Path, help="write the tables into this page")
    options.add_argument("--chart", type=Path, help="write the chart here, SVG")
    chosen = options.parse_args()
    try:
        if chosen.merge:
            print(f"{add(chosen.ledger, read(chosen.merge).comparisons)} comparisons added")
        if not chosen.show:
            _measure(chosen)
    except (TareError, OSError) as error:
        sys.exit(f"bench.truth: {error}")
    ledger = read([chosen.ledger])
    known = proved(ledger.comparisons, ledger.torn)
    print(tables(known))
    if chosen.page:
        chosen.page.write_text(within(chosen.page.read_text(encoding="utf-8"), known), encoding="utf-8")
    if chosen.chart:
        chosen.chart.parent.mkdir(parents=True, exist_ok=True)
        chosen.chart.write_text(chart(known), encoding="utf-8")


def _measure(chosen: argparse.Namespace) -> None:
    layout = default_layout()
    sites = load_sites(chosen.sites).sites if chosen.sites else ()
    kinds = chosen_kinds(chosen.only, sites=len(sites) > 1)
    if not kinds:
        sys.exit(f"bench.truth: no kind has {' and '.join(chosen.only)} in its name; they are {', '.join(CELLS)}")
    with local_engine() as engine:
        identity = identity_here(engine.client, layout)
        night = Night(Archive(layout.home / "truth", KINDS), identity, kinds, chosen.ledger, sites)
        run(night, engine, layout, chosen.hours)


if __name__ == "__main__":
    main()
