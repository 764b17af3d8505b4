"""What a program obtained of the kernel, on texts as Linux 6.18 and iproute2 6.1 print them."""

from __future__ import annotations

import pytest

from tare.deployments.obtained import (
    Interface,
    disk_access,
    hugetlb_limit,
    network_of,
    parse_links,
    security_label,
    some,
)
from tare.sites import Completed
from tare.sites.fake import FakeHost

LINKS = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\\    link/loopback 00:00
2: eth0@if5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc fq_codel state UP \\    link/ether 02:42
"""
OFFLOADS = """\
Features for eth0:
rx-checksumming: on
tcp-segmentation-offload: on
\ttx-tcp-segmentation: on
generic-segmentation-offload: on
generic-receive-offload: on
large-receive-offload: off [fixed]
"""
ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""


def test_links_are_listed_without_the_index_of_a_peer() -> None:
    assert parse_links(LINKS) == {"lo": Interface("65536", "noqueue"), "eth0": Interface("1400", "fq_codel")}


def test_the_uplink_counts_and_no_other_interface() -> None:
    host = FakeHost(answers={("nsenter",): Completed((), 0, LINKS.encode())})
    host.files |= {
        "/proc/7/net/route": ROUTES.encode(),
        "/proc/7/root/etc/resolv.conf": b"# made by hand\nsearch lan\nnameserver 127.0.0.11\nnameserver ::1\n",
    }
    host.answers["nsenter", "-t", "7", "-n", "--", "ethtool"] = Completed((), 0, OFFLOADS.encode())
    assert network_of(host, 7) == {
        "offloads of the uplink": "TSO on, GSO on, GRO on, LRO off",
        "MTU of loopback": "65536",
        "MTU of the uplink": "1400",
        "queue of the uplink": "fq_codel",
        "name servers": "127.0.0.11 ::1",
    }
    assert network_of(FakeHost(answers={("nsenter",): Completed((), 1)}), 7) == {}


@pytest.mark.parametrize(
    ("fds", "maps", "interface"),
    [
        ("anon_inode:[eventpoll]\nanon_inode:[io_uring]\n", "", "io_uring"),
        ("", "7f00-7f01 rw-s 00000000 00:10 3 /[aio] (deleted)\n", "libaio"),
        ("", "7f00-7f01 r-xp 00000000 fe:00 9 /usr/lib/libc.so.6\n", "neither"),
        ("", None, None),
    ],
)
def test_the_interface_to_disks(fds: str, maps: str | None, interface: str | None) -> None:
    host = FakeHost(linked={f"/proc/7/fd/{number}": target for number, target in enumerate(fds.splitlines())})
    host.files |= {} if maps is None else {"/proc/7/maps": maps.encode()}
    assert disk_access(host, 7).interface == interface


def test_labels_leave_out_what_is_unique_to_a_container() -> None:
    assert security_label("docker-default (enforce)\n") == "docker-default (enforce)"
    selinux = "system_u:system_r:container_t:s0:c12,c345\0"
    assert security_label(selinux) == "system_u:system_r:container_t"
    assert security_label("") is None


def test_amounts_that_grow_are_only_some() -> None:
    assert [some(line) for line in ("0 kB", "2048 kB", None, "")] == ["none", "some", None, None]
    assert hugetlb_limit("9223372036854771712", None) == "max"
    assert hugetlb_limit(None, "0") == "0"
