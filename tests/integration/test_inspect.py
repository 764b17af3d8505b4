"""`tare inspect` at containers that were made for a trap, and at one that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient
from docker.types import LogConfig, Ulimit

from tare.images import Image
from tare.sites.local import own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident

pytestmark = pytest.mark.engine

SERVER = "printf '%s' {name} > /proc/$$/comm; while :; do sleep 1; done"
"""A program that is called as the database is, and does nothing."""
Start = Callable[..., str]


def inspect(*words: str, code: int | None = 1) -> str:
    """Output of the command. `code`: `None` for 0 or 1, where the host decides whether a trap is met."""
    argv = [sys.executable, "-m", "tare", "inspect", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr
    return done.stdout


def server(*words: str, code: int | None = 1) -> dict[str, Any]:
    (only,) = json.loads(inspect(*words, "--json", code=code))["servers"]
    return dict(only)


def met(looked: dict[str, Any]) -> dict[str, Any]:
    return {each["trap"]: each for each in looked["met"]}


@pytest.fixture
def start(engine: DockerClient, image: Image) -> Iterator[Start]:
    made = []

    def make(program: str, **given: Any) -> str:
        name = f"tare-test-inspect-{uuid4().hex[:8]}"
        container = engine.containers.create(
            str(image.engine_id),
            entrypoint=["/bin/sh", "-c", SERVER.format(name=program)],
            name=name,
            labels={LABEL: to_ident(own_process())},
            environment={"PASSWORD": "hunter2"},
            stop_signal="KILL",
            **{"log_config": LogConfig(type="json-file", config={"max-size": "1m"}), **given},
        )
        made.append(container)
        container.start()
        return name

    yield make
    for container in made:
        container.remove(force=True)


def test_traps_that_a_container_was_made_for_are_named_with_their_evidence(start: Start) -> None:
    given = {"log_config": LogConfig(type="json-file"), "network_mode": "none"}
    postgres = server(start("postgres", **given))
    assert (postgres["database"], postgres["placed"]) == ("postgresql", "container")
    assert {"shm-64m", "log-unlimited"} <= met(postgres).keys()
    evidence = met(postgres)["shm-64m"]["evidence"]["shm.bytes"]
    assert evidence["value"] == 64 << 20
    assert f"/proc/{postgres['process']}/mountinfo" in evidence["where"]
    nofile = [Ulimit(name="nofile", soft=1024, hard=1024)]
    mariadb = server(start("mariadbd", ulimits=nofile, mem_limit="64m", network_mode="none"))
    assert {"nofile-low", "names-looked-up"} <= met(mariadb).keys()
    assert mariadb["facts"]["cgroup.memory_limit_bytes"]["value"] == 64 << 20


def test_what_a_container_was_given_is_no_trap(start: Start) -> None:
    nofile = [Ulimit(name="nofile", soft=8192, hard=8192)]
    name = start("postgres", shm_size=1 << 30, ulimits=nofile, network_mode="none")
    postgres = server(name, code=None)
    assert not {"shm-64m", "log-unlimited", "nofile-low", "quota-throttled", "docker-proxy"} & met(postgres).keys()
    assert {"shm-64m", "log-unlimited", "docker-proxy"} <= set(postgres["fine"])
    of_host = {"proactive-reclaim", "stolen-time", "slow-clock", "power-saving-governor", "conntrack-nearly-full"}
    assert met(postgres).keys() <= of_host | {"many-rules", "data-in-layer"}


def test_a_look_changes_nothing_and_tells_no_secret(start: Start, engine: DockerClient) -> None:
    name = start("redis-server", network_mode="none")
    before = engine.containers.get(name).attrs
    mounts = Path("/proc/self/mountinfo").read_text()
    text, tree = inspect(name, code=1), inspect(name, "--json", code=1)
    assert "hunter2" not in text + tree
    assert max(len(line) for line in text.splitlines() if "docker run" not in line and ": {" not in line) <= 100
    after = engine.containers.get(name).attrs
    assert (before["State"], before["ExecIDs"]) == (after["State"], after["ExecIDs"])
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_a_quota_shows_under_load_only_while_it_is_watched(start: Start, engine: DockerClient) -> None:
    name = start("redis-server", cpu_period=100_000, cpu_quota=5_000, network_mode="none")
    engine.containers.get(name).exec_run(["sh", "-c", "while :; do :; done"], detach=True)
    looked = server(name, "--watch", "2s")
    share = met(looked)["quota-throttled-under-load"]["evidence"]["load.throttled_share"]["value"]
    assert share > 0.2
    assert "quota-throttled-under-load" in server(name)["needs_watch"]


def test_a_process_is_looked_at_without_an_engine() -> None:
    looked = server(str(os.getpid()), code=None)
    assert (looked["placed"], looked["engine"]) == ("process", "none")
    assert not {"shm-64m", "log-unlimited", "docker-proxy"} & met(looked).keys()


def test_a_study_is_written_for_the_trap_and_wrong_words_are_refused(start: Start, tmp_path: Path) -> None:
    name, place = start("postgres", network_mode="none"), tmp_path / "study.yaml"
    inspect(name, "--trap", "shm-64m", "--study", str(place), code=1)
    assert "sut.limits.shm: 64M" in place.read_text()
    inspect("no-such-container", code=2)
    inspect(name, "--watch", "soon", code=2)
    inspect(name, "--all", code=2)
    inspect(name, "--engine", "rocket", code=2)
