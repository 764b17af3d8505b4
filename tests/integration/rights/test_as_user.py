"""A study of container arms by a user who is not root and may use the engine: from `doctor` to the report."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient
from docker.models.containers import Container
from tests.integration.image_tags import image_tags
from tests.unit.record.parts import as_tree

from tare.sites.engine import connect
from tare.sites.marks import LABEL, RUN_LABEL
from tare.sites.process import from_ident
from tare.store import open_store

pytestmark = [pytest.mark.engine, pytest.mark.apart]

ROOT = Path(__file__).resolve().parents[3]
_LONGEST_S = 280
SIDECAR_LABEL = "tare/sidecar"
STUDY = """
format: 1
name: as-user
question: What does a bridge cost a server that does next to nothing?
sut:
  image: echo
  database: echo
  deployment: container
  network: host
  limits: {cpus: "0", memory: 64M}
client: {image: tare-load, deployment: container, network: host, limits: {cpus: "1"}}
workload:
  name: tare-load
  connections: 1
  job:
    operations: [{name: ask, steps: [{send: "GET 100", expect: {bytes: 100}}]}]
    load: {records: 1, steps: [{send: "SET {record} x"}]}
  warmup_s: 0.2
  measure_s: 1
  window_s: 0.5
protocol: {name: fixed, blocks: 1, retries: 0, seed: 1, control: false}
factors:
  way:
    levels:
      host: {}
      bridge: {sut.network: bridge}
baseline: host
"""


@dataclass(frozen=True)
class User:
    """Who may do no more than use the engine.

    `python`: words that start an interpreter which has tare. `pids`: of the tares that were started.
    """

    name: str
    home: Path
    python: tuple[str, ...]
    environment: dict[str, str]
    pids: list[int] = field(default_factory=list)

    def command(self, *words: str) -> list[str]:
        account = pwd.getpwnam(self.name)
        own = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", f"--groups={socket_group()}"]
        given = [f"{name}={value}" for name, value in self.environment.items()]
        return ["setpriv", *own, "env", "-i", f"HOME={self.home}", *given, *self.python, *words]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start tare; `setpriv` and `env` become it, so that it has their process's number."""
        process = subprocess.Popen(
            self.command("-m", "tare", *words),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pids.append(process.pid)
        return process

    def tare(self, *words: str, code: int = 0) -> str:
        process = self.start(*words)
        try:
            output, errors = process.communicate(timeout=_LONGEST_S)
        finally:
            process.kill()
        assert process.returncode == code, errors
        return errors if code else output


def socket_group() -> int:
    address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return Path(address.removeprefix("unix://")).stat().st_gid


@pytest.fixture(scope="module")
def user() -> Iterator[User]:
    name, home = f"tare-{uuid4().hex[:8]}", Path(tempfile.mkdtemp(dir="/var/tmp"))
    create = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", str(home), name]
    subprocess.run(create, check=True, capture_output=True, timeout=60)
    try:
        account = pwd.getpwnam(name)
        os.chown(home, account.pw_uid, account.pw_gid)
        home.chmod(0o700)
        yield with_python(User(name, home, (), {"PATH": os.defpath + ":/usr/sbin:/sbin"}))
    finally:
        subprocess.run(["userdel", name], check=True, capture_output=True, timeout=60)
        shutil.rmtree(home)


def with_python(user: User) -> User:
    """The tests' own interpreter may lie where no other user goes; then the machine's, with the same packages."""
    packages = os.pathsep.join((str(ROOT / "python"), sysconfig.get_path("purelib")))
    for python, more in ((sys.executable, {}), ("/usr/bin/python3", {"PYTHONPATH": packages})):
        tried = User(user.name, user.home, (python,), {**user.environment, **more})
        done = subprocess.run(
            tried.command("-c", "import tare.__main__, pydantic_core"), capture_output=True, timeout=60, check=False
        )
        if done.returncode == 0:
            return tried
    pytest.skip("no Python that another user may start has tare's packages: the checkout lies where only root goes")


@pytest.fixture
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=30)
    yield client
    client.close()


@pytest.fixture
def study(user: User) -> Path:
    path = user.home / "study.yaml"
    path.write_text(STUDY)
    path.chmod(0o644)
    return path


def containers_of(engine: DockerClient, user: User) -> list[Container]:
    """Those of the user's tares. Other tests make and remove theirs at the same time."""
    made = engine.containers.list(all=True, filters={"label": RUN_LABEL}, ignore_removed=True)
    return [each for each in made if from_ident(each.labels[LABEL]).pid in user.pids]


