"""A pair of hosts is calibrated over SSH as users do it: what is injected on one is seen from the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tare.calibrate.archive import Archive, Place
from tare.calibrate.identify import identity_between
from tare.calibrate.kinds import KINDS
from tare.calibrate.quote import quote_for
from tare.calibrate.session import Session, calibrate
from tare.calibrate.studies import DELAY_US, INJECTING
from tare.deployments.registry import DEPLOYMENTS
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.network_path import Hop
from tare.run.between.reaching import reached_site
from tare.run.clock import SystemClock
from tare.run.events import Observer
from tare.run.local import local_engine, local_machine
from tare.run.machine import Machine
from tare.run.parity.references import References
from tare.run.resume import StudyState
from tare.sites.file import load_sites
from tare.store import open_store
from tools import hosts
from tools.lab import TestHost

# A whole study of 24 runs, and both images on their way to the hosts.
pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_delay_on_the_server_s_host_is_seen_from_the_client_s(
    engine_pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    deployments = {**DEPLOYMENTS, **INJECTING}
    archive = Archive(tmp_path)
    spec = load_sites(engine_pair[0].lab.sites).chosen()

    @contextmanager
    def watch(place: Place, plan: Plan, done: StudyState) -> Iterator[Observer]:
        del place, plan, done
        yield lambda _: None

    with reached_site(spec, deployments=deployments) as reached, local_engine() as engine:

        def machine(plan: Plan, references: References) -> Machine:
            here = local_machine(plan, engine, deployments=deployments)
            return replace(reached.machine(plan, here, here.interrupts), references=references)

        identity = identity_between(reached)
        reached.refuse(expand(KINDS["delay"].make(1)))
        summary = calibrate(Session(archive, identity, ["delay"], machine, watch, SystemClock()), None, studies=1)
    assert identity.one_kernel
    assert summary.effort.studies == 1
    assert summary.false_positives.of == 1
    (delay,) = summary.injections
    assert delay.truth.point is not None
    assert delay.estimate.point is not None
    assert -0.5 < delay.truth.point < -0.005
    assert -0.7 < delay.estimate.point < 0
    (place,) = archive.places(identity)
    store = open_store(place.path)
    good = [record for record in store.records() if record.outcome.ok]
    for record in good:
        assert record.path is not None
        assert record.path.hop is Hop.WIRE
        assert record.path.wire is not None
        assert record.path.wire.server_host == engine_pair[0].name
    held = next(record for record in good if record.arm == "held")
    line = json.loads(store.raw(held, "sut.proxy.jsonl").read_text().splitlines()[-1])
    assert line["held_ns"] / line["messages"] >= 1000 * DELAY_US
    assert (quote_for(store.records(), tmp_path) or "").startswith("Between these two hosts 1 A/A comparison")
    for host in engine_pair:
        assert hosts.ssh(host, "ls", "/var/lib/tare/work").stdout == ""
        assert hosts.ssh(host, "pgrep", "-f", "proxy.py", check=False).stdout == ""
