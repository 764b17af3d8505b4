"""`containerd` on a host that answers from a script: what is asked of `ctr`, what fails how, and what is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import CONTAINERD, Limits, Task, Volume
from tare.deployments.containerd import client
from tare.deployments.containerd import containerd as deployment
from tare.deployments.containerd.client import NAMESPACE, Client, remove_container
from tare.deployments.containerd.containerd import Containerd
from tare.deployments.containerd.ctr import ADDRESS, SOCKETS, find_socket
from tare.deployments.containerd.requirement import CONTAINERD_SERVICE, FAR
from tare.deployments.kube.node_image import remove_node_image
from tare.deployments.pod.cni import DIRECTORIES
from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.images import Image, ImageConfig
from tare.record.made_by import ContainerdFacts
from tare.requirements import HostPlan, Use
from tare.sites import Completed, Host, Output
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.marks import group_of
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.host import SshHost
from tare.study.model import SutSpec
from tare.study.values import NetworkKind

SOCKET = SOCKETS[0]
CTR = ("ctr", "--address", SOCKET, "--namespace", NAMESPACE)
DIGEST = "ab" * 32
IMAGE = f"tare.invalid/image:{DIGEST[:24]}"
SPEC: dict[str, Any] = {
    "ociVersion": "1.0.2-dev",
    "process": {"capabilities": {"bounding": ["CAP_CHOWN"]}, "noNewPrivileges": True, "rlimits": []},
    "root": {"path": "rootfs"},
    "linux": {
        "namespaces": [{"type": "pid"}, {"type": "network"}],
        "resources": {"devices": []},
        "seccomp": {"x": 1},
    },
}
NONE = Completed((), 1)

STAT = b"4711 (containerd-shim) S 1" + 17 * b" 0" + b" 77" + 30 * b" 0"


def a_task(**given: Any) -> Task:
    config = ImageConfig(user="db")
    image = Image("busybox", DIGEST, "/images/rootfs", None, config)
    return Task("tare-x-sut", image, ("serve",), Output("/raw/out", "/raw/err"), "tare/x", **given)


def text(content: str) -> Completed:
    return Completed((), 0, content.encode())


class Bench:
    """A host whose `ctr run` begins a program; `ended`: with this exit code, and these last words."""

    def __init__(self, directory: Path) -> None:
        self.ended: tuple[int, bytes, bool] | None = None
        """Exit code, what `ctr` or the program printed, and whether the program had begun."""
        self.host = FakeHost(
            answers={
                (*CTR, "images", "ls", "-q"): text(f"{IMAGE}\n"),
                (*CTR, "containers", "info"): text(json.dumps({"Spec": SPEC})),
                (*CTR, "snapshots", "--snapshotter", "overlayfs", "info"): text(json.dumps({"Parent": "sha256:1"})),
                (*CTR, "snapshots", "--snapshotter", "overlayfs", "mounts"): text(
                    "mount -t overlay overlay /run/tare-task.tare-x-sut/root -o lowerdir=/s/1/fs,upperdir=/s/2/fs\n"
                ),
                ("python3", "-I", "-S", "/run/tare-task.tare-x-sut/supervisor.py"): self._run,
                ("realpath", "-e", "--", "/run"): text("/run\n"),
                ("stat", "-c", "%F|%d:%i"): text("directory|7:42\n"),
            },
            files={
                "/images/rootfs/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\ndb:x:900:901:d:/data:/bin/sh\n",
                "/images/rootfs/etc/group": b"db:x:901:\nextra:x:902:db\n",
                "/proc/sys/kernel/hostname": b"machine\n",
                "/run/tare-pod.tare-x-sut/.tare": b"7:42\n",
                "/run/tare-task.tare-x-sut/.tare": b"7:42\n",
                "/proc/self/mountinfo": b"30 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            },
        )
        self.ledger = SqliteLedger(directory / "ledger.sqlite")
        self.deployment = Containerd(self.host, self.ledger)

    def _run(self, argv: Sequence[str], _: bytes) -> Completed:
        scratch = "/run/tare-task.tare-x-sut"
        code, words, begun = self.ended or (None, b"", True)
        if begun:
            process = self.host.spawn("serve")
            self.host.files[f"{scratch}/pid"] = str(process.pid).encode()
            self.host.files[f"/proc/{process.pid}/cmdline"] = b"serve\0"
        if code is not None:
            self.host.files[f"{scratch}/status"] = str(code).encode()
        return Completed(tuple(argv), 0, b"", words)

    @property
    def left(self) -> set[Kind]:
        return {entry.kind for entry in self.ledger.entries() if not entry.keep}

    @property
    def config(self) -> dict[str, Any]:
        tree: dict[str, Any] = json.loads(self.host.files["/run/tare-task.tare-x-sut/config.json"])
        return tree


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(deployment, "_START_S", 0.3)
    monkeypatch.delenv(ADDRESS, raising=False)
    return Bench(tmp_path)


def lack(host: Host, *networks: NetworkKind) -> str | None:
    """What the host lacks for containers on these networks."""
    uses = tuple(Use("boxed", SutSpec(image="i", deployment=CONTAINERD, network=network)) for network in networks)
    return CONTAINERD_SERVICE.why_not(HostPlan(host, uses=uses))


def test_a_container_is_begun_by_ctr_in_a_namespace_of_its_own(bench: Bench) -> None:
    instance = bench.deployment.start(a_task(listen="127.0.0.3"))
    assert (instance.deployment, instance.address, instance.container_id) == (CONTAINERD, "127.0.0.3", None)
    (run,) = (argv for argv in bench.host.ran() if "run" in argv)
    assert run[5 : 5 + len(CTR)] == CTR
    assert bench.left == {Kind.CONTAINERD, Kind.PATH, Kind.CGROUP, Kind.PROCESS}
    assert not [argv for argv in bench.host.ran() if argv[0] == "docker"]


def test_its_configuration_is_containerds_own_around_the_task(bench: Bench) -> None:
    limits = Limits(cpus="1", cpu_quota=0.5, memory_bytes=1 << 20, nofile=1000)
    bench.deployment.start(a_task(limits=limits, env={"GIVEN": "yes"}))
    config = bench.config
    assert config["linux"]["seccomp"] == SPEC["linux"]["seccomp"]
    assert config["process"]["capabilities"] == SPEC["process"]["capabilities"]
    assert config["process"]["user"] == {"uid": 900, "gid": 901, "additionalGids": [901, 902]}
    assert {"HOME=/data", "HOSTNAME=machine", "GIVEN=yes"} <= set(config["process"]["env"])
    assert config["process"]["noNewPrivileges"] is False
    assert {"type": "RLIMIT_NOFILE", "soft": 1000, "hard": 1000} in config["process"]["rlimits"]
    assert config["linux"]["resources"] == {
        "devices": [],
        "cpu": {"cpus": "1", "period": 100_000, "quota": 50_000},
        "memory": {"limit": 1 << 20, "swap": 1 << 20},
    }
    assert config["linux"]["cgroupsPath"] == "/tare/x/tare-x-sut"
    assert [each["type"] for each in config["linux"]["namespaces"]] == ["pid"]
    assert config["root"] == {"path": "/run/tare-task.tare-x-sut/root", "readonly": True}


def test_where_systemd_runs_it_makes_the_container_s_group_as_a_scope(bench: Bench) -> None:
    """A directory made by hand in a slice loses its limits when a neighbour ends."""
    bench.host.files["/proc/1/comm"] = b"systemd\n"
    bench.deployment.start(a_task())
    (run,) = (argv for argv in bench.host.ran() if "run" in argv)
    cgroup = "tare-x.slice:tare:x-sut"
    assert run[run.index("--runc-systemd-cgroup") :][:3] == ("--runc-systemd-cgroup", "--cgroup", cgroup)
    assert bench.config["linux"]["cgroupsPath"] == cgroup


def test_the_root_is_the_overlay_that_the_snapshotter_names(bench: Bench) -> None:
    bench.deployment.start(a_task())
    own = (*CTR, "snapshots", "--snapshotter", "overlayfs")
    assert (*own, "prepare", "tare-x-sut", "sha256:1") in bench.host.ran()
    (mount,) = (argv for argv in bench.host.ran() if argv[0] == "mount")
    assert mount[4:] == ("/run/tare-task.tare-x-sut/root", "-o", "lowerdir=/s/1/fs,upperdir=/s/2/fs")


@pytest.mark.parametrize(
    "network", [NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS, NetworkKind.POD]
)
def test_networks_that_dockerd_makes_are_refused_by_name(bench: Bench, network: NetworkKind) -> None:
    with pytest.raises(EnvironmentLacks, match=f"cannot publish ports, so it cannot use {network.value}"):
        bench.deployment.start(a_task(network=network))
    assert bench.left == set()


NETNS = "/run/tare-task.tare-x-sut/net"
PLUGIN = f"{DIRECTORIES[0]}/bridge"
ATTACHED = {"ips": [{"address": "10.231.4.2/29"}]}


def test_on_a_bridge_it_joins_a_namespace_that_cni_attached_before_it_began(bench: Bench) -> None:
    bench.host.answers[PLUGIN,] = text(json.dumps(ATTACHED))
    instance = bench.deployment.start(a_task(network=NetworkKind.BRIDGE))
    assert instance.address == "10.231.4.2"
    assert {"type": "network", "path": NETNS} in bench.config["linux"]["namespaces"]
    assert bench.config["hostname"] == "tare-x-sut"
    assert b"10.231.4.2\ttare-x-sut\n" in bench.host.files["/run/tare-task.tare-x-sut/hosts"]
    (call,) = (call for call in bench.host.asked if call.argv == (PLUGIN,))
    assert (call.env or {})["CNI_NETNS"] == NETNS
    ran = bench.host.ran()
    made = ran.index(("unshare", f"--net={NETNS}", "ip", "link", "set", "dev", "lo", "up"))
    begun = next(at for at, argv in enumerate(ran) if "run" in argv)
    assert made < ran.index((PLUGIN,)) < begun
    assert {Kind.RULES, Kind.LINK} <= bench.left


def test_a_bridge_goes_with_its_container(bench: Bench) -> None:
    bench.host.answers[PLUGIN,] = text(json.dumps(ATTACHED))
    bench.ended = (0, b"", True)
    instance = bench.deployment.start(a_task(network=NetworkKind.BRIDGE))
    bench.deployment.stop(instance, grace_s=0)
    commands = [(call.env or {})["CNI_COMMAND"] for call in bench.host.asked if call.argv == (PLUGIN,)]
    assert commands == ["ADD", "DEL"]
    assert bench.left == set()


def test_a_plug_in_that_fails_is_told_and_leaves_nothing(bench: Bench) -> None:
    bench.host.answers[PLUGIN,] = Completed((), 1, b'{"msg": "no addresses left"}')
    with pytest.raises(RunFailed, match="the CNI plug-in bridge does not attach tare-x-sut: no addresses left"):
        bench.deployment.start(
            replace(a_task(network=NetworkKind.BRIDGE), cgroup_parent=group_of("x", bench.ledger.owner))
        )
    assert not [argv for argv in bench.host.ran() if "run" in argv]
    bench.host.answers[PLUGIN,] = Completed((), 0)
    ledger = bench.ledger
    assert sweep(ledger.entries(), {"fake": bench.host}, None, ledger).failed == []
    assert bench.left == set()


def test_only_a_bridge_needs_plug_ins(bench: Bench) -> None:
    bench.host.answers["test", "-x"] = NONE
    assert lack(bench.host, NetworkKind.HOST) is None
    assert "the CNI plug-in bridge is in none of" in str(lack(bench.host, NetworkKind.BRIDGE))
    del bench.host.answers["test", "-x"]
    bench.host.answers["sh", "-c", "command -v nsenter"] = NONE
    assert "nsenter is missing on fake" in str(lack(bench.host, NetworkKind.BRIDGE))


def test_volumes_are_refused(bench: Bench) -> None:
    with pytest.raises(RunFailed, match="no volumes or layers"):
        bench.deployment.start(a_task(volumes=(Volume("data", "/data"),)))


def test_what_runc_refuses_is_told_in_its_words_and_leaves_nothing(bench: Bench) -> None:
    bench.ended = (1, b'ctr: failed to create shim task: exec: "serve": not found: unknown\n', False)
    with pytest.raises(RunFailed, match=r"tare-x-sut cannot be started: ctr: .*not found"):
        bench.deployment.start(a_task())
    assert bench.left == set()


def test_a_name_that_is_taken_is_told_and_its_container_left_alone(bench: Bench) -> None:
    bench.host.answers[*CTR, "containers", "ls", "-q"] = text("tare-x-sut\n")
    with pytest.raises(RunFailed, match="already has a container of that name"):
        bench.deployment.start(a_task())
    assert bench.left == set()
    assert not [argv for argv in bench.host.ran() if "delete" in argv]


def test_what_containerd_refuses_fails_the_run_in_its_words(bench: Bench) -> None:
    refused = RunFailed("ctr ended with 1 on fake: ctr: no space left on device")
    bench.host.answers[*CTR, "containers", "create"] = refused
    with pytest.raises(RunFailed, match="no space left on device"):
        bench.deployment.start(a_task())
    assert bench.left == set()


def test_a_shim_that_containerd_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_SETTLE_S", 0.2)
    files = {"/proc/self/mountinfo": b"", "/proc/4711/stat": STAT}
    host = FakeHost(answers={("pgrep", "-f"): text("4711\n")}, files=files)
    remove_container(host, f"t@{SOCKET}")
    assert ("python3", "-I", "-S", "-", "send", "4711", "77", "KILL") in host.ran()


def test_a_user_that_the_image_does_not_know_is_told(bench: Bench) -> None:
    with pytest.raises(RunFailed, match=r"tare-x-sut cannot be started: the image has no user 'nobody'"):
        bench.deployment.start(a_task(user="nobody"))


def test_a_program_that_does_not_begin_is_given_up_in_time(bench: Bench) -> None:
    bench.ended = (None, b"", False)  # type: ignore[assignment]  # it never ends
    with pytest.raises(TimedOut, match="containerd did not start it within"):
        bench.deployment.start(a_task())
    assert bench.left == set()


def test_a_program_that_ends_at_once_has_begun(bench: Bench) -> None:
    bench.ended = (7, b"the disk is full\n", True)
    instance = bench.deployment.start(a_task())
    assert bench.deployment.wait(instance, 1) == 7


def test_a_missing_or_refusing_client_says_what_to_install(bench: Bench) -> None:
    bench.host.answers[*CTR, "images", "ls", "-q"] = RunFailed("ctr cannot be run on fake: No such file")
    with pytest.raises(EnvironmentLacks, match=r"cannot be used: ctr cannot be run") as caught:
        bench.deployment.start(a_task())
    assert "package containerd" in (caught.value.hint or "")
    assert bench.left == set()


def test_without_a_socket_it_is_told_where_one_was_looked_for(bench: Bench) -> None:
    bench.host.answers["test", "-S"] = NONE
    with pytest.raises(EnvironmentLacks, match=r"no containerd runs on fake: /run/containerd/containerd\.sock and"):
        bench.deployment.start(a_task())
    assert "no containerd runs" in str(lack(bench.host))


def test_a_host_over_ssh_is_refused_before_anything_is_asked_of_it() -> None:
    assert lack(object.__new__(SshHost)) == FAR


def test_ctrs_own_variable_names_another_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "/run/mine.sock")
    assert find_socket(FakeHost()) == "/run/mine.sock"


def test_the_shims_command_line_tells_whose_container_it_is(bench: Bench) -> None:
    bench.host.files |= {
        "/proc/77/cmdline": b"/usr/bin/containerd-shim-runc-v2\0-namespace\0tare\0-id\0x\0-address\0/run/c.sock\0"
    }
    bench.host.answers[*CTR, "version"] = text("Client:\n  Version:  1\nServer:\n  Version:  1.6.20\n")
    bench.host.answers["runc", "--version"] = text("runc version 1.1.5\ncommit: x\n")
    instance = bench.deployment.start(a_task())
    stat = f"/proc/{instance.process.pid}/stat"
    bench.host.files[stat] = bench.host.files[stat].replace(b") S 0", b") S 77")
    assert bench.deployment._facts(instance) == ContainerdFacts(
        shim="containerd-shim-runc-v2",
        namespace="tare",
        socket="/run/c.sock",
        snapshotter="overlayfs",
        containerd="1.6.20",
        runtime="runc version 1.1.5",
    )


def test_what_a_killed_tare_left_is_swept_container_mount_and_snapshot(tmp_path: Path) -> None:
    root = "/run/tare-task.t/root"
    mounted = f"40 24 0:40 / {root} rw - overlay overlay rw\n".encode()
    own = (*CTR, "snapshots", "--snapshotter", "overlayfs")
    host = FakeHost(
        answers={
            (*CTR, "containers", "ls", "-q"): text("t\nother\n"),
            (*own, "ls"): text("KEY PARENT KIND\nt sha256:1 Active\nother sha256:1 Active\n"),
        },
        files={"/proc/self/mountinfo": mounted},
    )

    def unmounted(argv: Sequence[str], _: bytes) -> Completed:
        host.files["/proc/self/mountinfo"] = b""
        return Completed(tuple(argv), 0)

    host.answers["umount",] = unmounted
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.note(Kind.CONTAINERD, f"t@{SOCKET}", host="fake")
    swept = sweep(ledger.entries(), {"fake": host}, None, ledger)
    assert (swept.removed, swept.failed) == ([f"containerd container t@{SOCKET} on fake"], [])
    ran = host.ran()
    assert ran.index((*CTR, "containers", "delete", "t")) < ran.index((*own, "rm", "t"))
    assert not [argv for argv in ran if "other" in argv]


def test_a_task_that_does_not_go_stays_in_the_ledger(tmp_path: Path) -> None:
    host = FakeHost(
        answers={(*CTR, kind, "ls", "-q"): text("t\n") for kind in ("containers", "tasks")},
        files={"/proc/self/mountinfo": b""},
    )
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.note(Kind.CONTAINERD, f"t@{SOCKET}", host="fake")
    swept = sweep(ledger.entries(), {"fake": host}, None, ledger)
    assert "containerd does not stop t" in swept.failed[0]
    assert len(ledger.entries()) == 1


def test_of_a_containerd_that_is_gone_nothing_is_asked() -> None:
    host = FakeHost(answers={("test", "-S"): NONE}, files={"/proc/self/mountinfo": b""})
    assert remove_container(host, f"t@{SOCKET}") is False
    assert not [argv for argv in host.ran() if argv[0] == "ctr"]


def test_an_image_in_tares_namespace_goes_with_the_namespace() -> None:
    host = FakeHost(answers={(*CTR, "images", "ls", "-q"): text(f"{IMAGE}\n")})
    assert remove_node_image(host, f"{IMAGE}@{SOCKET}#{NAMESPACE}") is True
    assert host.ran()[-2:] == [
        (*CTR, "images", "rm", "--sync", IMAGE),
        ("ctr", "--address", SOCKET, "namespaces", "rm", NAMESPACE),
    ]


def test_an_image_that_was_not_unpacked_is_told() -> None:
    host = FakeHost(
        answers={
            (*CTR, "containers", "info"): text(json.dumps({"Spec": SPEC})),
            (*CTR, "snapshots", "--snapshotter", "overlayfs", "info"): text("{}"),
        }
    )
    with pytest.raises(RunFailed, match=f"no layer of {IMAGE}"):
        Client(host, SOCKET).default_of(IMAGE, "t")
