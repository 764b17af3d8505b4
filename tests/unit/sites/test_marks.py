"""What bears no mark of tare's is left, whatever a ledger lists: hostile entries of every kind beside canaries."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import MagicMock

import pytest

from tare.deployments import marked
from tare.deployments.cgroup.hierarchy import cgroups_of
from tare.deployments.directories import is_there
from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import marks
from tare.sites.in_use import in_use
from tare.sites.layout import make_home
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost, own_process
from tare.sites.process import from_ident, identify, to_ident
from tare.sites.scratch import make_scratch
from tare.sites.sqlite_ledger import SqliteLedger

if TYPE_CHECKING:
    from docker import DockerClient

TABLE = Path(__file__).parents[3] / "crates/agent/tests/data/marks"
HOME = "/srv/tare"
OWNER = from_ident("4711:1234567:0f8a1d5c-8f5e-4b57-9d3b-2f0e6c1a7b42")


def rows() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [(verdict, kind, ident) for verdict, kind, ident in (line.split(" ", 2) for line in lines)]


def refuse_path(path: str) -> None:
    if not marks.is_below_own(path, HOME):
        raise RunFailed("not tare's")


def refuse_rules(ident: str) -> None:
    maker, _, tag = ident.partition(":")
    marks.refuse_rules(maker, tag, OWNER)


def refuse_token(token: str) -> None:
    if token != marks.token_of(OWNER):
        raise RunFailed("not tare's")


JUDGES: dict[str, Callable[[str], None]] = {
    "path": refuse_path,
    "token": refuse_token,
    "cgroup": lambda path: marks.refuse_cgroup(path, OWNER),
    "link": lambda name: marks.refuse_link(name, OWNER),
    "rules": refuse_rules,
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
    make_home(tmp_path / "home")
    canaries = [tmp_path / place / "precious" for place in ("var/lib/x", "opt/x/deep/er/data", "home/documents")]
    for canary in canaries:
        canary.parent.mkdir(parents=True)
        canary.write_text("x")
    aside = tmp_path / "home/work/aside"
    aside.parent.mkdir(parents=True)
    aside.symlink_to(tmp_path / "var/lib")
    with subprocess.Popen(["sleep", "600"]) as stranger:
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
                (Kind.CGROUP, "tare/0000_run"),
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


class Others:
    """An engine in which everything bears another tare's labels."""

    def __init__(self) -> None:
        labels = {marks.RUN_LABEL: "tare/x", marks.LABEL: to_ident(OWNER)}
        self.resource = MagicMock(labels=labels, attrs={"Labels": labels})
        self.containers = self.networks = self.volumes = self
        self.images = MagicMock()

    def get(self, _: str) -> MagicMock:
        return self.resource


