"""Each piece of a pod is in force on a real engine and kernel, is proved by it, and goes without a trace."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.deployments.test_network_path import dialled, free_port, wait_until_listening
from tests.integration.hosts.reached import Reached, cleared, kill_a_tare, noted
from tests.integration.image_tags import image_tags

from tare.deployments import Deployment, Instance, Limits, PodSetting, Task
from tare.deployments.network.path import observe_path
from tare.deployments.pod import cni, pod
from tare.deployments.pod.cni import directory_of, links_of
from tare.deployments.rlimits import ceilings
from tare.deployments.sweep import orphans, sweep
from tare.errors import EnvironmentLacks, RunFailed
from tare.record.network_path import Hop, NetworkPath
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.study.values import NetworkKind, Qos

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
Asked = Callable[..., tuple[Instance, NetworkPath]]


_HAIRPIN = re.compile(r"-A POSTROUTING -s (\S+) -d \1 .*-j MASQUERADE")  # Docker's, for each published port


def rules() -> set[str]:
    """All that netfilter holds, without counters: what a pod adds has to be gone after it.

    Without the engine's rules for its bridges and published ports: other tests make networks at the same time.
    """
    done = [
        subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
        for argv in (["iptables-save", "-t", "nat"], ["iptables-save", "-t", "filter"], ["nft", "list", "tables"])
    ]
    lines = {
        line
        for text in done
        for line in text.splitlines()
        if not line.startswith(("#", ":")) and " br-" not in line and not _HAIRPIN.match(line)
    }
    return {line for line in lines if not line.startswith("table ") or "tare" in line}  # engines make tables, too


def names_left(engine: DockerClient, task: Task) -> list[str]:
    """Of containers of a task. Other tests remove theirs while all are listed."""
    containers = engine.containers.list(all=True, ignore_removed=True)
    return [name for each in containers if task.name in (name := str(each.name))]


def chains() -> set[str]:
    """Names of those of the table nat, empty ones too, as CNI's portmap leaves some."""
    saved = subprocess.run(["iptables-save", "-t", "nat"], capture_output=True, text=True, check=True, timeout=60)
    return {line.partition(" ")[0] for line in saved.stdout.splitlines() if line.startswith(":")}


def links_and_scratch() -> set[str]:
    """Interfaces and directories of pods: another tare of this machine may have some, or may have left some."""
    links = {place.name for place in Path("/sys/class/net").iterdir()}
    pods = {name for name in links if name.startswith(("tarec", "tarem", "tarep", "tareo"))}
    return pods | {str(place) for place in Path("/run").glob("tare-pod.*")}


@pytest.fixture(autouse=True)
def no_rules_and_links_left() -> Iterator[None]:
    rules_before, pods_before = rules(), links_and_scratch()
    yield
    assert rules() - rules_before == set()
    assert links_and_scratch() - pods_before == set()


@pytest.fixture
def asked(host: Host, bare: Deployment, container: Deployment, make_task: MakeTask, started: Started) -> Asked:
    """A server in a pod with a client on its node, connected once."""

    def ask(network: NetworkKind, setting: PodSetting, **given: Any) -> tuple[Instance, NetworkPath]:
        port = free_port(host)
        bind = "127.0.0.1" if network is NetworkKind.HOST else "0.0.0.0"
        serve = ("httpd", "-f", "-p", f"{bind}:{port}", "-h", "/tmp")
        server = started(container, make_task(*serve, name="s", network=network, port=port, pod=setting, **given))
        wait_until_listening(host, server, port)
        place = dialled(server, NetworkKind.HOST)
        client = started(
            bare, make_task("sh", "-c", f"sleep 1000 | nc {place.address} {place.port}", name="client")
        )
        deadline = time.monotonic() + 60
        while (path := observe_path(host, client, server)) is None or path.hop is None:
            assert time.monotonic() < deadline, path
            time.sleep(0.05)
        assert path.client_dialled == place
        return server, path

    return ask


