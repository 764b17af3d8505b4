"""Costs of macvlan and ipvlan: from the program's figures to what a path on them is predicted to cost."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.knowledge.test_prediction import cost, costs, profile

from tare.cli.study.weigh import render
from tare.errors import RunFailed, TimedOut
from tare.knowledge.claim import Setup
from tare.knowledge.event_costs import EventCost
from tare.knowledge.link_costs import costs_of_links, link_costs
from tare.knowledge.predictions.path_costs import PathCosts, path_costs
from tare.knowledge.predictions.prediction import predicted
from tare.knowledge.unit_costs import LINKS, UnitCost
from tare.sites import Completed

MACVLAN = ("container", "bare", "macvlan")


def requests(server: float, client: float, time: float) -> dict[str, Any]:
    """Four repeats of every load, in ns; the second half is 100 ns above, so that there is an interval."""
    figures = {"server": server, "client": client, "time": time}
    one = {name: [ns, ns, ns + 100.0, ns + 100.0] for name, ns in figures.items()}
    large = {name: [ns + 15_900.0 for ns in of] for name, of in one.items()}
    return {"busy": one, "alone": one, "large": large}


def printed(**more: Any) -> bytes:
    ways = {"first": [8000.0, 8100.0, 8200.0], "second": [7900.0, 8000.0, 8100.0]}
    tree = {
        "requests": {
            "loopback": requests(7000.0, 7000.0, 60_000.0),
            "wire": requests(8000.0, 8000.0, 70_000.0),
            "macvlan": requests(8200.0, 8300.0, 71_000.0),
            "pod-macvlan": requests(8000.0, 7500.0, 62_000.0),
        },
        "packets": {"wire": ways, "macvlan": ways},
        "lacks": ["ipvlan: this kernel makes no ipvlan"],
    }
    return json.dumps({**tree, **more}).encode()


def of(weighed: Sequence[UnitCost], network: str, quantity: str, load: str = "busy") -> UnitCost | None:
    wanted = (network, quantity, load, False)
    return next((e for e in weighed if (e.network, e.quantity, e.load, e.per_kib) == wanted), None)


def test_between_hosts_all_that_a_link_adds_is_the_server_s_host_s() -> None:
    weighed, _, _ = costs_of_links(printed())
    server, client = of(weighed, "macvlan", "sut-cpu"), of(weighed, "macvlan", "client-cpu")
    assert server is not None
    assert server.us == pytest.approx(0.5)  # 200 ns of the server's process and 300 ns of the client's
    assert (server.deployment, server.client, server.n) == ("bare", "bare", 4)
    assert client is None
    time = of(weighed, "macvlan", "time", "alone")
    assert time is not None
    assert time.us == pytest.approx(1.0)


def test_a_pod_s_macvlan_costs_each_side_its_own_beside_loopback() -> None:
    weighed, _, _ = costs_of_links(printed())
    for quantity, us in (("sut-cpu", 1.0), ("client-cpu", 0.5), ("machine-cpu", 1.5)):
        each = of(weighed, "pod-macvlan", quantity)
        assert each is not None
        assert each.us == pytest.approx(us)


def test_pairs_of_one_repeat_are_compared_so_that_drift_over_repeats_is_no_error() -> None:
    weighed, _, _ = costs_of_links(printed())
    server = of(weighed, "macvlan", "sut-cpu")
    assert server is not None
    assert server.se == pytest.approx(0.0, abs=1e-9)


def test_a_kib_is_what_large_replies_add() -> None:
    heavier = requests(8200.0, 8300.0, 71_000.0)
    heavier["large"] = {name: [ns + 1000.0 for ns in of] for name, of in heavier["large"].items()}
    links = {"loopback": requests(1.0, 1.0, 1.0), "wire": requests(8000.0, 8000.0, 7e4), "macvlan": heavier}
    weighed, _, _ = costs_of_links(printed(requests=links))
    (a_kib,) = [each for each in weighed if each.per_kib and each.quantity == "sut-cpu"]
    assert a_kib.us == pytest.approx(2.0 / ((16384 - 100) / 1024))


def test_a_link_without_its_path_to_compare_with_has_no_cost() -> None:
    weighed, _, _ = costs_of_links(printed(requests={"macvlan": requests(1.0, 1.0, 1.0)}))
    assert weighed == ()


def test_what_this_kernel_lacks_is_named_and_packets_are_told_in_two_ways() -> None:
    _, packets, lacks = costs_of_links(printed())
    assert lacks == ("ipvlan: this kernel makes no ipvlan",)
    assert [(each.event, each.link, each.ns, each.second_ns) for each in packets] == [
        ("packet", "wire", 8100.0, 8000.0),
        ("packet", "macvlan", 8100.0, 8000.0),
    ]
    assert [each.name for each in packets] == ["packet, wire", "packet, macvlan"]
    assert all(each.agree for each in packets)


@pytest.mark.parametrize("output", [b"", b"[]", b"{}", b'{"requests": {}, "packets": {"wire": {}}, "lacks": []}'])
def test_output_that_is_not_whole_is_refused(output: bytes) -> None:
    with pytest.raises(RunFailed, match="not whole"):
        costs_of_links(output)


def test_without_root_there_are_no_links() -> None:
    class Users:
        def run(self, argv: Sequence[str], **_: Any) -> Completed:
            return Completed(tuple(argv), 0, b"1000\n", b"")

    assert link_costs(Users()) == ((), (), ("macvlan, ipvlan: root is needed to make network links",))  # type: ignore[arg-type]  # all that is used of it


def test_a_host_that_does_not_answer_is_a_lack_of_links() -> None:
    class Silent:
        def run(self, *_: Any, **__: Any) -> Completed:
            raise TimedOut("id -u did not end within 10 s")

    assert link_costs(Silent()) == ((), (), ("macvlan, ipvlan: id -u did not end within 10 s",))  # type: ignore[arg-type]  # all that is used of it


def on_host(**us: float) -> tuple[UnitCost, ...]:
    """Costs of a container on the host's network, with a standard error of 0.3 µs."""
    quantities = {"sut": "sut-cpu", "client": "client-cpu", "machine": "machine-cpu"}
    busy = [cost(quantities[name], value, se=0.3) for name, value in us.items()]
    both = (*busy, cost("time", 2.0, load_="alone", se=0.3), cost("sut-cpu", 1.0, load_="alone", se=0.3))
    return tuple(each.model_copy(update={"network": "host"}) for each in both)


