"""A study of container arms by a user who is not root and may use the engine: from `doctor` to the report."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.sites.engine import RUN_LABEL, connect
from tare.store import open_store

pytestmark = pytest.mark.engine

ROOT = Path(__file__).resolve().parents[3]
_LONGEST_S = 280
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
    """Who may do no more than use the engine. `python`: words that start an interpreter which has tare."""

    name: str
    home: Path
    python: tuple[str, ...]
    environment: dict[str, str]

    def command(self, *words: str) -> list[str]:
        account = pwd.getpwnam(self.name)
        own = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", f"--groups={socket_group()}"]
        given = [f"{name}={value}" for name, value in self.environment.items()]
        return ["setpriv", *own, "env", "-i", f"HOME={self.home}", *given, *self.python, *words]

    def tare(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            self.command("-m", "tare", *words),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout


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


def left_in(engine: DockerClient) -> list[str]:
    """Containers and networks of any tare's, and names of sidecars' images."""
    containers = engine.containers.list(all=True, filters={"label": RUN_LABEL}, ignore_removed=True)
    networks = engine.networks.list(filters={"label": RUN_LABEL})
    images = [tag for image in engine.images.list() for tag in image.tags if tag.startswith("tare/sidecar:")]
    return [str(each.name) for each in containers] + [str(each.name) for each in networks] + images


def groups_of_tare() -> set[str]:
    return {path for top in Path("/sys/fs/cgroup").glob("*/tare") for path, _, _ in os.walk(top)}


def records_of(user: User) -> list[Any]:
    return list(open_store(user.home / "store").records())


def test_a_study_of_container_arms_runs_to_its_report_and_leaves_nothing(
    user: User, study: Path, engine: DockerClient
) -> None:
    before = groups_of_tare()
    done = subprocess.run(
        user.command("-m", "tare", "doctor", "--json"), capture_output=True, timeout=120, check=False, cwd=user.home
    )
    lines = {line["name"]: line for line in json.loads(done.stdout)["lines"]}
    assert "studies of container arms work" in lines["rights"]["found"]
    user.tare("plan", str(study))
    user.tare("run", str(study), "--profile", "--store", "store")
    records = records_of(user)
    assert [record.outcome.ok for record in records] == [True, True]
    assert {record.path["hop"] for record in records} == {"loopback", "bridge"}
    for record in records:
        sut = record.parity["sut"]
        assert sut["binary_digest"].startswith("sha256:")
        assert {"net", "mnt", "pid"} <= set(sut["namespaces"])
        assert (sut["cpus_allowed"], sut["memory_bytes"]) == ("0", 64 << 20)
        assert all("/tare/" in path for path in sut["cgroups"].values())
        assert record.monitors["probe"]["block_source"] == "none"
    assert "as-user" in user.tare("report", "store")
    explained = " ".join(user.tare("explain", "store").split())
    assert "waiting: run queue" in explained
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 0:
        assert "no stacks were sampled: kernel.perf_event_paranoid is" in explained
        assert "CPU time by side, from the kernel's counters, and waiting are told" in explained
    assert left_in(engine) == []
    assert groups_of_tare() <= before
    home = user.home / ".local" / "share" / "tare"
    assert list((home / "work").iterdir()) == []
    user.tare("clean", "--yes")
    assert not any(path.is_file() for path in (home / "images").rglob("*") if path.name != "lock")
    assert not [tag for image in engine.images.list() for tag in image.tags if str(home) in tag]


def test_what_a_killed_tare_left_the_next_one_removes(user: User, study: Path, engine: DockerClient) -> None:
    before = groups_of_tare()
    process = subprocess.Popen(
        user.command("-m", "tare", "run", str(study), "--store", "killed"),
        cwd=user.home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while len(left_in(engine)) < 3:  # the sidecar with its image, and a server
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert left_in(engine)
    user.tare("clean", "--yes")
    assert left_in(engine) == []
    assert groups_of_tare() <= before
    assert list((user.home / ".local" / "share" / "tare" / "work").iterdir()) == []


def test_a_bare_arm_is_refused_with_what_would_work(user: User, study: Path) -> None:
    bare = user.home / "bare.yaml"
    bare.write_text(STUDY.replace("bridge: {sut.network: bridge}", "bare: {sut.deployment: bare}"))
    bare.chmod(0o644)
    refused = user.tare("run", str(bare), "--store", "bare", code=3)
    assert "root is needed for bare tasks" in refused
    assert "(arms: bare)" in refused
    assert "servers and clients are all containers" in refused