@pytest.mark.parametrize(
    ("network", "setting", "hop", "facts"),
    [
        (NetworkKind.HOST, PodSetting(), Hop.LOOPBACK, {"held_by_sandbox": "ipc"}),
        (NetworkKind.BRIDGE, PodSetting(), Hop.BRIDGE, {"held_by_sandbox": "ipc,net"}),
        (NetworkKind.POD, PodSetting(), Hop.BRIDGE, {"held_by_sandbox": "ipc,net", "interface": "veth"}),
        (NetworkKind.POD, PodSetting(cni="macvlan"), Hop.BRIDGE, {"interface": "macvlan"}),
        (NetworkKind.HOST_PORT, PodSetting(), Hop.DNAT, {"interface": "veth"}),
        (NetworkKind.CLUSTER_IP, PodSetting(services=10), Hop.DNAT, {"services": 10}),
        (NetworkKind.CLUSTER_IP, PodSetting(services=1000), Hop.DNAT, {"services": 1000}),
        (NetworkKind.CLUSTER_IP, PodSetting(services=1000, proxy="nftables"), Hop.DNAT, {"services": 1000}),
        pytest.param(
            NetworkKind.CLUSTER_IP,
            PodSetting(services=10_000),
            Hop.DNAT,
            {"services": 10_000},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            NetworkKind.CLUSTER_IP,
            PodSetting(services=10_000, proxy="nftables"),
            Hop.DNAT,
            {"services": 10_000},
            marks=pytest.mark.slow,
        ),
        (NetworkKind.NODE_PORT, PodSetting(services=10), Hop.DNAT, {"services": 10}),
        (NetworkKind.NODE_PORT, PodSetting(services=10, proxy="nftables"), Hop.DNAT, {"services": 10}),
    ],
)
def test_a_piece_of_the_network_is_the_one_that_is_named(  # noqa: PLR0917 - a row
    asked: Asked, container: Deployment, network: NetworkKind, setting: PodSetting, hop: Hop, facts: dict[str, Any]
) -> None:
    server, path = asked(network, setting)
    assert path.hop is hop
    seen = container.observe(server).pod
    assert seen is not None
    assert {key: getattr(seen, key) for key in facts} == facts
    if seen.proxy is not None:
        assert ("iptables" if setting.proxy == "iptables" else "nftables") in seen.proxy
    if network in {NetworkKind.CLUSTER_IP, NetworkKind.NODE_PORT}:
        assert path.server_sees is not None
        assert path.client_dialled is not None
        assert path.server_sees.address != path.client_dialled.address or network is NetworkKind.NODE_PORT


@pytest.mark.parametrize(
    ("setting", "limits", "place", "shares", "score"),
    [
        (PodSetting(qos=Qos.BEST_EFFORT), Limits(), "kubepods/besteffort/pod", 2, 1000),
        (PodSetting(qos=Qos.BURSTABLE, cpu_request=0.5), Limits(cpu_quota=1.0), "kubepods/burstable/pod", 512, 999),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpu_quota=1.0, memory_bytes=64 << 20), "kubepods/pod", 1024, -997),
        (PodSetting(qos=Qos.GUARANTEED), Limits(cpus="0", memory_bytes=64 << 20), "kubepods/pod", 1024, -997),
    ],
)
def test_a_class_of_service_is_in_force(  # noqa: PLR0917 - a row
    asked: Asked,
    container: Deployment,
    host: Host,
    setting: PodSetting,
    limits: Limits,
    place: str,
    shares: int,
    score: int,
) -> None:
    server, _ = asked(NetworkKind.POD, setting, limits=limits)
    seen = container.observe(server)
    own = next(path for names, path in seen.cgroups.items() if names == "cpu")
    assert own.startswith(f"/{server.task.cgroup_parent}/{place}")
    held = max(score, 0) if ceilings(host) else score  # none below 0 without CAP_SYS_RESOURCE
    assert (seen.cpu_weight, seen.oom_score_adj) == (shares, held)
    assert seen.pod is not None
    assert seen.pod.kubelet_oom_score_adj == score
    assert (seen.cpu_quota, seen.memory_bytes) == (limits.cpu_quota, limits.memory_bytes)
    above = Path(f"/sys/fs/cgroup/cpu{own}").parent
    assert (above / "cpu.shares").read_text().strip() == str(shares)
    quota = "-1" if limits.cpu_quota is None else "100000"
    assert (above / "cpu.cfs_quota_us").read_text().strip() == quota


_BROKEN = """#!/bin/sh
exec '{python}' -c '
import json, os, sys
if os.environ["CNI_COMMAND"] == "{command}":
    sys.exit(print(json.dumps({{"code": 11, "msg": "out of order"}})) or 1)
print(json.dumps(json.load(sys.stdin).get("prevResult", {{}})))
'
"""


