"""The guide's part on machines from a cloud: its commands do what it says, in its order, on moto's EC2."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.unit.sites.cloud.aws import Aws
from tests.unit.sites.cloud.calls import done

from tare.sites.cloud.ec2.offering import Image
from tare.sites.cloud.plan import load_plan
from tare.sites.file import load_sites

ROOT = Path(__file__).resolve().parents[4]
GUIDE = (ROOT / "docs" / "guides" / "fleet.md").read_text()
PART = GUIDE.partition("\n## Machines from a cloud\n")[2].partition("\n## ")[0]
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^\s*\$ (tare .*)$", PART, re.MULTILINE)]
NEEDS_HOSTS = ("doctor", "run")


def test_the_plan_that_it_shows_is_the_one_that_its_commands_use() -> None:
    shown = re.sub(r"^   ", "", re.search(r"```yaml\n(.*?)```", PART, re.DOTALL)[1], flags=re.MULTILINE)  # type: ignore[index]  # it has one
    used = next(Path(word) for words in COMMANDS for word in words if word.endswith("plan.yaml"))
    assert YAML(typ="safe").load(shown) == YAML(typ="safe").load((ROOT / used).read_text())


def test_its_commands_make_list_and_destroy_machines(
    aws: Aws, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image(aws.image(), "debian-12-amd64-20261101", "x86_64", "/dev/xvda")
    monkeypatch.setattr("tare.sites.cloud.ec2.provider.image_of", lambda *_: image)
    (place / "docs").symlink_to(ROOT / "docs")
    there = []
    for words in COMMANDS:
        if words[0] in NEEDS_HOSTS:
            named = [site.name for site in load_sites(place / words[words.index("--sites") + 1]).sites]
            assert words[words.index("--site") + 1] in named if "--site" in words else len(named) == 2
        else:
            done(*words)
        there.append(len(aws.instances()))
    assert there == [0, 4, 4, 4, 4, 0, 0]
    assert aws.left() == []


def test_the_plan_of_grambow_2018_names_a_machine_larger_than_both_sizes_of_the_source() -> None:
    plan = load_plan(ROOT / "studies" / "grambow-2018" / "machines.yaml")
    readme = (ROOT / "studies" / "grambow-2018" / "README.md").read_text()
    assert f"`{plan.types.sut}`" in readme
    assert (plan.sites, plan.machines) == (20, 40)
