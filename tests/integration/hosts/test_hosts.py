"""The test hosts themselves: what is their own, what they share, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cgroups import groups_called

from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tools import hosts
from tools.lab import ALL_STATE, Lab, TestHost

pytestmark = pytest.mark.root

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def left_alone() -> Iterator[tuple[TestHost, ...]]:
    """Two test hosts for tests that only look at them, or leave a file."""
    with hosts.made(2) as both:
        yield both


def test_each_has_its_own_name_processes_and_groups(left_alone: tuple[TestHost, ...]) -> None:
    for host in left_alone:
        assert hosts.ssh(host, "hostname").stdout.strip() == host.name
        assert hosts.ssh(host, "cat", "/proc/1/comm").stdout.strip() == "test_host.sh"
        groups = hosts.ssh(host, "cat", "/proc/self/cgroup").stdout.splitlines()
        assert all(line.split(":")[2].startswith(("/init", "/")) for line in groups)
        assert "tare-hosts" not in "".join(groups)


def test_each_sees_its_own_network_devices_and_no_others(left_alone: tuple[TestHost, ...]) -> None:
    devices = hosts.ssh(left_alone[0], "ls", "/sys/class/net").stdout.split()
    assert {"lo", "mgmt0", "wire0"} <= set(devices)
    assert "eth0" not in devices


def test_files_below_var_lib_of_one_are_not_the_others(left_alone: tuple[TestHost, ...]) -> None:
    hosts.ssh(left_alone[0], "touch", "/var/lib/only-here")
    assert hosts.ssh(left_alone[1], "test", "-e", "/var/lib/only-here", check=False).returncode == 1
    assert not Path("/var/lib/only-here").exists()


def test_the_measured_network_is_between_the_hosts_alone(left_alone: tuple[TestHost, ...]) -> None:
    first, second = left_alone
    route = hosts.ssh(first, "ip", "route", "get", second.measured).stdout
    assert "dev wire0" in route
    network = second.measured.rpartition(".")[0]
    assert not any(network in line for line in Path("/proc/net/fib_trie").read_text().splitlines())


def test_they_share_kernel_and_boot(left_alone: tuple[TestHost, ...]) -> None:
    here = Path("/proc/sys/kernel/random/boot_id").read_text()
    assert {hosts.ssh(host, "cat", "/proc/sys/kernel/random/boot_id").stdout for host in left_alone} == {here}


def test_a_host_that_was_killed_leaves_nothing_behind(pair: tuple[TestHost, ...]) -> None:
    hosts.ssh(pair[0], "sh", "-c", "'mkdir /sys/fs/cgroup/*/mine; sleep 1000 >/dev/null 2>&1 & echo $!'")
    os.kill(hosts.init_of(pair[0]), signal.SIGKILL)
    lab = pair[0].lab
    hosts.down(lab)
    assert hosts.names(lab) == ()
    assert not Path(f"/sys/class/net/{lab.uplink}").exists()
    assert not Path("/run/netns", lab.switch).exists()
    assert not lab.roots.exists()
    assert not lab.state.exists()
    assert not groups_called(f"tare-{lab.tag}-*")


def test_others_hosts_stand_beside_them_with_names_and_networks_of_their_own(pair: tuple[TestHost, ...]) -> None:
    with hosts.made(1) as (other,):
        assert other.lab != pair[0].lab
        assert other.network != pair[0].network
        assert hosts.ssh(other, "ls", str(pair[0].root), check=False).returncode != 0
        for host in (other, *pair):
            assert hosts.ssh(host, "hostname").stdout.strip() == host.name
    assert hosts.names(other.lab) == ()
    assert hosts.ssh(pair[0], "hostname").stdout.strip() == pair[0].name


def test_hosts_whose_process_was_killed_are_removed_by_the_next_that_makes_some() -> None:
    program = "from tools import hosts; import os; held = hosts.made(1); held.__enter__(); os._exit(9)"
    argv = [sys.executable, "-c", program]
    subprocess.run(argv, check=False, timeout=120, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    abandoned = [Lab(path.parent.name) for path in ALL_STATE.glob("*/owner")]
    assert abandoned
    with hosts.made(1):
        assert not [lab for lab in abandoned if hosts.names(lab) and not _owned(lab)]


def _owned(lab: Lab) -> bool:
    """By a process that is there: other sessions' hosts may stand beside."""
    owner = lab.state / "owner"
    return owner.exists() and alive(LocalHost(), from_ident(owner.read_text()))
