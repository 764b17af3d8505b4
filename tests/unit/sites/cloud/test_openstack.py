"""Machines from OpenStack, by the real openstacksdk against a small OpenStack on loopback."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.sites.cloud.calls import done, refused
from tests.unit.sites.cloud.stack import CLOUDS_YAML, EXTERNAL, IMAGES, NETWORK, PASSWORD, Stack, serving

from tare.errors import EnvironmentLacks
from tare.sites.cloud import Tags
from tare.sites.cloud.openstack.marks import described, of_group, read_description
from tare.sites.file import SshSpec, load_sites

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # openstacksdk warns of its own calls
ROOT = Path(__file__).resolve().parents[4]
PLAN = """\
format: 1
name: seybold
study: seybold-2018
provider: openstack
region: RegionOne
machine: m1.medium
image: debian-12
sites: 2
placement: spread
disk: {size_gb: 20}
lifetime_h: 8
ssh_from: 203.0.113.7/32
"""


@pytest.fixture
def stack(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    with serving() as running:
        for name in [name for name in os.environ if name.startswith("OS_")]:
            monkeypatch.delenv(name)
        secret = place.parent / f"{place.name}-clouds.yaml"
        secret.write_text(CLOUDS_YAML.format(url=running.url, password=PASSWORD))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(secret))
        monkeypatch.setenv("OS_CLOUD", "test")
        yield running


def planned(*, old: str = "", new: str = "") -> None:
    assert old in PLAN
    Path("plan.yaml").write_text(PLAN.replace(old, new, 1))


def test_a_plan_becomes_machines_and_their_file_of_sites(stack: Stack) -> None:
    planned()
    result = done("sites", "create", "plan.yaml", "--yes")
    assert "the cost is unknown: OpenStack has no catalogue of prices" in result.stderr
    sites = load_sites(Path("sites.yaml")).sites
    public = {each["floating_ip_address"]: stack.ports[each["port_id"]] for each in stack.addresses.values()}
    assert [site.name for site in sites] == ["seybold-1", "seybold-2"]
    for host in (host for site in sites for host in site.hosts):
        assert isinstance(host, SshSpec)
        port = public.pop(host.ssh.removeprefix("root@"))
        assert port["fixed_ips"][0]["ip_address"] == host.address
        assert stack.servers[port["device_id"]]["name"].endswith(f"-{host.display_name}")
    assert not public


def test_what_is_asked_of_openstack(stack: Stack) -> None:
    planned()
    done("sites", "create", "plan.yaml", "--yes")
    bodies = stack.bodies("/compute/v2.1/servers")
    first = bodies[0]["server"]
    assert first["flavorRef"] == "3"
    assert first["config_drive"] is True
    assert json.loads(base64.b64decode(first["user_data"]).partition(b"\n")[2])["hostname"] == "s1-sut"
    assert first["metadata"]["tare-study"] == "seybold-2018"
    (mapping,) = first["block_device_mapping_v2"]
    volume = stack.volumes[mapping["uuid"]]
    assert (volume["size"], volume["imageRef"], mapping["delete_on_termination"]) == (20, IMAGES[0]["id"], True)
    hint = bodies[0]["OS-SCH-HNT:scheduler_hints"]["group"]
    assert stack.groups[hint]["policy"] == "anti-affinity"
    assert len(stack.groups) == 2
    port = stack.bodies("/network/v2.0/ports")[0]["port"]
    assert port["network_id"] == NETWORK
    assert port["security_groups"] == list(stack.firewalls)
    assert stack.bodies("/network/v2.0/floatingips")[0]["floatingip"]["floating_network_id"] == EXTERNAL
    ssh, among = (each["security_group_rule"] for each in stack.bodies("/network/v2.0/security-group-rules"))
    assert (ssh["remote_ip_prefix"], ssh["port_range_min"]) == ("203.0.113.7/32", 22)
    assert among["remote_group_id"] == among["security_group_id"]


def test_without_a_disk_a_server_starts_from_the_image_itself(stack: Stack) -> None:
    planned(old="disk: {size_gb: 20}\n", new="zone: nova\naddress: private\n")
    done("sites", "create", "plan.yaml", "--yes")
    assert {each["imageRef"] for each in stack.servers.values()} == {IMAGES[0]["id"]}
    assert {each["availability_zone"] for each in stack.servers.values()} == {"nova"}
    assert not stack.addresses
    assert not stack.volumes
    host = load_sites(Path("sites.yaml")).sites[0].client
    assert isinstance(host, SshSpec)
    assert host.ssh == f"root@{host.address}"


def test_list_and_destroy(stack: Stack, place: Path) -> None:
    planned()
    done("sites", "create", "plan.yaml", "--yes")
    shown = done("sites").stdout
    assert "4 of 4" in shown
    assert "unknown" in shown
    gone = done("sites", "destroy", "--yes").stdout
    numbers = {"machine": 4, "port": 4, "address": 4, "firewall": 1, "placement group": 2}
    assert {kind: gone.count(f"removed {kind} ") for kind in numbers} == numbers
    assert stack.left() == []
    assert not list((place / "home" / "rentals").glob("seybold-*"))
    assert done("sites", "destroy", "plan.yaml", "--yes").stdout == "nothing to remove\n"


def test_no_password_is_written(stack: Stack, place: Path) -> None:
    planned()
    printed = done("sites", "create", "plan.yaml", "--yes").output + done("sites", "list", "--json").output
    assert PASSWORD not in printed
    written = [path for path in place.rglob("*") if path.is_file()]
    assert len(written) >= 7
    assert not [path for path in written if PASSWORD.encode() in path.read_bytes()]
    assert not [path for path in written if stack.token.encode() in path.read_bytes()]


REFUSALS = [
    ("POST /compute/v2.1/servers", 403, "Quota exceeded for cores", 2, "a quota is reached"),
    ("POST /compute/v2.1/servers", 500, "Unexpected API Error", 1, "failed at OpenStack"),
    ("POST /network/v2.0/floatingips", 404, "No more IP addresses available", 1, "No more IP addresses"),
    ("POST /network/v2.0/ports", 413, "Quota exceeded for port", 3, "a quota is reached"),
    ("POST /network/v2.0/security-group-rules", 403, "Quota exceeded", 1, "everything created so far was removed"),
    ("POST /compute/v2.1/os-server-groups", 403, "Quota exceeded", 0, "everything created so far was removed"),
    ("POST /volume/v3/demo/volumes", 413, "VolumeLimitExceeded", 1, "everything created so far was removed"),
]


@pytest.mark.parametrize(
    ("where", "status", "words", "after", "sentence"), REFUSALS, ids=[f"{each[0]} {each[1]}" for each in REFUSALS]
)
def test_if_one_cannot_be_had_all_others_are_removed_again(  # noqa: PLR0917 - fixtures
    stack: Stack, place: Path, where: str, status: int, words: str, after: int, sentence: str
) -> None:
    planned()
    stack.faults[where] = (status, words, after)
    error = refused("sites", "create", "plan.yaml", "--yes")
    assert isinstance(error, EnvironmentLacks)
    assert sentence in str(error)
    assert f"({status})" in str(error)
    assert stack.left() == []
    assert not list((place / "home" / "rentals").glob("seybold-*"))
    assert not Path("sites.yaml").exists()


def test_a_server_without_a_host_is_told_with_nova_s_own_reason(stack: Stack) -> None:
    planned()
    stack.server_status = "ERROR"
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "cannot start: No valid host was found." in error
    assert "everything created so far was removed" in error
    assert stack.left() == []


def test_wrong_and_missing_credentials_are_told(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    planned()
    config = Path(os.environ["OS_CLIENT_CONFIG_FILE"])
    config.write_text(config.read_text().replace(PASSWORD, "wrong"))
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "requires authentication" in error
    assert "openstack token issue" in error
    monkeypatch.delenv("OS_CLOUD")
    config.write_text("clouds: {}\n")
    assert "openstacksdk takes them from OS_CLOUD" in str(refused("sites", "create", "plan.yaml", "--yes"))


def test_a_cloud_out_of_reach_is_told(stack: Stack) -> None:
    planned()
    config = Path(os.environ["OS_CLIENT_CONFIG_FILE"])
    config.write_text(config.read_text().replace(stack.url, "http://127.0.0.1:1"))
    assert "OpenStack" in str(refused("sites", "create", "plan.yaml", "--yes"))


WRONG = [
    ("region: RegionOne", "region: RegionTwo", "RegionTwo"),
    (
        "machine: m1.medium",
        "machine: m1.mediun",
        "this cloud has no flavor 'm1.mediun' (did you mean \"m1.medium\"?)",
    ),
    ("image: debian-12", "image: debian-13", "this cloud has no image 'debian-13' (did you mean \"debian-12\"?)"),
    ("placement: spread", "zone: nowa", "this cloud has no zone 'nowa' (did you mean \"nova\"?)"),
    ("placement: spread", "network: privat", "this cloud has no network 'privat' (did you mean \"private\"?)"),
    ("placement: spread", "external_network: x", "this cloud has no network 'x'"),
]


@pytest.mark.parametrize(("right", "wrong", "sentence"), WRONG, ids=[each[1] for each in WRONG])
def test_what_the_cloud_does_not_have_is_told_before_anything_is_made(
    stack: Stack, place: Path, right: str, wrong: str, sentence: str
) -> None:
    planned(old=right, new=wrong)
    assert sentence in str(refused("sites", "create", "plan.yaml", "--yes"))
    assert stack.left() == []
    assert not (place / "home" / "rentals").exists()


KILLED = """
import os, signal, sys
from functools import partial
from tare import cli
from tare.cli.machine import sites
from tare.sites.cloud.waits import Waits
sites._READY = lambda *_: None
sites.Waits = partial(Waits, poll_s=0.01)
print(os.getpid(), flush=True)
cli.main()
"""


@pytest.mark.parametrize(
    "path", ["security-groups", "ports", "servers", "floatingips", "volumes", "os-server-groups"]
)
def test_what_a_killed_tare_asked_for_is_removed(stack: Stack, place: Path, path: str) -> None:
    """Killed when the cloud has the request, which it carries out all the same."""
    planned()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-c", KILLED, "sites", "create", "plan.yaml", "--yes"]
    with preloaded.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def kill(method: str, where: str) -> None:
            if method == "POST" and where.endswith(f"/{path}"):
                process.kill()

        stack.before = kill
        assert process.wait(timeout=120) == -signal.SIGKILL
    stack.before = None
    assert stack.left()
    done("clean", "--sites", "plan.yaml", "--yes")
    assert stack.left() == []
    assert not list((place / "home" / "rentals").glob("seybold-*"))


def test_tags_survive_a_description_of_255_characters(stack: Stack) -> None:
    tags = Tags("a" * 30 + "-abcdef", "a" * 30, "s" * 60, datetime(2026, 1, 1, tzinfo=UTC), "u" * 60)
    text = described("tare-" + "a" * 30 + "-abcdef-firewall", tags)
    assert len(text) <= 255
    read = Tags.read(read_description(text))
    assert read is not None
    assert (read.rental, read.plan, read.end_of_life) == (tags.rental, tags.plan, tags.end_of_life)


def test_a_server_group_of_somebody_else_is_left_alone() -> None:
    tags = of_group("tare-seybold-0a1b2c-s2-placement")
    assert tags is not None
    assert (tags.rental, tags.plan) == ("seybold-0a1b2c", "seybold")
    assert of_group("tare-placement") is None
    assert Tags.read(read_description("a firewall of mine")) is None
