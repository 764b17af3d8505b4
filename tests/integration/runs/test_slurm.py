"""Workers that a real Slurm starts, as the guide has it: by sbatch and by dask-jobqueue, on sites of fakes.

Jobs are cancelled and a node goes down in the middle; every run is there once in the end.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.integration.runs.slurm import Slurm, running
from tests.unit.run.fleet.schedulers import ended, started_scheduler

from tare.errors import StoreError
from tare.store import open_store, verify
from tools.chaos.fleet import processes_of, sites_file
from tools.chaos.ground import FAKES, ROOT
from tools.chaos.studies import FAKES as STUDY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SITES = ("rack-1", "rack-2")
GUIDE = ROOT / "docs" / "guides" / "fleet.md"
SCHEDULER = "tcp://10.0.0.1:8786"
_LONGEST_S = 150.0


def commands(program: str) -> list[list[str]]:
    """Those of the guide's section on Slurm."""
    section = GUIDE.read_text().partition("## Slurm\n")[2].partition("\n## ")[0]
    return [shlex.split(line) for line in re.findall(rf"^ *\$ ({program} .*)$", section, re.MULTILINE)]


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    room = Path(tempfile.mkdtemp(prefix="tare-slurm-"))  # not below pytest's: sockets' paths are short
    room.chmod(0o755)
    try:
        with running(room / "slurm", SITES) as started:
            yield started
    finally:
        shutil.rmtree(room, ignore_errors=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with sites of fakes and a study of them, and `bin` with commands that know both."""
    (tmp_path / "sites.yaml").write_text(sites_file(SITES))
    slow = STUDY.replace("blocks: 4", "blocks: 10, paired: true").replace("measure_s: 0.4", "measure_s: 1.5")
    (tmp_path / "study.yaml").write_text(slow)
    (tmp_path / "bin").mkdir()
    fakes = " ".join(map(shlex.quote, FAKES))
    for name, script in {"tare": f'exec {fakes} "$@"', "python": f'shift 2; exec {fakes} "$@"'}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(place: Path, slurm: Slurm) -> dict[str, str]:
    return {
        **slurm.env, "PATH": f"{place / 'bin'}:{slurm.env['PATH']}", "TARE_HOME": str(place / "home"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", "FAKE_SITES": str(place / "sites"),
        "DOCKER_HOST": "unix:///nonexistent",
    }  # fmt: skip


@contextmanager
def started(argv: list[str], place: Path, slurm: Slurm, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    with (place / "tare.log").open("wb") as log:
        tare = subprocess.Popen(argv, cwd=place, env={**environment(place, slurm), **more}, stdout=log, stderr=log)
    with ended([tare]):
        yield tare


def good(place: Path) -> Counter[str]:
    """Site → its good runs so far."""
    try:
        return Counter(str(record.site) for record in open_store(place / "store").records() if record.outcome.ok)
    except StoreError:
        return Counter()


def until(condition: Callable[[], object], place: Path) -> None:
    end = time.monotonic() + _LONGEST_S
    while not condition():
        logs = {path.name: path.read_text()[-3000:] for path in place.glob("*.[lo][ou][gt]")}
        assert time.monotonic() < end, logs
        time.sleep(0.2)


def begins_now(slurm: Slurm, job: str) -> bool:
    """Have a job begin that Slurm put back into the queue, where by itself it waits for two minutes.

    To ask more often would keep it from being scheduled at all.
    """
    with suppress(AssertionError):  # it runs already
        slurm.call("scontrol", "update", f"JobId={job}", "StartTime=now")
    time.sleep(5)
    return job in slurm.jobs().values()


def check(place: Path) -> None:
    store = open_store(place / "store")
    assert Counter(r.run_id for r in store.records() if r.outcome.ok) == Counter(run.id for run in store.plan.runs)
    assert not verify(store)
    places: dict[int, set[str | None]] = {}
    for record in store.records():
        places.setdefault(record.block, set()).add(record.site)
    assert set(map(len, places.values())) == {1}
    assert list((place / "store" / "staging").iterdir()) == []


def test_jobs_by_sbatch_are_cancelled_and_lose_their_node_and_every_run_is_made_once(
    place: Path, slurm: Slurm
) -> None:
    process, address = started_scheduler(place)
    submit = {site: [word.replace(SCHEDULER, address) for word in argv]
              for site, argv in zip(SITES, commands("sbatch"), strict=True)}  # fmt: skip
    (run,) = commands("tare")
    with ended([process]):
        for argv in submit.values():
            slurm.call(*argv, env=environment(place, slurm), cwd=place)
        until(lambda: set(slurm.jobs()) == set(SITES), place)
        with started([word.replace(SCHEDULER, address) for word in run], place, slurm) as tare:
            until(lambda: all(good(place)[site] >= 1 for site in SITES), place)
            first, before = slurm.jobs()["rack-1"], good(place)["rack-1"]
            slurm.call("scancel", first)
            until(lambda: "rack-1" not in slurm.jobs("RUNNING,COMPLETING"), place)
            slurm.call(*submit["rack-1"], env=environment(place, slurm), cwd=place)
            until(lambda: good(place)["rack-1"] > before + 1, place)
            again = slurm.jobs()["rack-2"]
            slurm.call("scontrol", "update", "NodeName=rack-2", "State=DOWN", "Reason=test")
            until(lambda: slurm.node("rack-2") == "down", place)
            slurm.call("scontrol", "update", "NodeName=rack-2", "State=RESUME")
            until(lambda: slurm.node("rack-2") == "idle", place)
            until(lambda: begins_now(slurm, again), place)
            assert tare.wait(_LONGEST_S) == 0, (place / "tare.log").read_text()
    check(place)
    until(lambda: not slurm.call("squeue", "--noheader").strip(), place)  # they end with the scheduler
    until(lambda: processes_of(place) == [], place)


def test_dask_jobqueue_makes_a_cluster_whose_jobs_are_workers_of_sites(place: Path, slurm: Slurm) -> None:
    shutil.copy(ROOT / "docs" / "examples" / "fleet" / "on_slurm.py", place)
    (argv,) = commands("python")
    here = json.dumps({"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"})
    given = {
        "DASK_JOBQUEUE__SLURM__PYTHON": str(place / "bin" / "python"),
        "DASK_JOBQUEUE__SLURM__SCHEDULER_OPTIONS": here,
    }
    with started([sys.executable, *argv[1:]], place, slurm, **given) as cluster:
        until(lambda: all(good(place)[site] >= 1 for site in SITES), place)
        assert set(slurm.jobs()) == set(SITES)
        assert cluster.wait(_LONGEST_S) == 0, (place / "tare.log").read_text()
    check(place)
    assert set(good(place)) == set(SITES)
    until(lambda: not slurm.call("squeue", "--noheader").strip(), place)
    assert os.environ.get("SLURM_CONF") is None
    until(lambda: processes_of(place) == [], place)
