"""A study of container arms on two hosts over SSH, whose user there is not root and may use the engine."""

from __future__ import annotations

import json
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.rights.test_as_user import STUDY as ONE_HOST
from tests.unit.record.parts import as_tree

from tare.store import open_store
from tools import hosts
from tools.lab import TestHost

pytestmark = [pytest.mark.engine, pytest.mark.apart, pytest.mark.timed, pytest.mark.timeout(600)]

HOME = "/var/lib/of-user"
LEASE_S = 3.0
_LONGEST_S = 280
STUDY = (
    ONE_HOST.replace('network: host, limits: {cpus: "1"}', 'network: host, own_host: true, limits: {cpus: "1"}')
    .replace("measure_s: 1", "measure_s: 3")
    .replace("way:", "way:\n    sets: [sut.network, client.network]")
    .replace("bridge: {sut.network: bridge}", "boxed: {sut.network: published-address, client.network: bridge}")
)
BARE = ONE_HOST.replace('network: host, limits: {cpus: "1"}', "network: host, own_host: true").replace(
    "bridge: {sut.network: bridge}", "bare: {sut.deployment: bare}"
)
_TARE = f"""
import sys
from tare.sites.ssh.link import Link
Link.__init__.__kwdefaults__["lease_s"] = {LEASE_S}
from tare.__main__ import main
sys.argv[0] = "tare"
main()
"""


