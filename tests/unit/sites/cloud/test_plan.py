"""Machine plans: what is read, and the line, key and hint of each fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tare.errors import StudyError
from tare.sites.cloud.plan import DiskSpec, ImageSearch, MachinePlan, MachineTypes, load_plan, plan_in, resolve
from tare.sites.cloud.schema import PLAN_SCHEMA
from tare.sites.file import load_sites
from tare.study.reading.document import parse
from tare.study.values import Strict

ROOT = Path(__file__).resolve().parents[4]
PLANS = sorted(
    [*(ROOT / "studies").glob("*/machines*.yaml"), *(ROOT / "docs" / "examples").glob("machines/*.yaml")]
)
GOOD = """\
format: 1
name: grambow
study: grambow-2018
provider: ec2
region: eu-central-1
zone: eu-central-1a
machine: {sut: m5.large, client: m5.xlarge}
image: {owner: "136693071363", name: debian-12-amd64-*}
sites: 20
nodes: 1
placement: cluster
disk: {size_gb: 100, kind: gp3, iops: 3000}
spot: false
lifetime_h: 20
ssh_from: 203.0.113.7/32
network: subnet-0abc
address: public
user: admin
packages: [docker.io]
"""
OPENSTACK = """\
format: 1
name: seybold
study: seybold-2018
provider: openstack
region: RegionOne
machine: m1.medium
image: debian-12
lifetime_h: 8.5
ssh_from: 2001:db8::/64
external_network: public
placement: spread
disk: {size_gb: 20}
"""


def test_what_is_left_out_has_defaults() -> None:
    plan = resolve(parse(OPENSTACK, "p"))
    assert plan.types == MachineTypes(sut="m1.medium", client="m1.medium")
    assert (plan.sites, plan.nodes, plan.machines, plan.user, plan.address) == (1, 1, 2, "root", "public")


def test_machines_are_those_of_all_sites_with_their_clients() -> None:
    assert resolve(parse(GOOD.replace("nodes: 1", "nodes: 3"), "p")).machines == 80


FAULTS = [
    (GOOD, "format: 1", "format: 2", "p:1:1: format: format 2 is newer than this tare"),
    (GOOD, "name: grambow\n", "name: Grambow\n", "p:2:1: name: 'Grambow' is not a name of lowercase letters"),
    (GOOD, "study: grambow-2018", "study: a/b", "p:3:1: study: 'a/b' is not a plain name"),
    (GOOD, "provider: ec2", "provider: ec3", "p:4:1: provider: unknown value 'ec3' (did you mean \"ec2\"?)"),
    (GOOD, "region: eu-central-1\n", "region: eu central\n", "p:5:1: region: 'eu central' is not a word without"),
    (GOOD, '{owner: "136693071363", name: debian-12-amd64-*}', "debian-12", "image: EC2 knows images by"),
    (GOOD, "zone: eu-central-1a", "zone: us-east-1a", "p:6:1: zone: the zone us-east-1a is not in eu-central-1"),
    (GOOD, "sut: m5.large", "sut: 5", "p:7:11: machine.sut: expected text, got 5"),
    (GOOD, "client: m5.xlarge", 'client: ""', "p:7:26: machine.client: '' is not a word without spaces"),
    (GOOD, "{sut: m5.large, client: m5.xlarge}", "[]", "p:7:1: machine: expected a machine type"),
    (GOOD, 'owner: "136693071363"', "owner: 136693071363", "p:8:9: image.owner: expected text"),
    (GOOD, "name: debian-12-amd64-*", "name: 12", "image.name: expected text, got 12"),
    (GOOD, '{owner: "136693071363", name: debian-12-amd64-*}', "debian-12", "image: EC2 knows images by ident"),
    (GOOD, "sites: 20", "sites: 0", "p:9:1: sites: must be at least 1, got 0"),
    (GOOD, "nodes: 1", "nodes: 65", "p:10:1: nodes: must be at most 64, got 65"),
    (GOOD, "placement: cluster", "placement: clusterd", "placement: unknown value 'clusterd' (did you"),
    (GOOD, "{size_gb: 100, kind: gp3, iops: 3000}", "100", "p:12:1: disk: expected a mapping, got 100"),
    (GOOD, "size_gb: 100", "size_gb: 0", "p:12:8: disk.size_gb: must be at least 1, got 0"),
    (GOOD, "kind: gp3", "kind: 3", "p:12:22: disk.kind: expected text, got 3"),
    (GOOD, "iops: 3000", "iops: 3", "p:12:33: disk.iops: must be at least 100, got 3"),
    (GOOD, "spot: false", "spot: no", "p:13:1: spot: expected true or false, got 'no'"),
    (GOOD, "lifetime_h: 20", "lifetime_h: 0", "p:14:1: lifetime_h: must be greater than 0, got 0"),
    (GOOD, "lifetime_h: 20\n", "", "lifetime_h: this key is missing"),
    (GOOD, "203.0.113.7/32", "203.0.113.7", "p:15:1: ssh_from: the prefix length is missing: 203.0.113.7/32"),
    (GOOD, "203.0.113.7/32", "here", "p:15:1: ssh_from: expected a network such as 203.0.113.7/32, got 'here'"),
    (GOOD, "network: subnet-0abc", "network: mine", "p:16:1: network: EC2 knows subnets by identifiers"),
    (GOOD, "address: public", "address: floating", "p:17:1: address: unknown value 'floating'"),
    (GOOD, "user: admin", "user: Admin", "p:18:1: user: 'Admin' is not a user name"),
    (GOOD, "[docker.io]", "[docker io]", "packages[0]: 'docker io' is not a word without spaces"),
    (GOOD, "user: admin", "external_network: x", "p:18:1: external_network: EC2 has no floating networks"),
    (OPENSTACK, "spread", "cluster", "placement: OpenStack would put server and client on the same hardware"),
    (OPENSTACK, "placement: spread", "spot: true", "spot: OpenStack has no spot machines"),
    (OPENSTACK, "image: debian-12", "image: {owner: a, name: b}", "image: OpenStack knows images by name"),
    (OPENSTACK, "size_gb: 20", "size_gb: 20, iops: 500", "disk.iops: OpenStack has no IOPS"),
    (OPENSTACK, "placement: spread", "address: private", "external_network: it applies only to public"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "right", "wrong", "sentence"), FAULTS, ids=[sentence for _, _, _, sentence in FAULTS]
)
def test_each_fault_is_told_with_its_line_key_and_hint(text: str, right: str, wrong: str, sentence: str) -> None:
    assert right in text
    with pytest.raises(StudyError) as raised:
        resolve(parse(text.replace(right, wrong, 1), "p"))
    assert sentence in str(raised.value)


@pytest.mark.parametrize("model", [MachinePlan, MachineTypes, ImageSearch, DiskSpec])
def test_every_field_is_wrong_in_one_of_them(model: type[Strict]) -> None:
    named = {key for *_, sentence in FAULTS for key in re.findall(r"(?:^|[. ])(\w+)(?:\[\d+\])?: ", sentence)}
    assert set(model.model_fields) <= named


def test_the_schema_for_editors_fits_what_is_read() -> None:
    schema = PLAN_SCHEMA.tree()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for text in (GOOD, OPENSTACK):
        assert not list(validator.iter_errors(parse(text, "p").tree))
    assert list(validator.iter_errors(parse(GOOD.replace("sites: 20", "sites: x"), "p").tree))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_plans_that_come_with_tare_can_be_read(path: Path) -> None:
    assert load_plan(path).lifetime_h > 0
    assert plan_in(path) == load_plan(path)


def test_a_plan_is_no_file_of_sites_and_the_other_way_round(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD)
    with pytest.raises(StudyError, match=r"this is a machine plan, not a sites file .tare sites create"):
        load_sites(tmp_path / "plan.yaml")
    (tmp_path / "sites.yaml").write_text("format: 1\nsites: [{name: a, sut: local, client: {ssh: b}}]\n")
    assert plan_in(tmp_path / "sites.yaml") is None
    assert plan_in(tmp_path / "missing.yaml") is None
