"""Rootless Podman as the engine of a container: who carries the traffic, limits, owners, nothing left behind."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.deployments.test_network_path import dialled, free_port, wait_until_listening

from tare.deployments import Bind, Deployment, Instance, Limits, Task
from tare.deployments.network.path import observe_path
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.sweep import sweep
from tare.doctor import Verdict
from tare.doctor.runtimes import named_engine_lines, pasta_line
from tare.errors import EnvironmentLacks
from tare.images import Image
from tare.images.engine_image import import_tree, remove_image
from tare.record.network_path import Hop
from tare.sites.engine import engine_facts
from tare.sites.engines import EngineLedger, Engines, connect_to
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind
from tools import rootless
from tools.rootless import Rootless

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
NAME = "tare/rootless-test:1"
NATIVE = pytest.mark.parametrize("user", ["native"], indirect=True)
"""For what does not depend on the overlay."""


@pytest.fixture(scope="module", params=["native", "fuse"])
def user(request: pytest.FixtureRequest) -> Iterator[Rootless]:
    """A user whose Podman answers, with an overlay of the kernel's and one by fuse-overlayfs."""
    with rootless.made(fuse=request.param == "fuse") as one, pytest.MonkeyPatch.context() as patch:
        patch.setenv(rootless.VARIABLE, one.address)
        yield one
    assert one.name not in [each.pw_name for each in pwd.getpwall()]
    assert not one.state.exists()


@pytest.fixture(scope="module")
def podman(user: Rootless) -> Iterator[DockerClient]:
    client = connect_to("podman-rootless")
    yield client
    client.close()


