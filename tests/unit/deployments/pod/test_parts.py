"""The parts of a pod that are pure: pause program, kubelet's groups, kube-proxy's rules, CNI's configurations."""

from __future__ import annotations

import ipaddress
import subprocess
from pathlib import Path

import pytest

from tare.deployments import Limits, PodSetting
from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups, Hierarchy
from tare.deployments.pod.cni import configurations, links_of, portmap_removal
from tare.deployments.pod.pause import pause_program
from tare.deployments.pod.qos import cpu_shares_of, cpu_weight_of, groups_of
from tare.deployments.pod.services import (
    Service,
    chain,
    cluster_ip_of,
    every,
    iptables_removal,
    iptables_rules,
    nft_rules,
)
from tare.errors import EnvironmentLacks
from tare.sites.local import own_process
from tare.study.values import Qos

BLOCK = ipaddress.IPv4Network("10.232.0.0/18")
CAPTURED = Path(__file__).parents[4] / "crates/agent/tests/data/netfilter"
GIB = 1 << 30
PODS = ipaddress.IPv4Network("10.231.0.0/29")
V1 = Cgroups(
    CgroupKind.HYBRID,
    (
        *(Hierarchy(f"/cg/{name}", (name,), unified=False) for name in ("cpu", "memory", "cpuset")),
        Hierarchy("/cg/unified", (), unified=True),
    ),
)
V2 = Cgroups(CgroupKind.V2, (Hierarchy("/cg", (), unified=True),))


def read(path: str) -> bytes | None:
    files = {
        "/sys/devices/system/cpu/online": b"0-3\n",
        "/proc/meminfo": b"MemTotal:       4194304 kB\n",
        "/cg/cpuset/cpuset.cpus": b"0-3\n",
        "/cg/cpuset/cpuset.mems": b"0\n",
    }
    return files.get(path)


def service(of: int = 1, node_port: int = 0) -> Service:
    ip = cluster_ip_of(BLOCK, of)
    return Service("0123456789ab", ip, BLOCK, 6379, "10.231.0.2:6379", PODS, of, "10.231.0.1", node_port)


def test_the_pause_program_sleeps_until_it_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(pause_program("x86_64"))
    program.chmod(0o755)
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    if machine != "x86_64":
        pytest.skip(f"this machine is {machine}")
    running = subprocess.Popen([program])
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.2)
    status = Path(f"/proc/{running.pid}/status").read_text()
    running.kill()
    assert running.wait(60) == -9
    assert "State:\tS (sleeping)" in status


def test_the_other_machines_pause_program_is_an_executable_of_it(tmp_path: Path) -> None:
    assert pause_program("aarch64")[18:20] == (183).to_bytes(2, "little")
    with pytest.raises(EnvironmentLacks, match="pods are made on x86_64 and aarch64, and this host is riscv64"):
        pause_program("riscv64")


@pytest.mark.parametrize(
    ("setting", "limits", "pod", "shares", "oom"),
    [
        (PodSetting(qos=Qos.BEST_EFFORT), Limits(), "tare/r/kubepods/besteffort/podx", 2, 1000),
        (PodSetting(qos=Qos.BURSTABLE, cpu_request=0.5), Limits(), "tare/r/kubepods/burstable/podx", 512, 999),
        (PodSetting(qos=Qos.BURSTABLE, memory_request_bytes=1 << 30), Limits(),
         "tare/r/kubepods/burstable/podx", 2, 750),
        (PodSetting(qos=Qos.BURSTABLE), Limits(cpu_quota=1.5), "tare/r/kubepods/burstable/podx", 1536, 999),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpu_quota=1, memory_bytes=GIB), "tare/r/kubepods/podx", 1024, -997),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpus="1-2", memory_bytes=GIB), "tare/r/kubepods/podx", 2048, -997),
    ],
)  # fmt: skip
def test_groups_weights_and_scores_are_kubelets(
    setting: PodSetting, limits: Limits, pod: str, shares: int, oom: int
) -> None:
    groups = groups_of(V1, "tare/r", "x", setting, limits, read)
    assert (groups.pod, groups.shares, groups.oom_score_adj) == (pod, shares, oom)
    written = {write.path: write.value for write in groups.writes}
    assert written["/cg/cpu/tare/r/kubepods/cpu.shares"] == "4096"
    assert written[f"/cg/cpu/{pod}/cpu.shares"] == str(shares)
    quota = written.get(f"/cg/cpu/{pod}/cpu.cfs_quota_us")
    assert quota == (None if limits.cpu_quota is None else str(round(limits.cpu_quota * 100_000)))


def test_groups_of_version_2_have_weights() -> None:
    groups = groups_of(V2, "tare/r", "x", PodSetting(qos=Qos.BURSTABLE), Limits(cpu_quota=1.0), read)
    written = {write.path: write.value for write in groups.writes}
    assert written[f"/cg/{groups.pod}/cpu.weight"] == "39"
    assert written[f"/cg/{groups.pod}/cpu.max"] == "100000 100000"
    assert (cpu_weight_of(2), cpu_weight_of(262_144)) == (1, 10_000)
    assert (cpu_shares_of(None), cpu_shares_of(1000)) == (2, 262_144)