def left_in(engine: DockerClient, user: User) -> list[str]:
    """Containers and networks of the user's tares, and images of sidecars.

    Other tests make containers and networks at the same time, but no sidecars: those that do run in one group.
    """
    networks = engine.networks.list(filters={"label": RUN_LABEL})  # one request: none is asked for by itself
    left = [str(each.name) for each in containers_of(engine, user)]
    left += [str(each.name) for each in networks if from_ident(each.attrs["Labels"][LABEL]).pid in user.pids]
    return left + [tag for tag in image_tags(engine) if tag.startswith("tare/sidecar:")]


def groups_of(engine: DockerClient, user: User) -> dict[str, set[str]]:
    """By their label: control groups of the user's containers that run, and those of their runs.

    The kernel names them: with systemd as the engine's driver the label is no path, and the sidecar's never is one.
    """
    groups = defaultdict[str, set[str]](set)
    for container in containers_of(engine, user):
        try:
            lines = Path(f"/proc/{container.attrs['State']['Pid']}/cgroup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):  # it does not run yet, or no longer
            continue
        for path in (line.split(":", 2)[2] for line in lines):
            groups[label := container.labels[RUN_LABEL]].add(path)
            if label != SIDECAR_LABEL:
                assert_is_a_runs(path)
                groups[label].add(str(PurePosixPath(path).parent))
    return groups


def assert_is_a_runs(group: str) -> None:
    """As plain groups or slices of systemd: a container's own group, in that of its run, in tare's."""
    assert re.search(r"/tare(/|\.slice/)[^/]+/[^/]+$", group), group


def groups_at(places: Iterable[str]) -> list[str]:
    """Those of the control groups that exist, in version 2's hierarchy at the root and in those below it."""
    root = Path("/sys/fs/cgroup")
    tops = [root, *(top for top in root.iterdir() if top.is_dir())]
    return [str(group) for place in places for top in tops if (group := top / place.lstrip("/")).exists()]


def records_of(user: User) -> list[Any]:
    return list(open_store(user.home / "store").records())


def test_a_study_of_container_arms_runs_to_its_report_and_leaves_nothing(
    user: User, study: Path, engine: DockerClient
) -> None:
    done = subprocess.run(
        user.command("-m", "tare", "doctor", "--json"), capture_output=True, timeout=120, check=False, cwd=user.home
    )
    lines = {line["name"]: line for line in json.loads(done.stdout)["lines"]}
    assert "studies of container arms work" in lines["root"]["found"]
    user.tare("plan", str(study))
    user.tare("run", str(study), "--profile", "--store", "store")
    records = records_of(user)
    assert [record.outcome.ok for record in records] == [True, True]
    assert {record.path and record.path.hop for record in records} == {"loopback", "bridge"}
    for record in records:
        sut = as_tree(record.parity.sut)
        assert sut["binary_digest"].startswith("sha256:")
        assert {"net", "mnt", "pid"} <= set(sut["namespaces"])
        assert (sut["cpus_allowed"], sut["memory_bytes"]) == ("0", 64 << 20)
        assert sut["cgroups"]
        for path in sut["cgroups"].values():
            assert_is_a_runs(path)
        assert groups_at(sut["cgroups"].values()) == []
        assert record.monitors["probe"].block_source == "none"
    assert "as-user" in user.tare("report", "store")
    explained = " ".join(user.tare("explain", "store").split())
    assert "waiting: run queue" in explained
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 0:
        assert "no stacks were sampled: kernel.perf_event_paranoid is" in explained
        assert "CPU time by side, from the kernel's counters, and waiting are shown" in explained
    assert left_in(engine, user) == []
    home = user.home / ".local" / "share" / "tare"
    assert list((home / "work").iterdir()) == []
    user.tare("clean", "--yes")
    assert not any(path.is_file() for path in (home / "images").rglob("*") if path.name != "lock")
    assert not [tag for tag in image_tags(engine) if str(home) in tag]


def test_what_a_killed_tare_left_the_next_one_removes(user: User, study: Path, engine: DockerClient) -> None:
    process = user.start("run", str(study), "--store", "killed")
    try:
        deadline = time.monotonic() + 120
        # The sidecar with its image, and a server; both run.
        while len(left_in(engine, user)) < 3 or len(groups := groups_of(engine, user)) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.kill()
        process.communicate(timeout=60)
    places = set[str]().union(*groups.values())
    assert groups_at(places)
    assert left_in(engine, user)
    user.tare("clean", "--yes")
    assert left_in(engine, user) == []
    assert groups_at(places) == []
    assert list((user.home / ".local" / "share" / "tare" / "work").iterdir()) == []


def test_a_bare_arm_is_refused_with_what_would_work(user: User, study: Path) -> None:
    bare = user.home / "bare.yaml"
    bare.write_text(STUDY.replace("bridge: {sut.network: bridge}", "bare: {sut.deployment: bare}"))
    bare.chmod(0o644)
    refused = user.tare("run", str(bare), "--store", "bare", code=3)
    assert "root, needed by bare tasks" in refused
    assert "(arms: bare)" in refused
    assert "servers and clients are all containers" in refused
