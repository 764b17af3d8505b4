"""What cannot take turns is refused where the study is read, with a way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tare.errors import StudyError
from tare.study.reading.load import load
from tare.study.registry import built_in

STUDY: dict[str, Any] = {
    "format": 1,
    "name": "paths",
    "question": "What does a bridge cost?",
    "sut": {"image": "redis-7", "database": "redis", "deployment": "container", "network": "host"},
    "client": {"image": "tare-load", "deployment": "bare", "network": "host"},
    "workload": {
        "name": "tare-load",
        "job": {"operations": [{"name": "get", "steps": [{"send": "PING"}]}]},
        "measure_s": 3,
    },
    "protocol": {"name": "rotate", "generations": 9},
    "factors": {"path": {"sets": ["sut.network"], "levels": {"host": {}, "bridge": {"sut.network": "bridge"}}}},
    "baseline": "host",
}


def read(directory: Path, **changes: Any) -> Any:
    """Read the study with these keys changed; a dot leads into a mapping."""
    study = json.loads(json.dumps(STUDY))
    for path, value in changes.items():
        *where, last = path.split("__")
        part = study
        for key in where:
            part = part.setdefault(key, {})
        part[last] = value
    file = directory / "study.yaml"
    file.write_text(json.dumps(study))
    return load(file, built_in())


def turns(turn_ms: float, settle_ms: float) -> dict[str, float]:
    return {"protocol__turn_ms": turn_ms, "protocol__settle_ms": settle_ms}


def test_generations_are_the_blocks(tmp_path: Path) -> None:
    assert read(tmp_path).protocol.blocks == 9


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload__rate": 100.0, "workload__trace": [0.1, 0.2]}, "set twice"),
        ({"workload__trace": [0.1, 0.2]}, "a trace or a climb of rates cannot be cut into turns"),
        ({"sut__limits": {"cpus": "0"}}, "`rotate` places servers on the CPUs 0 and clients on 1"),
        ({"client__cgroup": "root"}, "cannot be pinned to CPUs"),
        ({"sut__limits": {"cpu_quota": 0.5}}, "a CPU quota is granted for each 100 ms"),
        ({"sut__limits": {"cpu_quota": 0.5}, **turns(50, 100)}, "would not be held back"),
        ({"sut__limits": {"cpu_quota": 0.5}, **turns(300, 100)}, "a multiple of 200 ms"),
        ({"sut__limits": {"cpu_quota": 0.5}, **turns(400, 20)}, "settle for 100 ms"),
        ({"client__limits": {"cpu_quota": 0.5}}, "set protocol.turn_ms to 400 and settle_ms to 100"),
        ({"protocol__cpus": ["0-1", "1"]}, "CPU 1 is in both sets"),
        ({"protocol__looks": "any", "protocol__anytime": "sign-flip"}, "mirrored pairs"),
    ],
)
def test_what_cannot_take_turns_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        read(tmp_path, **changes)


def test_turns_of_whole_periods_may_have_a_quota(tmp_path: Path) -> None:
    study = read(tmp_path, sut__limits={"cpu_quota": 0.5}, **turns(400, 100))
    assert study.arms[0].settings.sut.limits.cpu_quota == 0.5


def test_cpus_may_be_the_studys_own(tmp_path: Path) -> None:
    study = read(tmp_path, protocol__cpus=None, sut__limits={"cpus": "0"})
    assert study.protocol.cpus is None


def test_sysbench_is_refused_and_tare_load_named(tmp_path: Path) -> None:
    sysbench = {"name": "sysbench", "script": "oltp_read_only", "threads": 1, "measure_s": 3}
    mariadb = {"image": "mariadb", "database": "mariadb", "deployment": "container", "network": "host"}
    client = {"image": "mariadb", "deployment": "bare", "network": "host"}
    with pytest.raises(StudyError, match="sysbench cannot take turns") as refused:
        read(tmp_path, workload=sysbench, sut=mariadb, client=client)
    assert "use tare-load" in str(refused.value)


def test_a_factor_of_stages_with_one_level_left_is_no_sequence(tmp_path: Path) -> None:
    load_of = {"sets": ["workload.rate"], "levels": {"closed": {}, "rate": {"workload.rate": 100.0}}}
    changes: dict[str, Any] = {
        "factors__load": load_of,
        "stages": "load",
        "baseline": {"path": "host"},
        "scales": {"one": {"only": {"load": ["closed"]}}},
        "protocol": {"name": "rotate"},
    }
    with pytest.raises(StudyError, match="arms that take turns have no stages yet"):
        read(tmp_path, **changes)