@dataclass(frozen=True)
class Pair:
    """Two hosts and the sites file by which their user reaches them."""

    hosts: tuple[TestHost, ...]
    user: str
    sites: Path

    def tare(self, *words: str, code: int = 0) -> str:
        argv = [sys.executable, "-m", "tare", *words, "--sites", str(self.sites)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stderr if code else done.stdout

    def gone(self, within_s: float) -> list[str]:
        """What is left after that time; an agent ends when it has answered."""
        deadline = time.monotonic() + within_s
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return left

    def left(self) -> list[str]:
        """Of tare's on either host: containers, networks, its own images, groups, processes of the user, data."""
        remaining: list[str] = []
        for host in self.hosts:
            asked = (
                ("docker", "ps", "-a", "--format", "{{.Names}}"),
                ("docker", "network", "ls", "--format", "{{.Name}}", "--filter", "label=org.tare-bench.run"),
                ("docker", "images", "--format", "{{.Repository}}", "tare/sidecar"),
                ("find", "/sys/fs/cgroup", "-path", "*/tare/*", "-type", "d"),
                ("pgrep", "-u", self.user, "-a", "tare-agent"),
                ("find", f"{HOME}/work", "-mindepth", "1"),
                ("find", f"{HOME}/agent", "-mindepth", "1", "-type", "d"),
            )
            for argv in asked:
                lines = hosts.ssh(host, *quoted(argv), check=False).stdout.splitlines()
                remaining += [f"{host.name} {line}" for line in lines]
        return remaining


def quoted(argv: tuple[str, ...]) -> list[str]:
    """ssh(1) hands a shell the words that it joins."""
    return [f"'{word}'" for word in argv]


@pytest.fixture(scope="module")
def pair(engine_pair: tuple[TestHost, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The user's own group is the engine's; they are in no other."""
    user = f"tare-{uuid4().hex[:8]}"
    create = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--shell",
        "/bin/sh",
        "--password",
        "*",
        user,
    ]
    subprocess.run(create, check=True, capture_output=True, timeout=60)
    try:
        for host in engine_pair:
            hosts.ssh(host, "chgrp", user, "/run/docker.sock")
            hosts.ssh(host, "install", "-d", "-m", "0700", "-o", user, "-g", user, HOME)
        place = tmp_path_factory.mktemp("sites") / "sites.yaml"
        place.write_text(sites_of(user, engine_pair))
        yield Pair(engine_pair, user, place)
    finally:
        for host in engine_pair:
            hosts.ssh(host, "pkill", "-KILL", "-u", user, check=False)
        subprocess.run(["userdel", user], check=True, capture_output=True, timeout=60)


def sites_of(user: str, pair: tuple[TestHost, ...], *roots: TestHost) -> str:
    def entry(host: TestHost) -> str:
        who = "root" if host in roots else user
        home = "" if host in roots else f"home: {HOME}, "
        return f"{{ssh: {who}@{host.name}, {home}address: {host.measured}, ssh_config: {host.lab.ssh_config}}}"

    server, client = pair
    return f"format: 1\nsites:\n  - {{name: pair, sut: {entry(server)}, client: {entry(client)}}}\n"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def not_yet(pair: Pair) -> list[str]:
    """Of what a running study has on a host, what is not there."""
    left = [each.partition(" ")[2] for each in pair.left()]
    of_run = [each for each in left if re.fullmatch(r"tare-[0-9a-f]+-[a-z0-9-]+", each)]
    seen = {"sidecar": "tare-sidecar-", "data": f"{HOME}/work/", "control group": "/sys/fs/cgroup/"}
    absent = [name for name, start in seen.items() if not any(each.startswith(start) for each in left)]
    return absent if of_run else [*absent, "server"]


def test_what_a_killed_tare_left_its_agents_remove_when_the_lease_is_over(
    pair: Pair, study: Path, tmp_path: Path
) -> None:
    study.write_text(STUDY.replace("measure_s: 3", "measure_s: 30"))
    words = ["run", str(study), "--store", str(tmp_path / "killed"), "--sites", str(pair.sites)]
    process = subprocess.Popen(
        [sys.executable, "-c", _TARE, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 150
        while not_yet(pair):
            assert process.poll() is None
            assert time.monotonic() < deadline, pair.left()
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert pair.left()
    assert pair.gone(120) == []


def test_a_study_of_container_arms_runs_between_hosts_of_a_user_and_leaves_nothing(
    pair: Pair, study: Path, tmp_path: Path
) -> None:
    account = pwd.getpwnam(pair.user)
    assert account.pw_uid != 0
    pair.tare("run", str(study), "--store", str(tmp_path / "store"))
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    assert {name: record.outcome.reason for name, record in records.items()} == {"host": None, "boxed": None}
    paths = {name: record.path for name, record in records.items()}
    assert {name: path and (path.hop, path.client_hop) for name, path in paths.items()} == {
        "host": ("wire", None),
        "boxed": ("dnat", "masquerade"),
    }
    for record in records.values():
        facts = as_tree(record.parity.sut)
        monitors: Any = record.monitors
        client = record.between and record.between.route_of("client")
        assert facts["binary_digest"].startswith("sha256:")
        assert (facts["cpus_allowed"], facts["memory_bytes"]) == ("0", 64 << 20)
        assert monitors["probe"].block_source == "none"
        assert client
        assert ((client.counters or {})["tx_packets"] or 0) > 0
    assert pair.gone(10) == []
    for host in pair.hosts:
        assert hosts.ssh(host, "test", "-e", f"{HOME}/images", check=False).returncode == 1
    pair.tare("clean", "--yes")
    for host in pair.hosts:
        assert hosts.ssh(host, "docker", "images", "-q").stdout == ""


@pytest.mark.slow  # tests/unit/run/test_lacks_of_hosts.py has the sentences
def test_a_bare_arm_is_refused_on_the_user_s_host_and_not_on_root_s(
    pair: Pair, study: Path, tmp_path: Path
) -> None:
    study.write_text(BARE)
    server, client = (host.name for host in pair.hosts)
    refused = pair.tare("run", str(study), "--store", str(tmp_path / "bare"), code=3)
    assert f"{server}: root, needed by bare tasks" in refused
    assert "(arms: bare)" in refused
    assert f"{client}: root" not in refused
    pair.sites.write_text(sites_of(pair.user, pair.hosts, pair.hosts[0]))
    try:
        pair.tare("plan", str(study))
    finally:
        pair.sites.write_text(sites_of(pair.user, pair.hosts))


@pytest.mark.slow  # tests/unit/test_doctor_rights.py has the lines
def test_doctor_tells_what_the_user_can_run(pair: Pair) -> None:
    argv = [sys.executable, "-m", "tare", "doctor", "--json", "--sites", str(pair.sites)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    for host in pair.hosts:
        lines = {line["name"]: line for line in json.loads(done.stdout)["hosts"][host.name]["lines"]}
        assert lines["root"]["found"].startswith(f"{pair.user} (user ")
        assert "studies of container arms work" in lines["root"]["found"]
    assert pair.gone(10) == []
