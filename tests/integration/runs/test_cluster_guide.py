"""Commands of the guide on many sites, on sites of fakes: a cluster with TLS, two tares on one store."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import preloaded
from tests.integration.stores.servers import DatabaseServer, database_server
from tests.unit.run.fleet.schedulers import ended, started_scheduler, tls_files

from tare.store import open_store, verify
from tare.store_place import parse_store_url
from tools.chaos.fleet import processes_of, sites_file
from tools.chaos.ground import FAKES, ROOT
from tools.chaos.studies import FAKES as STUDY

GUIDE = ROOT / "docs" / "guides" / "fleet.md"
LIMIT_S = 240


def section(title: str) -> str:
    return GUIDE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def place_with(tmp_path: Path, *sites: str) -> Path:
    (tmp_path / "sites.yaml").write_text(sites_file(sites))
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


@contextmanager
def started(words: list[str], place: Path, log: str, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (place / log).open("wb") as file:
        process = preloaded.Popen([*FAKES, *words[1:]], cwd=place, env=env, stdout=file, stderr=file)
    with ended([process]):
        yield process


def environment(place: Path, home: str = "home") -> dict[str, str]:
    return {
        **os.environ, "TARE_HOME": str(place / home), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        "FAKE_SITES": str(place / "sites"), "DOCKER_HOST": "unix:///nonexistent",
    }  # fmt: skip


def test_scheduler_workers_and_run_with_tls(tmp_path: Path) -> None:
    place, (scheduler, worker, run) = (
        place_with(tmp_path, "rack-1", "rack-2"),
        [shlex.split(line) for line in re.findall(r"^ *\$ (.*)$", section("An existing cluster"), re.MULTILINE)],
    )
    tls_files(place)
    assert scheduler[:2] == ["dask", "scheduler"]
    process, address = started_scheduler(place, *scheduler[2:])
    assert address.startswith("tls://")
    position = run.index("--scheduler") + 1

    def here(words: list[str], site: str = "rack-1") -> list[str]:
        own = {run[position]: address, "rack-1": site, "grambow-2018": "study.yaml"}
        return [own.get(word, word) for word in words if word not in ("--scale", "demo")]

    env = environment(place)
    with (
        ended([process]),
        started(here(worker), place, "rack-1.log", env),
        started(here(worker, "rack-2"), place, "rack-2.log", env),
        started(here(run), place, "run.log", env) as tare,
    ):
        assert tare.wait(LIMIT_S) == 0, (place / "run.log").read_text()
    store = open_store(place / "chaos-full-store")
    assert Counter(record.run_id for record in store.records()) == Counter(run.id for run in store.plan.runs)
    assert {record.site for record in store.records()} == {"rack-1", "rack-2"}
    assert verify(store) == ()
    end = time.monotonic() + 60
    while processes_of(place):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def database() -> Iterator[DatabaseServer]:
    with database_server() as server:
        yield server


@pytest.mark.slow
def test_two_tares_with_a_site_each_on_one_store(
    tmp_path: Path, database: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_with(tmp_path, "north", "south")
    lines = [
        shlex.split(line)
        for line in re.findall(r"^tare run .*$", section("Several tares on one store"), re.MULTILINE)
    ]
    given = lines[0][lines[0].index("--store") + 1]
    url = database.url(f"file://{tmp_path}/raw", parse_store_url(given).name)
    monkeypatch.setenv("PGPASSFILE", str(database.pgpass))
    assert [words[words.index("--site") + 1] for words in lines] == ["north", "south"]
    one, other = ([url if word == given else word for word in words] for words in lines)
    with (
        started(one, place, "north.log", environment(place, "home-north")) as north,
        started(other, place, "south.log", environment(place, "home-south")) as south,
    ):
        codes = north.wait(LIMIT_S), south.wait(LIMIT_S)
    assert codes == (0, 0), [(place / f"{site}.log").read_text() for site in ("north", "south")]
    monkeypatch.setenv("TARE_HOME", str(place / "home"))
    store = open_store(parse_store_url(url))
    assert Counter(record.run_id for record in store.records()) == Counter(run.id for run in store.plan.runs)
    by_block = {(record.block, record.site) for record in store.records()}
    assert len(by_block) == len({run.block for run in store.plan.runs})
    assert verify(store) == ()
