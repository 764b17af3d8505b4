"""A run whose bare server changed its own image fails, and names what was changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.run.conftest import Plans, Rig

from tare.deployments.fake import FakeDeployment
from tare.images import Image, ImageConfig
from tare.images.inodes import take
from tare.plan.model import Plan
from tare.sites import Site
from tare.sites.local import LocalHost

Prepare = Callable[[str], Image]


class Meddler(LocalHost):
    """A machine on which the tree changes whenever a file of a run is written."""

    def __init__(self, tree: Path) -> None:
        super().__init__()
        self._tree = tree

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        super().put(source, target, mode=mode)
        (self._tree / "etc" / "ld.so.preload").write_text("/evil.so")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "image" / "rootfs" / "etc").mkdir(parents=True)
    return tmp_path / "image" / "rootfs"


def placed(plan: Plan, deployment: str) -> Plan:
    """The plan with server and client in that deployment."""
    arms = []
    for arm in plan.study.arms:
        assert arm.settings.client is not None
        sut = arm.settings.sut.model_copy(update={"deployment": deployment})
        client = arm.settings.client.model_copy(update={"deployment": deployment})
        settings = arm.settings.model_copy(update={"sut": sut, "client": client})
        arms.append(arm.model_copy(update={"settings": settings}))
    study = plan.study.model_copy(update={"arms": tuple(arms)})
    return plan.model_copy(update={"study": study})


def image_in(tree: Path, owner: str | None) -> Prepare:
    image = Image("tar:x", "0" * 64, str(tree), None, ImageConfig(), owner=owner)
    take(LocalHost(), image)
    return lambda reference: replace(image, reference=reference)


def outcome(rig: Rig, plan: Plan, tree: Path, owner: str | None, host: LocalHost) -> str | None:
    rig.swap(
        prepare=image_in(tree, owner),
        site=Site(sut=host, client=host),
        deployments={"bare": FakeDeployment, "fake": FakeDeployment},
    )
    (record,) = rig.execute(plan)
    return record.outcome.reason


def test_what_the_server_changed_fails_the_run_by_name(rig: Rig, plans: Plans, tree: Path) -> None:
    reason = outcome(rig, placed(plans(), "bare"), tree, None, Meddler(tree))
    assert reason == 'a bare program changed the image tar:fake on local: "/etc/ld.so.preload" new, "/etc" changed'


def test_an_unchanged_tree_is_no_matter(rig: Rig, plans: Plans, tree: Path) -> None:
    assert outcome(rig, placed(plans(), "bare"), tree, None, LocalHost()) is None


@pytest.mark.parametrize(("deployment", "owner"), [("fake", None), ("bare", "12:34")])
def test_only_the_trees_that_programs_could_change_are_looked_at(
    rig: Rig, plans: Plans, tree: Path, deployment: str, owner: str | None
) -> None:
    assert outcome(rig, placed(plans(), deployment), tree, owner, Meddler(tree)) is None
