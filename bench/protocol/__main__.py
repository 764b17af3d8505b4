"""What each protocol costs on this machine, and how often its interval is wrong.

    python -m bench.protocol --minutes 25 [--pools interleave rotate] [--json FILE] [--markdown FILE]
    python -m bench.protocol --show

Makes ordinary studies of identical servers and of one known effect under `interleave`, `rotate`, `fixed` (all runs
of an arm together; `buckets` judges the same runs) and `duet`, in turn, and adds them to those made before on this
machine ($TARE_HOME/bench-protocol/tare-load). An unfinished study is resumed. Measured and computed figures have
columns of their own. Needs root and a container engine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from bench.protocol.figures import figures
from bench.protocol.pools import POOLS
from bench.protocol.tables import markdown, show
from tare.calibrate.archive import Archive, Place
from tare.calibrate.session import Session, calibrate
from tare.calibrate.summary import Identity, identity_of
from tare.cli.study.progress import progress
from tare.errors import TareError
from tare.plan.model import Plan
from tare.run.clock import SystemClock
from tare.run.events import Observer
from tare.run.interrupts import Interrupted, Interrupts
from tare.run.local import Engine, local_engine, local_machine
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost


def make(  # noqa: PLR0913, PLR0917 - all that a session is made of
    archive: Archive, identity: Identity, engine: Engine, layout: Layout, minutes: float, pools: Sequence[str]
) -> None:
    """Add studies until the time is up; Ctrl-C ends it, and what is finished is kept."""
    interrupts = Interrupts()

    def machine(plan: Plan, references: References) -> Machine:
        return replace(local_machine(plan, engine, interrupts, layout), references=references)

    @contextmanager
    def watch(place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        sys.stderr.write(f"bench.protocol: study {place.number} of the pool {place.kind}\n")
        with progress(plan, done, quiet=False) as observer:
            yield observer

    session = Session(archive, identity, pools, machine, watch, SystemClock())
    try:
        with interrupts.installed():
            calibrate(session, minutes)
    except Interrupted as interrupted:
        sys.stderr.write(f"bench.protocol: broken off by {interrupted}; every finished run is kept\n")


def main() -> None:
    """Measure, add, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--minutes", type=float, default=25.0, help="begin no run after so long")
    options.add_argument("--pools", nargs="+", choices=POOLS, default=list(POOLS), help="make studies of these")
    options.add_argument("--show", action="store_true", help="only print what is known")
    options.add_argument("--json", type=Path, help="write the figures here too")
    options.add_argument("--markdown", type=Path, help="write the tables here too")
    chosen = options.parse_args()
    layout = default_layout()
    archive = Archive(layout.home / "bench-protocol" / "tare-load", POOLS)
    try:
        with local_engine() as engine:
            host = LocalHost()
            facts = None if engine.client is None else engine_facts(engine.client, host)
            identity = identity_of(host_facts(host, data_path=str(layout.home)), facts)
            if not chosen.show:
                make(archive, identity, engine, layout, chosen.minutes, chosen.pools)
        known = figures(archive, identity)
    except TareError as error:
        sys.exit(f"bench.protocol: {error}")
    show(known, Console(width=max(Console().width, 140)))  # narrower, its columns would be cut off
    for path in (chosen.json, chosen.markdown):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    if chosen.json:
        tree = {**asdict(known), "identity": identity.model_dump(mode="json")}
        chosen.json.write_text(json.dumps(tree, indent=2, default=_as_json) + "\n")
    if chosen.markdown:
        chosen.markdown.write_text(markdown(known))


def _as_json(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{value!r} is no figure")
    return dump(mode="json")


if __name__ == "__main__":
    main()