def test_the_measured_service_stands_in_the_midst_of_the_others() -> None:
    one = list(every(service(1001)))
    assert len(one) == len({each.address for each in one}) == len({each.endpoint for each in one}) == 1001
    assert one[500].endpoint == "10.231.0.2:6379"
    assert one[500].address == service(1001).cluster_ip


def test_rules_of_iptables_are_as_many_as_kube_proxys() -> None:
    """Five a Service: portal, masquerade, endpoint; hairpin and DNAT of the endpoint."""
    few, many = list(iptables_rules(service(1))), list(iptables_rules(service(11)))
    assert len(many) - len(few) == 10 * (5 + 2)
    assert all(len(line.split()[0]) <= 29 for line in many if line.startswith(":"))
    assert not any(" --dst-type LOCAL" in line for line in many)
    with_port = list(iptables_rules(service(1, 30080)))
    assert any("--dport 30080 -j TARE-0123456789ab-EXT" in line for line in with_port)


def test_removal_takes_all_that_is_of_the_tag_and_nothing_else() -> None:
    tag = "0123456789ab"
    own = list(iptables_rules(service(2, 30080)))
    foreign = [":KUBE-SERVICES - [0:0]", "-A PREROUTING -j KUBE-SERVICES", "-A INPUT -j TARE-ba9876543210-LB"]
    saved = "\n".join([*own[:1], *foreign, *own[1:]])
    removal = list(iptables_removal(tag, saved))
    made = {line[1:].split()[0] for line in own if line.startswith(":")}
    assert {line[3:] for line in removal if line.startswith("-X ")} == made
    assert not [line for line in removal if "KUBE" in line or "ba98" in line]
    leading = [
        line
        for line in own
        if line.startswith(("-A PREROUTING", "-A OUTPUT", "-A POSTROUTING", "-A INPUT", "-A FORWARD"))
    ]
    assert [line for line in removal if line.startswith("-D ")] == [f"-D {line[3:]}" for line in leading]


def test_removal_from_a_captured_table_is_what_the_agent_is_held_to() -> None:
    """Its Rust test reads the same files: two removals in two languages must not drift apart."""
    saved, removal = ((CAPTURED / name).read_text() for name in ("saved", "removal"))
    assert list(iptables_removal("0123456789ab", saved)) == removal.splitlines()


def test_nftables_have_maps_in_place_of_a_list() -> None:
    text = "\n".join(nft_rules(service(3, 30080)))
    assert text.count("chain service-0") == text.count("chain endpoint-0") == 3
    assert "tcp . 30080 : goto external" in text
    assert chain("0123456789ab", "SVC-00001") not in text


LINKS = links_of("task", own_process())


def test_a_bridge_with_a_port_is_two_plugins_and_macvlan_is_one() -> None:
    first, second = configurations("bridge", "task", LINKS, "/run/x", PODS, ("10.231.0.1", 6379))
    assert (first["type"], first["bridge"], first["ipam"]["type"]) == (
        "bridge",
        LINKS.bridge,
        "host-local",
    )
    assert second["runtimeConfig"]["portMappings"] == [
        {"hostPort": 6379, "containerPort": 6379, "protocol": "tcp", "hostIP": "10.231.0.1"}
    ]
    (only,) = configurations("macvlan", "task", LINKS, "/run/x", PODS, None)
    assert (only["type"], only["master"], only["mode"]) == ("macvlan", LINKS.master, "bridge")
    assert all(len(name) <= 15 for name in vars(links_of("t" * 80, own_process())).values())


def test_portmaps_own_chains_go_when_its_last_pod_has_gone() -> None:
    """As portmap 1.1.1 leaves them, captured."""
    lines = portmap_removal((CAPTURED / "portmap").read_text())
    chains = ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"]
    assert [line.split()[1] for line in lines if line.startswith("-X ")] == chains
    assert sum(line.startswith("-D ") for line in lines) == 3


def test_portmaps_chains_stay_while_a_pod_has_a_rule_there() -> None:
    saved = (
        "*nat\n:PREROUTING ACCEPT [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\n:CNI-HOSTPORT-MASQ - [0:0]\n"
        "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n-A POSTROUTING -j CNI-HOSTPORT-MASQ\n"
        "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE\n{}COMMIT\n"
    )
    assert portmap_removal(saved.format("-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-1\n")) == []
    assert portmap_removal("*nat\nCOMMIT\n") == []
    lines = portmap_removal(saved.format(""))
    assert lines[-3:] == ["-X CNI-HOSTPORT-DNAT", "-X CNI-HOSTPORT-MASQ", "COMMIT"]
    assert "-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT" in lines