@pytest.mark.parametrize("command", ["ADD", "DEL"])
def test_a_plugin_that_fails_is_one_sentence_and_what_it_keeps_is_swept(  # noqa: PLR0917 - fixtures
    host: Host,
    container: Deployment,
    engine: DockerClient,
    ledger: Ledger,
    make_task: MakeTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    for plugin in ("bridge", "host-local"):
        (tmp_path / plugin).symlink_to(f"{directory_of(host, plugin)}/{plugin}")
    (tmp_path / "portmap").write_text(_BROKEN.format(python=sys.executable, command=command))
    (tmp_path / "portmap").chmod(0o755)
    task = make_task("sleep", "1000", name="s", network=NetworkKind.HOST_PORT, port=5000, pod=PodSetting())
    with monkeypatch.context() as patch:
        patch.setattr(cni, "DIRECTORIES", (str(tmp_path),))
        if command == "ADD":
            with pytest.raises(RunFailed, match=r"^the CNI plug-in portmap does not attach .*-s: out of order$"):
                container.start(task)
        else:
            instance = container.start(task)
            with pytest.raises(RunFailed, match=r"^the CNI plug-in portmap does not detach .*-s: out of order$"):
                container.stop(instance, 1.0)
            (left,) = [entry for entry in ledger.entries() if not entry.keep and entry.kind is not Kind.CGROUP]
            assert (left.kind, left.ident) == (Kind.RULES, f"cni:{task.name}")
    assert names_left(engine, task) == []
    entries = [entry for entry in ledger.entries() if not entry.keep]
    swept = sweep(entries, {host.name: host}, engine, ledger)
    assert (swept.failed, noted(ledger)) == ([], [])


def test_addresses_that_are_all_taken_are_one_sentence_and_nothing_is_left(
    container: Deployment, engine: DockerClient, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = ipaddress.IPv4Interface(bridge_address(engine)).network
    monkeypatch.setattr(pod, "SERVICE_POOL", str(taken))
    monkeypatch.setattr(pod, "_SERVICE_PREFIX", taken.prefixlen)
    task = make_task("true", name="s", network=NetworkKind.CLUSTER_IP, port=5000, pod=PodSetting())
    with pytest.raises(EnvironmentLacks, match=rf"^no part of {taken} is free for .*-s"):
        container.start(task)
    assert names_left(engine, task) == []


def bridge_address(engine: DockerClient) -> str:
    """The node's on Docker's own bridge; an engine that has just made the bridge does not list its gateway."""
    bridge = engine.networks.get("bridge").attrs["Options"]["com.docker.network.bridge.name"]
    argv = ["ip", "-4", "-json", "address", "show", "dev", bridge]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    (address,) = json.loads(shown)[0]["addr_info"]
    return f"{address['local']}/{address['prefixlen']}"


@pytest.mark.parametrize(
    ("network", "setting", "sets_of_rules"),
    [
        (NetworkKind.NODE_PORT, PodSetting(services=10, proxy="iptables", qos=Qos.BEST_EFFORT), 2),
        (NetworkKind.NODE_PORT, PodSetting(services=10, proxy="nftables", qos=Qos.BEST_EFFORT), 2),
        (NetworkKind.HOST_PORT, PodSetting(), 1),
        (NetworkKind.POD, PodSetting(cni="macvlan"), 1),
    ],
)
def test_a_pod_of_a_killed_tare_is_swept_with_its_rules(  # noqa: PLR0917 - fixtures
    reached: Reached,
    engine: DockerClient,
    ledger: Ledger,
    make_task: MakeTask,
    tmp_path: Path,
    network: NetworkKind,
    setting: PodSetting,
    sets_of_rules: int,
) -> None:
    task = make_task("sleep", "1000", network=network, port=5000, pod=setting)
    chains_before = chains()
    kill_a_tare(reached, "container", task, tmp_path / "ledger.sqlite", None)
    links = links_of(task.name, next(entry.owner for entry in ledger.entries() if not entry.keep))
    assert Path(f"/sys/class/net/{links.bridge if setting.cni == 'bridge' else links.own}").exists()
    removed = cleared(reached, ledger)
    assert f"container {task.name}-pod" in {line.removesuffix(" on local") for line in removed}
    assert len([line for line in removed if line.startswith("rules ")]) == sets_of_rules
    assert noted(ledger) == []
    assert not [tag for tag in image_tags(engine) if task.name in tag]
    assert chains() - chains_before == set()


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.5, 0.7, 0.9, 1.2])
def test_a_tare_killed_while_it_makes_a_pod_leaves_nothing(  # noqa: PLR0917 - fixtures
    reached: Reached,
    host: Host,
    engine: DockerClient,
    ledger: Ledger,
    make_task: MakeTask,
    tmp_path: Path,
    after_s: float,
) -> None:
    task = make_task("sleep", "1000", network=NetworkKind.NODE_PORT, port=5000, pod=PodSetting(services=10))
    kill_a_tare(reached, "container", task, tmp_path / "ledger.sqlite", after_s)
    time.sleep(0.5)  # what had been asked of the engine may still be under way
    cleared(reached, ledger)
    swept = sweep(orphans(engine, host), {host.name: host}, engine, ledger)
    assert swept.failed == []
    assert not [tag for tag in image_tags(engine) if task.name in tag]
