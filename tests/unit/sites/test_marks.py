"""What bears no mark of tare's is left, whatever a ledger lists: hostile entries of every kind beside canaries."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.deployments.sweep import sweep
from tare.errors import RunFailed
from tare.sites import marks
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost, own_process
from tare.sites.process import identify, to_ident
from tare.sites.scratch import make_scratch
from tare.sites.sqlite_ledger import SqliteLedger

TABLE = Path(__file__).parents[3] / "crates/agent/tests/data/marks"
HOME = "/srv/tare"


def rows() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [(verdict, kind, ident) for verdict, kind, ident in (line.split(" ", 2) for line in lines)]


def refuse_path(path: str) -> None:
    if not marks.is_below_own(path, HOME):
        raise RunFailed("not tare's")


JUDGES: dict[str, Callable[[str], None]] = {
    "path": refuse_path,
    "cgroup": marks.refuse_cgroup,
    "link": marks.refuse_link,
    "image": marks.refuse_image,
    "node-image": marks.refuse_node_image,
}


@pytest.mark.parametrize(("verdict", "kind", "ident"), rows())
def test_names_are_judged_as_the_shared_table_has_them(verdict: str, kind: str, ident: str) -> None:
    if verdict == "own":
        JUDGES[kind](ident)
    else:
        with pytest.raises(RunFailed):
            JUDGES[kind](ident)


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "home" / "ledger.sqlite")


def test_a_hostile_ledger_costs_nothing(tmp_path: Path, ledger: SqliteLedger) -> None:
    canaries = [tmp_path / place / "precious" for place in ("var/lib/x", "opt/x/deep/er/data", "home/documents")]
    for canary in canaries:
        canary.parent.mkdir(parents=True)
        canary.write_text("x")
    aside = tmp_path / "home/work/aside"
    aside.parent.mkdir(parents=True)
    aside.symlink_to(tmp_path / "var/lib")
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            process = identify(LocalHost(), stranger.pid)
            assert process is not None
            hostile = [
                *((Kind.PATH, str(canary.parent)) for canary in canaries),
                *((Kind.MOUNT, str(canary.parent)) for canary in canaries[:2]),
                *((Kind.PATH, path) for path in ("/var/lib", "/home/alice", "/run", "relative", f"{aside}/x")),
                (Kind.PROCESS, to_ident(process)),
                (Kind.SERVER, to_ident(process)),
                (Kind.PROCESS, "nonsense"),
                (Kind.CGROUP, "system.slice"),
                (Kind.CGROUP, "tare/../system.slice"),
                (Kind.LINK, "lo"),
                (Kind.RULES, "iptables:KUBE"),
                (Kind.RULES, "nonsense"),
                (Kind.NODE_IMAGE, "docker.io/library/redis:7@/run/containerd/containerd.sock"),
            ]
            for kind, ident in hostile:
                ledger.note(kind, ident)
            swept = sweep(ledger.entries(), {"local": LocalHost()}, None, ledger)
            assert swept.removed == []
            assert len(swept.failed) == len(hostile)
            assert all("could not be removed: " in sentence for sentence in swept.failed)
            assert all(canary.exists() for canary in canaries)
            assert aside.is_symlink()
            assert stranger.poll() is None
            assert len(ledger.entries()) == len(hostile)
        finally:
            stranger.kill()


def test_a_process_that_this_tare_started_is_ended_and_so_is_its_child(
    tmp_path: Path, ledger: SqliteLedger
) -> None:
    host = LocalHost()
    argv = ["sh", "-c", "env -i sleep 60 & echo $! >pid; wait"]
    marked = {"PATH": os.environ["PATH"], marks.MADE_BY: to_ident(own_process())}
    with subprocess.Popen(argv, cwd=tmp_path, env=marked, start_new_session=True) as parent:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            assert parent.poll() is None
        for pid in (parent.pid, int((tmp_path / "pid").read_text())):  # the newest goes first
            process = identify(host, pid)
            if process is not None:  # sh ends with its last child
                ledger.note(Kind.PROCESS, to_ident(process))
        swept = sweep(ledger.entries(), {"local": host}, None, ledger)
        assert swept.failed == []
        assert swept.removed
        parent.wait(timeout=30)
    assert ledger.entries() == ()


def test_a_scratch_directory_bears_its_own_mark_and_a_copied_one_is_none(ledger: SqliteLedger) -> None:
    host = LocalHost()
    path, home = make_scratch(ledger, "test"), ledger.home("local")
    copy = Path(f"{str(path)[:-16]}{'0' * 16}")
    try:
        assert marks.is_there(host, str(path), home)
        copy.mkdir()
        (copy / marks.FILE).write_text((path / marks.FILE).read_text())
        with pytest.raises(RunFailed, match=r"bears no mark of tare's, so it was left unchanged"):
            marks.is_there(host, str(copy), home)
        (copy / marks.FILE).unlink()
        assert marks.is_there(host, str(copy), home), "an empty one was being made by a tare that was killed"
        ledger.note(Kind.PATH, str(copy))
        assert sweep(ledger.entries(), {"local": host}, None, ledger).failed == []
        assert not path.exists()
        assert not copy.exists()
    finally:
        for place in (path, copy):
            subprocess.run(["rm", "-rf", "--", str(place)], check=True)
