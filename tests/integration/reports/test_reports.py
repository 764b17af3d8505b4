"""Public reports of databases that behave differently in a container, made for real: each has its trap's name.

docs/reference/traps.md links the reports. One study varies what several of them are about, one setting an arm.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded

from tare.record.run_record import RunRecord
from tare.store.read import open_store

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

IMAGES = ("mariadb", "sysbench")
BASE = """\
format: 1
name: reports
question: What does a setting that nobody chose cost?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  network: bridge
  settings:
    {innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M, skip_name_resolve: true, character_set_server: utf8mb4}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 6}
protocol: {name: fixed, blocks: 1, control: false}
"""
ONE_EACH = (
    BASE
    + """\
factors:
  way:
    sets:
      - sut.limits.nofile
      - sut.limits.cpu_quota
      - sut.settings.character_set_server
      - sut.settings.skip_name_resolve
      - sut.storage.kind
      - sut.network
      - sut.confinement.seccomp
      - sut.sysctls.net.core.somaxconn
    levels:
      usual: {}
      few-files: {sut.limits.nofile: 1024}
      throttled: {sut.limits.cpu_quota: 0.1}
      latin: {sut.settings.character_set_server: latin1}
      looked-up: {sut.settings.skip_name_resolve: false}
      layer: {sut.storage.kind: layer}
      published: {sut.network: published-loopback}
      filtered: {sut.confinement.seccomp: no-rings.json}
      short-queue: {sut.sysctls.net.core.somaxconn: 100}
baseline: usual
"""
)
TRAP_OF = {
    "few-files": "nofile-low",
    "throttled": "quota-throttled-under-load",
    "latin": "character-set-latin1",
    "looked-up": "names-looked-up",
    "layer": "data-in-layer",
    "published": "docker-proxy",
    "filtered": "io-uring-forbidden",
    "short-queue": "somaxconn-low",
}
"""Arm → the trap that it was made for."""
NO_RINGS = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {
            "names": ["io_uring_setup", "io_uring_enter", "io_uring_register"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 1,
        }
    ],
}


def tare(*words: str, cwd: Path, code: int = 0) -> str:
    done = preloaded.run([sys.executable, "-m", "tare", *words], cwd=cwd, timeout=600)
    assert done.returncode == code, done.stderr + done.stdout[-2000:]
    return str(done.stdout) + str(done.stderr)


def ran(text: str, place: Path, code: int = 0, images: Sequence[str] = IMAGES) -> str:
    """What `tare run` says of a study; its store is `store`."""
    for image in images:
        tare("images", "build", image, cwd=place)
    (place / "study.yaml").write_text(text)
    (place / "no-rings.json").write_text(json.dumps(NO_RINGS))
    return tare("run", "study.yaml", "--store", "store", "--quiet", cwd=place, code=code)


def records(place: Path) -> Mapping[str, RunRecord]:
    return {each.arm: each for each in open_store(place / "store").records() if each.outcome.ok}


def traps(place: Path) -> Mapping[str, set[str]]:
    """Arm → traps by which `tare explain` sets it apart from its baseline."""
    explained: Any = json.loads(tare("explain", "store", "--format", "json", cwd=place))
    apart: dict[str, set[str]] = {}
    for trap in explained["traps"]:
        for arm in trap["arms"]:
            apart.setdefault(arm, set()).add(trap["trap"])
    return apart


def test_each_arm_of_one_setting_is_set_apart_by_its_trap(tmp_path: Path) -> None:
    ran(ONE_EACH, tmp_path)
    apart = traps(tmp_path)
    assert {arm: trap for arm, trap in TRAP_OF.items() if trap not in apart.get(arm, set())} == {}
    report = tare("report", "store", cwd=tmp_path)
    for arm, trap in TRAP_OF.items():
        assert f"[{trap}]" in report, arm
    good = records(tmp_path)
    assert int((good["few-files"].effective or {})["table_open_cache"]) < int(
        (good["usual"].effective or {})["table_open_cache"]
    )
    seen = good["filtered"].parity.sut
    assert seen is not None
    assert (seen.seccomp_forbids or "").split() == ["io_uring_setup", "io_uring_enter", "io_uring_register"]


@pytest.mark.parametrize(
    ("level", "trap"),
    [
        ("sut.limits.nofile: 1024", "nofile-low"),
        ("sut.settings.character_set_server: latin1", "character-set-latin1"),
    ],
)
def test_a_setting_that_no_factor_names_is_refused_by_its_trap_with_the_remedy(
    level: str, trap: str, tmp_path: Path
) -> None:
    factor = f"factors: {{way: {{levels: {{usual: {{}}, other: {{{level}}}}}}}}}\nbaseline: usual\n"
    text = ran(BASE + factor, tmp_path, code=5)
    assert "[" + trap + "]" in " ".join(text.split())
    assert "Remedy: " in text
    report = tare("report", "store", cwd=tmp_path, code=1)
    assert f"[{trap}]" in report


def test_bare_beside_an_engine_and_beside_its_hooks_differ_by_the_trap_of_netfilter(tmp_path: Path) -> None:
    factor = """\
factors:
  way:
    sets: [sut.network, sut.deployment, client.network]
    levels:
      untracked: {sut.deployment: bare, sut.network: untracked, client.network: shared}
      as-is: {sut.deployment: bare, sut.network: host}
baseline: untracked
"""
    ran(BASE + factor, tmp_path)
    tracked = records(tmp_path)["as-is"].host.netfilter_conntrack
    assert ("netfilter-on-loopback" in traps(tmp_path).get("as-is", set())) == (tracked is True)


def test_tcp_against_a_baseline_at_a_unix_socket_is_a_trap_by_name(tmp_path: Path) -> None:
    factor = """\
factors:
  way:
    sets: [sut.network, sut.deployment]
    levels:
      unix: {sut.deployment: bare, sut.network: socket}
      tcp: {sut.deployment: bare, sut.network: host}
      boxed: {sut.network: bridge}
baseline: unix
"""
    ran(BASE + factor, tmp_path)
    assert "tcp-on-one-host" in traps(tmp_path)["tcp"]
    assert "tcp-on-one-host" not in traps(tmp_path).get("boxed", set())