def on_link(network: str, **us: float) -> tuple[UnitCost, ...]:
    moved = [each.model_copy(update={"deployment": "bare", "network": network}) for each in on_host(**us)]
    return tuple(each.model_copy(update={"se": 0.4}) for each in moved)


def test_a_path_on_macvlan_costs_what_a_container_does_and_what_the_link_does() -> None:
    known = path_costs(MACVLAN, costs(*on_host(sut=1.0, client=0.5), *on_link("macvlan", sut=2.0)))
    assert isinstance(known, PathCosts)
    server, client = known.added["sut"], known.added["client"]
    assert server is not None
    assert server.us == pytest.approx(3.0)
    assert server.se == pytest.approx(0.5)
    assert client is not None
    assert client.us == 0.5  # between hosts the link is the server's alone
    assert known.waited.us == pytest.approx(4.0)


@pytest.mark.parametrize("network", LINKS)
def test_each_link_is_predicted_from_bare_runs(network: str) -> None:
    # 100 µs of the server's one CPU an operation, of 5 requests that cost 1 + 3 µs more each.
    known = costs(*on_host(sut=1.0, client=0.0), *on_link(network, sut=3.0, client=0.0))
    setup = Setup(deployment="container", client="bare", network=network, storage="bind")
    bare = profile(per_s=10_000.0, sut=4.0, requests=5.0, threads=64)
    forecast = predicted(network, setup, bare, known)
    assert forecast.why_none is None
    assert forecast.log_ratio == pytest.approx(math.log(100 / 120))


def test_a_link_that_was_not_weighed_is_not_predicted() -> None:
    known = path_costs(("container", "bare", "ipvlan"), costs(*on_host(sut=1.0), *on_link("macvlan", sut=2.0)))
    assert known == "there is no unit cost for container / bare / ipvlan"
    without_container = path_costs(MACVLAN, costs(*on_link("macvlan", sut=2.0)))
    assert without_container == "there is no unit cost for container / bare / macvlan"


def test_links_have_rows_of_their_own_and_packets_lines_below() -> None:
    weighed, packets, _ = costs_of_links(printed())
    known = costs(*weighed).model_copy(update={"events": packets})
    text = render(known, width=80)
    assert "macvlan link" in text
    assert "packet, wire" in text
    assert max(map(len, text.splitlines())) <= 100
    read = type(known).model_validate_json(known.model_dump_json())
    assert read == known
    assert isinstance(read.events[0], EventCost)
