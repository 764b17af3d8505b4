"""Server and client change hosts every other block: who runs where, what parity allows, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.record.parts import between, route
from tests.unit.run.conftest import Rig, a_rig, make_plan
from tests.unit.run.parity.test_compare import record, study

from tare.errors import StudyError
from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord
from tare.run.between.site import refuse_swap, with_swapped_hosts
from tare.run.events import RunStarted
from tare.run.parity.compare import differences
from tare.run.parity.references import References
from tare.sites import Site
from tare.sites.local import LocalHost

SITE = Site(LocalHost("h1"), LocalHost("h2"), labels={"site": "pair"})
ALIKE = HostFacts(architecture="x86_64", cpu_model="A", cpu_count=2)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Two machines of fakes on hosts that bear two names; each tells its own."""
    with a_rig(tmp_path) as made:

        def on(site: Site) -> Any:
            own = replace(made.machine.own, host_facts=lambda: HostFacts(name=site.sut.name))
            return replace(made.machine, site=site, own=own)

        made.machine = replace(on(SITE), swapped=on(with_swapped_hosts(SITE)))
        yield made


def test_the_server_stands_on_the_other_host_in_every_even_block(rig: Rig) -> None:
    records = rig.execute(make_plan(blocks=4, arms=("one", "two")))
    assert [each.outcome.reason for each in records if not each.outcome.ok] == []
    assert {(each.block, each.host.name) for each in records} == {(1, "h1"), (2, "h2"), (3, "h1"), (4, "h2")}
    assert len(records) == 8
    places = {(each.run.block % 2, *each.hosts.items()) for each in rig.events if isinstance(each, RunStarted)}
    assert places == {(1, ("sut", "h1"), ("client", "h2")), (0, ("sut", "h2"), ("client", "h1"))}


def measured(arm: str, block: int, *, swapped: bool, **changes: Any) -> RunRecord:
    own, other = ("h2", "h1") if swapped else ("h1", "h2")
    facts = {"h1": {"thp": "always", "kernel": "6.1"}, "h2": {"thp": "never", "kernel": "6.2"}}
    addresses = {"h1": "10.0.0.2", "h2": "10.0.0.21"}
    sides = {"h1": route(device="eth0", mtu=1500), "h2": route(device="eth1", mtu=1500)}
    fields = {
        "host": facts[own],
        "client_host": facts[other],
        "between": between(
            own, other, addresses=addresses, swapped=swapped, sides={"sut": sides[own], "client": sides[other]}
        ),
        "effective": {"bind_address": addresses[own], "size": "1"},
    }
    return record(arm, block=block, **{**fields, **changes})


def test_hosts_that_have_changed_parts_are_held_against_themselves() -> None:
    first = measured("bare", 1, swapped=False)
    assert differences(study(), first, measured("bare", 2, swapped=True)) == ()
    changed = measured("bare", 2, swapped=True, client_host={"thp": "madvise", "kernel": "6.1"})
    (unlike,) = differences(study(), first, changed)
    assert str(unlike) == ("host: transparent huge pages of the client's host: always in bare, madvise in bare")


def test_the_server_s_own_address_may_change_and_no_other_setting() -> None:
    first = measured("bare", 1, swapped=False)
    other = measured("bare", 2, swapped=True, effective={"bind_address": "10.0.0.21", "size": "2"})
    assert [each.name for each in differences(study(), first, other)] == ["variable size"]
    elsewhere = measured("bare", 2, swapped=True, effective={"bind_address": "10.0.0.210", "size": "1"})
    assert [each.name for each in differences(study(), first, elsewhere)] == ["variable bind_address"]
    same = measured("bare", 3, swapped=False, effective={"bind_address": "10.0.0.3", "size": "1"})
    assert [each.name for each in differences(study(), first, same)] == ["variable bind_address"]


def test_hosts_that_keep_their_parts_are_compared_as_ever() -> None:
    first = measured("bare", 1, swapped=False)
    moved = measured("bare", 3, swapped=False, host={"thp": "never", "kernel": "6.2"})
    names = {each.name for each in differences(study(), first, moved)}
    assert names == {"host: transparent huge pages", "host: kernel"}


def test_within_a_block_hosts_never_change(rig: Rig) -> None:
    del rig
    known = References([measured("bare", 1, swapped=False)])
    (unlike,) = known.differences(study(), measured("host", 1, swapped=True), server=_server())
    assert str(unlike) == "the SUT's host in block 1: h1 in bare, h2 in host"


def _server() -> Any:
    from tare.run.parity.compare import KnownVariables

    return KnownVariables()


def test_what_makes_no_sense_is_refused_in_one_sentence() -> None:
    facts = {"h1": ALIKE, "h2": ALIKE}
    refuse_swap(make_plan(blocks=2), SITE, facts)
    with pytest.raises(StudyError, match="the site pair has `swap`, and study tiny has one block"):
        refuse_swap(make_plan(blocks=1), SITE, facts)
    with pytest.raises(StudyError, match="differ: CPU model A on h1, B on h2"):
        refuse_swap(make_plan(blocks=2), SITE, {"h1": ALIKE, "h2": replace(ALIKE, cpu_model="B")})
    plan = make_plan(blocks=2)
    arm = plan.study.arms[0]
    alone = arm.model_copy(update={"settings": arm.settings.model_copy(update={"client": None})})
    without = plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (alone,)})})
    with pytest.raises(StudyError, match="the arm plain has no client to swap with"):
        refuse_swap(without, SITE, facts)
