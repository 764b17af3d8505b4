"""Studies that come with tare, at demo scale from beginning to report; percona-2016 is in test_run.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tare.store import open_store, verify

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(7200)]

GRAMBOW = {"read_latency_mean": "Table 3, 10 threads", "update_latency_mean": "Table 3, 10 threads"}


def tare(cwd: Path, *words: str, codes: tuple[int, ...] = (0,)) -> bytes:
    command = [sys.executable, "-m", "tare", *words]
    done = subprocess.run(command, cwd=cwd, env=os.environ, capture_output=True, timeout=6000, check=False)
    assert done.returncode in codes, done.stderr.decode()[-3000:]
    return done.stdout


def reported(cwd: Path, study: str, scale: str) -> dict[str, Any]:
    """Its report as a program reads it, when every run was good; a control that differs is no fault of the run."""
    told = json.loads(
        tare(cwd, "run", study, "--scale", scale, "--store", "store", "--format", "json", "--quiet", codes=(0, 1))
    )
    store = open_store(cwd / "store")
    assert told["good"] == len(store.plan.runs)
    assert verify(store) == ()
    found: dict[str, Any] = json.loads(tare(cwd, "report", "store", "--format", "json", codes=(0, 1)))
    return found


def test_grambow_2018_shows_what_was_published_beside_what_was_measured(tmp_path: Path) -> None:
    found = reported(tmp_path, "grambow-2018", "demo")
    beside = [
        (each["arm"], each["metric"], each["published_where"])
        for each in (*found["findings"], *found["strata"])
        if each["published"] is not None and each["point"] is not None
    ]
    setups = {arm for arm, _, _ in beside}
    assert len(setups) == 3
    assert {(metric, where) for _, metric, where in beside} == set(GRAMBOW.items())
    shown = tare(tmp_path, "report", "store", "--format", "md", codes=(0, 1)).decode()
    assert "## By condition, as published and by tare" in shown


def test_bth_thesis_compares_clusters_of_three_nodes_and_asks_each_for_its_compactions(tmp_path: Path) -> None:
    found = reported(tmp_path, "bth-thesis", "demo")
    assert all(each["point"] is not None for each in found["findings"] if each["metric"] == "throughput")
    for record in open_store(tmp_path / "store").records():
        assert set(record.nodes or {}) == {"sut-1", "sut-2", "sut-3"}
        assert all(node.chronicle and node.chronicle.tables for node in (record.nodes or {}).values())


def test_seybold_2018_writes_and_reads_bare_and_in_containers_with_a_verdict_each(tmp_path: Path) -> None:
    found = reported(tmp_path, "seybold-2018", "demo")
    judged = {
        (each["levels"]["model"], each["levels"]["load"]): each["verdict"]
        for each in found["findings"]
        if each["metric"] == "throughput" and not each["control"]
    }
    loads = ("write-heavy-640M", "read-heavy-640M")
    assert set(judged) == {(model, load) for model in ("P-C-H", "P-C-L") for load in loads}
    assert all(judged.values()), judged