def test_a_hostile_ledger_costs_nothing_in_an_engine(ledger: SqliteLedger) -> None:
    engine = Others()
    kinds = (Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME)
    for kind in kinds:
        ledger.note(kind, "postgres")
    ledger.note(Kind.IMAGE, "debian:12")
    swept = sweep(ledger.entries(), {"local": LocalHost()}, cast("DockerClient", engine), ledger)
    assert (swept.removed, len(swept.failed), len(ledger.entries())) == ([], len(kinds) + 1, len(kinds) + 1)
    assert sum("another tare made it than the one that the ledger names" in each for each in swept.failed) == 3
    engine.resource.remove.assert_not_called()
    engine.images.remove.assert_not_called()


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def canaries(tmp_path: Path) -> Iterator[dict[Kind, list[str]]]:
    """What others have on this machine, by kind; some look like those of another tare."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft"))):
        pytest.skip("canaries of every kind take root, ip and nft")
    digits = marks.digits_of(str(tmp_path), OWNER, 12)
    links, tables = [f"tarec{digits[:9]}", f"canary{digits[-9:]}"], [f"tare-{digits}", f"canary-{digits}"]
    place = tmp_path / "var/lib/x"
    place.mkdir(parents=True)
    # A new group of the controller cpuset, in cgroup v1, takes no process.
    names, cgroups = (f"canary-{digits}", f"tare/ffff_{digits}"), cgroups_of(LocalHost())
    groups = [[Path(each) for each in cgroups.directories(name) if "cpuset" not in each] for name in names]
    with ExitStack() as stack:
        for link in links:
            run("ip", "link", "add", "name", link, "type", "bridge")
            stack.callback(run, "ip", "link", "delete", "dev", link)
        for table in tables:
            run("nft", "add", "table", "ip", table)
            stack.callback(run, "nft", "delete", "table", "ip", table)
        run("mount", "-t", "tmpfs", "tmpfs", str(place))
        stack.callback(run, "umount", str(place))
        (place / "precious").write_text("x")
        members = [stack.enter_context(subprocess.Popen(["sleep", "600"])) for _ in names]
        for member, places in zip(members, groups, strict=True):
            stack.callback(member.kill)
            for group in places:
                group.mkdir(parents=True)
                stack.callback(left_by_member, member, group)
                (group / "cgroup.procs").write_text(str(member.pid))
        yield {
            Kind.LINK: links,
            Kind.RULES: [f"nftables:{digits}", f"nftables:canary-{digits}", "nftables:filter"],
            Kind.MOUNT: [str(place)],
            Kind.PATH: [str(place), str(place.parent)],
            Kind.CGROUP: [*names, "tare", "tare.slice", "system.slice"],
        }
        assert [member.poll() for member in members] == [None, None]
        assert (place / "precious").exists()
        assert all(f"{link}:" in run("ip", "-oneline", "link") for link in links)
        assert all(f"table ip {table}\n" in run("nft", "list", "tables", "ip") for table in tables)
        for member, places in zip(members, groups, strict=True):
            assert all(str(member.pid) in (group / "cgroup.procs").read_text().split() for group in places)


def left_by_member(member: subprocess.Popen[bytes], group: Path) -> None:
    member.kill()
    member.wait()
    group.rmdir()
    if group.parent.name == "tare":
        with suppress(OSError):  # a run of another test is there
            group.parent.rmdir()


def test_a_hostile_ledger_costs_no_canary(ledger: SqliteLedger, canaries: dict[Kind, list[str]]) -> None:
    hostile = [(kind, ident) for kind, idents in canaries.items() for ident in idents]
    for kind, ident in hostile:
        ledger.note(kind, ident)
    swept = sweep(ledger.entries(), {"local": LocalHost()}, None, ledger)
    assert (swept.removed, len(swept.failed), len(ledger.entries())) == ([], len(hostile), len(hostile))
    assert all("so it was left unchanged" in sentence for sentence in swept.failed)


@pytest.mark.parametrize("mark", [None, "", "1", "link"])
def test_a_directory_of_the_user_that_was_given_as_home_keeps_everything(tmp_path: Path, mark: str | None) -> None:
    ledger, alice = SqliteLedger(tmp_path / "made/ledger.sqlite"), tmp_path / "alice"
    names = ("images", "work/thesis", "snapshots/2019/summer")
    for name in names:
        (alice / name).mkdir(parents=True)
        (alice / name / "precious").write_text("x")
        ledger.note(Kind.PATH, str(alice / name))
    if mark == "link":
        (tmp_path / "inode").write_text(str(alice.stat().st_ino))
        (alice / marks.FILE).symlink_to(tmp_path / "inode")
    elif mark is not None:
        (alice / marks.FILE).write_text(mark)
    (tmp_path / "made/ledger.sqlite").rename(alice / "ledger.sqlite")
    there = SqliteLedger(alice / "ledger.sqlite")
    swept = sweep(there.entries(), {"local": LocalHost()}, None, there)
    assert swept.removed == []
    assert len(swept.failed) == len(names)
    assert all(f"{alice} bears no mark of tare's, so it was left unchanged" in each for each in swept.failed)
    assert all((alice / name / "precious").exists() for name in names)
    with pytest.raises(EnvironmentLacks, match="holds what tare did not make"), in_use(alice):
        pass


def test_a_home_is_made_or_found_empty_and_stays_one_that_is_moved(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    ledger = SqliteLedger(home / "ledger.sqlite")
    ledger.note(Kind.PATH, str(home / "work/run"))
    (home / "work/run").mkdir(parents=True)
    home.rename(tmp_path / "moved")
    moved = SqliteLedger(tmp_path / "moved/ledger.sqlite")
    moved.note(Kind.PATH, str(tmp_path / "moved/work/run"))
    sweep(moved.entries(), {"local": LocalHost()}, None, moved)
    assert not (tmp_path / "moved/work/run").exists()


def test_what_was_opened_is_removed_and_not_what_a_link_leads_to(tmp_path: Path) -> None:
    home, others = tmp_path / "home", tmp_path / "others"
    make_home(home)
    for place in (home / "work", others):
        (place / "run").mkdir(parents=True)
        (place / "run/file").write_text("x")
    opened = marked.opened(str(home / "work/run"), str(home))
    assert opened is not None
    (home / "work").rename(home / "moved")
    (home / "work").symlink_to(others)
    assert marked.remove(*opened) == 0
    assert (others / "run/file").exists()
    assert not (home / "moved/run").exists()


def test_a_process_that_this_tare_started_is_ended_and_so_is_its_child(
    tmp_path: Path, ledger: SqliteLedger
) -> None:
    host = LocalHost()
    argv = ["sh", "-c", "env -i sleep 600 & echo $! >pid; wait"]
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
        parent.wait(timeout=60)
    assert ledger.entries() == ()


def test_a_scratch_directory_bears_its_own_mark_and_a_copied_one_is_none(ledger: SqliteLedger) -> None:
    host = LocalHost()
    path, home = make_scratch(ledger, "test"), ledger.home("local")
    copy = Path(f"{str(path)[:-16]}{'0' * 16}")
    try:
        assert is_there(host, str(path), home)
        copy.mkdir()
        (copy / marks.FILE).write_text((path / marks.FILE).read_text())
        with pytest.raises(RunFailed, match=r"bears no mark of tare's, so it was left unchanged"):
            is_there(host, str(copy), home)
        (copy / marks.FILE).unlink()
        assert is_there(host, str(copy), home), "an empty one was being made by a tare that was killed"
        ledger.note(Kind.PATH, str(copy))
        assert sweep(ledger.entries(), {"local": host}, None, ledger).failed == []
        assert not path.exists()
        assert not copy.exists()
    finally:
        for place in (path, copy):
            subprocess.run(["rm", "-rf", "--", str(place)], check=True)


def test_an_empty_disk_of_its_own_may_be_a_home(tmp_path: Path) -> None:
    (tmp_path / "disk/lost+found").mkdir(parents=True)
    make_home(tmp_path / "disk")
    assert (tmp_path / "disk/.tare").exists()
