"""Addresses for links and Services are nobody's: no interface has them, and no route leads to them."""

from __future__ import annotations

import ipaddress

import pytest

from tare.deployments.network.bridge import free_network
from tare.errors import EnvironmentLacks
from tare.sites import Completed
from tare.sites.fake import FakeHost

POOL = ipaddress.IPv4Network("10.232.0.0/14")


def host(addresses: str = "", routes: str = "") -> FakeHost:
    return FakeHost(
        answers={
            ("ip", "-4", "-oneline", "address"): Completed((), 0, addresses.encode()),
            ("ip", "-4", "route"): Completed((), 0, routes.encode()),
        }
    )


def free(machine: FakeHost) -> ipaddress.IPv4Network:
    return free_network(machine, "tare-x", 18, POOL)


def test_the_first_that_is_free_is_taken_from_where_the_name_says() -> None:
    usual = free(host())
    assert usual.subnet_of(POOL)
    beside = f"3: tun0    inet {usual[5]}/30 scope global tun0\n"
    assert not free(host(beside)).overlaps(usual)
    behind = f"default via 192.0.2.1 dev eth0\nblackhole 198.51.100.0/24\n{usual[256]}/24 via 192.0.2.9 dev eth0\n"
    assert not free(host(routes=behind)).overlaps(usual)
    assert free(host(routes=f"{usual[9]} dev tun0 scope link\n")) != usual


def test_a_route_to_all_private_addresses_takes_none() -> None:
    assert free(host(routes="10.0.0.0/8 via 192.0.2.1 dev tun0\n")) == free(host())


@pytest.mark.parametrize("where", ["addresses", "routes"])
def test_a_pool_of_which_nothing_is_free_is_one_sentence(where: str) -> None:
    parts = list(POOL.subnets(new_prefix=18))
    lines = {
        "addresses": "".join(f"3: x    inet {part[1]}/18 scope global x\n" for part in parts),
        "routes": "".join(f"{part} via 192.0.2.1 dev x\n" for part in parts),
    }
    with pytest.raises(EnvironmentLacks, match=r"^no part of 10\.232\.0\.0/14 is free for tare-x") as raised:
        free(host(**{where: lines[where]}))
    assert raised.value.hint == "ip address show; ip route show"
