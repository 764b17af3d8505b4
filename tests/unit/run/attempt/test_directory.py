"""A run's directory is root's alone, unless a user's engine has to reach its files by the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.unit.run.conftest import Plans, Rig

from tare.deployments.fake import FakeDeployment
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE
from tare.run.attempt.directory import WorkDirectory, closed_to_others, make_work_directory
from tare.sites.engines import Engines
from tare.sites.layout import close_caches
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import EngineName

NOBODY = 65534
ROOTS, USERS = EngineFacts(engine_rootless=False), EngineFacts(engine_rootless=True)


@pytest.mark.parametrize(
    ("as_root", "engines", "closed"),
    [
        (True, (None,), True),
        (True, (ROOTS,), True),
        (True, (USERS,), False),
        (True, (ROOTS, USERS), False),
        (False, (None,), False),
        (None, (None,), False),
    ],
)
def test_roots_is_closed_but_to_a_users_engine(
    as_root: bool | None, engines: Sequence[EngineFacts | None], closed: bool
) -> None:
    assert closed_to_others(HostFacts(tare_is_root=as_root), engines) == closed


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that other users can enter, as pytest's own cannot be."""
    with tempfile.TemporaryDirectory(prefix="tare-test-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="takes root and setpriv")
@pytest.mark.parametrize("closed", [True, False])
def test_a_set_uid_program_in_its_data_is_out_of_others_reach(open_place: Path, closed: bool) -> None:
    workdir = WorkDirectory(LocalHost(), str(open_place / "work" / "run"))
    make_work_directory(workdir, SqliteLedger(open_place / "ledger"), closed=closed)
    program = Path(workdir.raw, "sh")
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    by_shell = ["sh", "-c", 'exec "$0"', str(program)]  # setpriv itself still has its capabilities
    ran = subprocess.run([*drop, *by_shell], timeout=60, check=False, capture_output=True)
    assert (ran.returncode == 0) is not closed


def test_an_attempt_of_roots_closes_its_directory(rig: Rig, plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.swap(host_facts=lambda: HostFacts(name="test", tare_is_root=True))
    modes, give = set[int](), WorkDirectory.give

    def seen(workdir: WorkDirectory, path: str, image: Any) -> None:
        modes.add(Path(workdir.path).stat().st_mode & 0o777)
        give(workdir, path, image)

    monkeypatch.setattr(WorkDirectory, "give", seen)
    assert rig.execute(plans())[0].outcome.ok
    assert modes == {0o700}


class NamedEngines(Engines):
    """Engines that answer with their name, and whether a user runs them."""

    def facts(self, name: str) -> EngineFacts:
        """Facts by the name alone."""
        return EngineFacts(engine=name, engine_rootless=name == "podman-rootless")


class ByEngine(FakeDeployment):
    """A fake whose tasks an engine makes."""

    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE,)


@pytest.mark.parametrize(
    ("engines", "names", "closed"),
    [
        (("docker", "podman-rootless"), ["docker", "podman-rootless"], False),
        (("podman-rootless", "docker"), ["podman-rootless", "docker"], False),
        (("docker", "docker"), ["docker"], True),
        ((None, "podman-rootless"), ["podman-rootless", "default"], False),
        (("podman", None), ["podman", "default"], True),
        ((None, None), ["default"], True),
    ],
)
def test_every_engine_of_a_run_decides_whether_its_directory_is_closed(
    rig: Rig, plans: Plans, engines: tuple[EngineName | None, EngineName | None], names: list[str], closed: bool
) -> None:
    """Found by review: the SUT's Docker alone was asked, and each start of a client in a user's Podman failed."""
    rig.swap(
        engines=NamedEngines(),
        engine_facts=lambda: EngineFacts(engine="default", engine_rootless=False),
        deployments={"fake": ByEngine},
    )
    settings = plans().study.arms[0].settings
    assert settings.client is not None
    sides = {"sut": settings.sut.model_copy(update={"engine": engines[0]}),
             "client": settings.client.model_copy(update={"engine": engines[1]})}  # fmt: skip
    facts = rig.machine.facts_of_engines(settings.model_copy(update=sides), rig.machine.site.sut)
    assert [each and each.engine for each in facts] == names
    assert closed_to_others(HostFacts(tare_is_root=True), facts) is closed


def test_a_bare_side_asks_no_engine_besides_the_named_one(rig: Rig, plans: Plans) -> None:
    rig.swap(engines=NamedEngines(), engine_facts=lambda: pytest.fail("the default engine is asked"))
    settings = plans().study.arms[0].settings
    named = settings.model_copy(update={"sut": settings.sut.model_copy(update={"engine": "podman"})})
    assert [each and each.engine for each in rig.machine.facts_of_engines(named)] == ["podman"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's tare closes its directories")
def test_the_caches_of_an_older_home_are_closed_when_a_study_starts(rig: Rig, plans: Plans, tmp_path: Path) -> None:
    layout, other = rig.machine.layout, tmp_path / "somebody"
    for folder in (layout.images, layout.snapshots):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
    assert rig.execute(plans())[0].outcome.ok
    assert [folder.stat().st_mode & 0o777 for folder in (layout.images, layout.snapshots)] == [0o700, 0o700]
    other.mkdir(mode=0o755)
    shutil.rmtree(layout.images)
    layout.images.symlink_to(other)
    close_caches(LocalHost(), layout)
    assert other.stat().st_mode & 0o777 == 0o755, "a link is left alone"