@pytest.fixture(scope="module")
def users_image(podman: DockerClient, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The very tree that bare tasks and Docker's containers have."""
    engine_id = import_tree(podman, image, tmp_path_factory.mktemp("scratch"), NAME)
    yield replace(image, engine_id=engine_id)
    remove_image(podman, NAME)


@pytest.fixture
def of_user(podman: DockerClient, host: LocalHost, ledger: SqliteLedger) -> Deployment:
    return DEPLOYMENTS["container"](host, EngineLedger(ledger, "podman-rootless"), podman)


@pytest.fixture
def room() -> Iterator[Path]:
    """A directory that the user may go to, as pytest's own are not."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@NATIVE
@pytest.mark.parametrize(
    ("network", "hop", "carrier"),
    [  # passt of 2023 is called `passt.avx2` where it uses what the CPU has, whatever it was started as
        (NetworkKind.HOST, Hop.LOOPBACK, None),
        (NetworkKind.ROOTLESSPORT, Hop.ROOTLESSPORT, "rootlessport"),
        (NetworkKind.SLIRP4NETNS, Hop.SLIRP4NETNS, "slirp4netns"),
        (NetworkKind.PASTA, Hop.PASTA, "pas"),
    ],
)
def test_each_network_is_carried_by_the_program_that_it_names(  # noqa: PLR0917 - fixtures
    of_user: Deployment, bare: Deployment, users_image: Image, podman: DockerClient, make_task: MakeTask,
    started: Started, host: LocalHost, ledger: SqliteLedger, user: Rootless, network: NetworkKind, hop: Hop,
    carrier: str | None,
) -> None:  # fmt: skip
    """And limits are in force that no user may set here: tare sets them, before the program begins."""
    port = free_port(host)
    bind = "127.0.0.1" if network is NetworkKind.HOST else "0.0.0.0"
    serve = ("httpd", "-f", "-p", f"{bind}:{port}", "-h", "/tmp")
    limits = Limits(cpus="0", memory_bytes=64 << 20, cpu_quota=0.5, cpu_weight=50)
    task = make_task(*serve, name="server", network=network, port=port, limits=limits)
    server = started(of_user, replace(task, image=users_image))
    wait_until_listening(host, server, port)
    place = dialled(server, NetworkKind.HOST)
    call = f"sleep 1000 | nc {place.address} {place.port}"
    client = started(bare, make_task("sh", "-c", call, name="client"))
    deadline = time.monotonic() + 60
    while (path := observe_path(host, client, server)) is None or path.hop is None:
        assert time.monotonic() < deadline, path
        time.sleep(0.05)
    assert path.hop is hop
    assert (path.client_namespace == path.server_namespace) is (hop is Hop.LOOPBACK)
    if carrier is None:
        assert (path.carrier, path.proxy) == (None, None)
    else:
        assert path.carrier is not None
        assert path.carrier.name.startswith(carrier)
        assert (path.carrier.user, path.carrier.namespace) == (user.uid, path.client_namespace)
    seen, beside = of_user.observe(server), bare.observe(client)
    assert (seen.cpus_allowed, seen.cpu_quota, seen.memory_bytes) == ("0", 0.5, 64 << 20)
    assert seen.limits == beside.limits
    assert seen.oom_score_adj == beside.oom_score_adj
    assert {path.rpartition("/")[0] for path in seen.cgroups.values()} == {f"/{task.cgroup_parent}"}
    assert seen.id_map is not None
    assert seen.id_map.startswith(f"0:{user.uid}:1,1:")
    assert beside.id_map == "0:0:4294967295"
    assert of_user.exec(server, ["cat"], timeout_s=20, stdin=b"hello").stdout == b"hello"
    bare.stop(client, 1.0)
    of_user.stop(server, 1.0)
    assert not podman.containers.list(all=True)
    assert ledger.entries() == ()
    assert_nothing_left_of(user)


def assert_nothing_left_of(user: Rootless) -> None:
    """No process but the service and what holds its namespace; conmon ends just after its container is removed."""
    deadline = time.monotonic() + 60
    while left := left_of(user):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def left_of(user: Rootless) -> list[str]:
    """The user's processes but the service and what holds its namespace."""
    names = []
    for pid in rootless.processes_of(user.uid):
        with suppress(OSError):  # it has just ended
            names.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return [name for name in names if name not in {"podman", "catatonit", "podman pause"}]


def test_the_tasks_files_are_the_namespaces_while_it_runs_and_come_back(  # noqa: PLR0917 - fixtures
    of_user: Deployment, users_image: Image, make_task: MakeTask, started: Started, room: Path, user: Rootless,
    host: LocalHost,
) -> None:  # fmt: skip
    data = room / "data"
    data.mkdir(mode=0o750)
    (data / "seed").write_text("sown")
    for place in (data, data / "seed"):
        os.chown(place, 900, 901)
    task = make_task(
        "sh", "-c", "cat /data/seed > /data/grown && id -u && sleep 1000", binds=(Bind(str(data), "/data"),)
    )
    instance = started(of_user, replace(task, image=users_image))
    deadline = time.monotonic() + 60
    while not (data / "grown").exists() or (data / "grown").read_text() != "sown":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    outside = int((of_user.observe(instance).id_map or "").split(",")[1].split(":")[1]) + 899
    assert (data / "seed").stat().st_uid == (data / "grown").stat().st_uid == outside
    of_user.stop(instance, 1.0)
    assert Path(task.output.stdout).read_text() == "900\n"
    assert {((data / name).stat().st_uid, (data / name).stat().st_gid) for name in ("seed", "grown", ".")} == {
        (900, 901)
    }


@NATIVE
def test_a_directory_that_the_user_may_not_enter_is_told(
    of_user: Deployment, users_image: Image, make_task: MakeTask, room: Path, user: Rootless
) -> None:
    (room / "closed" / "data").mkdir(parents=True)
    (room / "closed").chmod(0o700)
    task = make_task("true", binds=(Bind(f"{room}/closed/data", "/data"),))
    with pytest.raises(EnvironmentLacks, match=rf"user {user.uid}, who runs Podman, cannot enter .*/closed "):
        of_user.start(replace(task, image=users_image))


def test_what_a_killed_tare_left_is_swept(  # noqa: PLR0917 - fixtures
    podman: DockerClient, users_image: Image, host: LocalHost, ledger: SqliteLedger, tmp_path: Path, user: Rootless
) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "from tare.deployments import Limits, Task\n"
        "from tare.deployments.registry import DEPLOYMENTS\n"
        "from tare.images import Image, ImageConfig\n"
        "from tare.sites import Output\n"
        "from tare.sites.engines import EngineLedger, connect_to\n"
        "from tare.sites.local import LocalHost\n"
        "from tare.sites.marks import group_of\n"
        "from tare.sites.sqlite_ledger import SqliteLedger\n"
        "from tare.study.values import NetworkKind\n"
        f"home, image = Path({str(tmp_path)!r}), Image('x', 'y', '/', {users_image.engine_id!r}, ImageConfig())\n"
        "ledger = EngineLedger(SqliteLedger(home / 'ledger.sqlite'), 'podman-rootless')\n"
        "task = Task('tare-killed-sut', image, ('sleep', '1000'), Output(str(home / 'o'), str(home / 'e')),\n"
        "            group_of('killed', ledger.owner_on('local')), network=NetworkKind.PASTA, port=21999,\n"
        "            limits=Limits(cpus='0'))\n"
        "deployment = DEPLOYMENTS['container'](LocalHost(), ledger, connect_to('podman-rootless'))\n"
        "deployment.exec(deployment.start(task), ['true'], timeout_s=20)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, timeout=90)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [each.name for each in podman.containers.list()] == ["tare-killed-sut"]
    others = Engines(host)
    swept = sweep(ledger.abandoned(), {"local": host}, None, ledger, others)
    others.close()
    assert swept.failed == []
    assert "container tare-killed-sut@podman-rootless on local" in swept.removed
    assert not podman.containers.list(all=True)
    assert ledger.entries() == ()
    assert_nothing_left_of(user)


def test_it_says_what_it_is_and_what_it_may_not(
    podman: DockerClient, host: LocalHost, request: pytest.FixtureRequest, user: Rootless
) -> None:
    facts = engine_facts(podman, host)
    assert (facts.engine, facts.engine_rootless) == ("podman", True)
    assert ((facts.engine_id_maps or {})["uidmap"] or [])[0] == {"container_id": 0, "host_id": user.uid, "size": 1}
    program = facts.engine_storage_program
    fuse = "fuse" in request.node.callspec.id
    assert (program is not None and program.endswith("fuse-overlayfs")) is fuse


@NATIVE
def test_doctor_starts_something_with_it_and_with_each_of_its_networks(
    host: LocalHost, podman: DockerClient
) -> None:
    tried = [*named_engine_lines(host, "podman-rootless"), pasta_line(host)]
    lines = {line.name: line for line in tried}
    for name in ("engine podman-rootless", "network rootlessport", "network slirp4netns", "network pasta"):
        assert lines[name].verdict is Verdict.OK, lines[name]
        assert "works" in lines[name].found


def test_a_user_without_numbers_for_others_is_told_before_anything_is_made(
    image: Image, make_task: MakeTask, host: LocalHost, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rootless.made(numbers=0) as user:
        monkeypatch.setenv(rootless.VARIABLE, user.address)
        client = connect_to("podman-rootless")
        task = replace(make_task("true"), image=replace(image, engine_id="sha256:0"))
        of_user = DEPLOYMENTS["container"](host, EngineLedger(ledger, "podman-rootless"), client)
        with pytest.raises(EnvironmentLacks, match=r"has no range of ids in /etc/subuid .*usermod --add-subuids"):
            of_user.start(task)
        client.close()
    assert ledger.entries() == ()


def test_a_command_ended_by_a_signal_to_its_group_leaves_no_user() -> None:
    """As `timeout` sends it. The service went before the command, and the user stayed with its processes."""
    argv = [sys.executable, "-m", "tools.rootless", "run", "sh", "-c", f"echo ${rootless.VARIABLE}; exec sleep 600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        name = Path(process.stdout.readline().strip().removeprefix("unix://")).parent.name
        assert name in _users()
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) != 0
    assert name not in _users()
    assert not (rootless.STATE / name).exists()


def test_a_signal_before_the_command_starts_leaves_no_user() -> None:
    """Signals were passed on only once the command ran; before, they ended the program without its clean-up."""
    before = _users()
    argv = [sys.executable, "-m", "tools.rootless", "run", "sleep", "600"]
    with subprocess.Popen(argv, start_new_session=True) as process:
        while not (made := _users() - before):
            assert process.poll() is None
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not made & _users()
    assert not any((rootless.STATE / name).exists() for name in made)


def _users() -> set[str]:
    return {each.pw_name for each in pwd.getpwall() if each.pw_name.startswith("tare-")}
