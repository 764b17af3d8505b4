"""Machines from EC2, as moto's server has it: made, refused, half made, killed, listed and destroyed."""

from __future__ import annotations

import base64
import json
import signal
import sys
from pathlib import Path

import boto3
import pytest
from tests.unit.sites.cloud.aws import KEY_ID, REGION, SECRET, ZONE, Aws, Faults
from tests.unit.sites.cloud.calls import done, planned, refused, tare

from tare.cli.machine import sites as command
from tare.errors import EnvironmentLacks, StudyError, TareError
from tare.sites.cloud import Cost
from tare.sites.cloud.ec2 import offering, price
from tare.sites.cloud.plan import load_plan
from tare.sites.file import SshSpec, display_name, load_sites


def test_a_plan_becomes_machines_and_their_file_of_sites(aws: Aws) -> None:
    planned(aws)
    result = done("sites", "create", "plan.yaml", "--yes")
    assert "wrote sites.yaml: 2 sites, machines of pairs-" in result.stdout
    assert "4 machines (2 sites of 2): m5.large in eu-central-1" in result.stderr
    sites = load_sites(Path("sites.yaml")).sites
    by_address = {each["PublicIpAddress"]: each for each in aws.instances()}
    assert [site.name for site in sites] == ["pairs-1", "pairs-2"]
    for site in sites:
        for host in site.hosts:
            assert isinstance(host, SshSpec)
            instance = by_address.pop(host.ssh.removeprefix("root@"))
            assert instance["PrivateIpAddress"] == host.address
            assert instance["InstanceType"] == "m5.large"
            named = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
            assert named["Name"].endswith(f"-{display_name(host)}")
            assert (named["tare-study"], named["tare-plan"]) == ("grambow-2018", "pairs")
    assert not by_address


def test_all_hosts_stand_in_one_zone_and_each_site_in_a_group_of_its_own(aws: Aws) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    assert {each["Placement"]["AvailabilityZone"] for each in aws.instances()} == {ZONE}
    assert sorted(name[-13:] for name in aws.groups.there) == ["-s1-placement", "-s2-placement"]


def test_what_is_asked_of_ec2(aws: Aws, faults: Faults) -> None:
    planned(aws, old="placement: cluster\n", new="placement: cluster\nspot: true\n")
    done("sites", "create", "plan.yaml", "--yes", "--no-wait")
    runs = [body for call, body in zip(faults.calls, faults.bodies, strict=True) if call == "RunInstances"]
    assert len(runs) == 4
    asked = {key: value[0] for key, value in runs[0].items()}
    assert asked["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert asked["InstanceMarketOptions.MarketType"] == "spot"
    assert (asked["MetadataOptions.HttpTokens"], asked["MetadataOptions.HttpPutResponseHopLimit"]) == (
        "required",
        "1",
    )
    assert asked["Placement.GroupName"].endswith("-s1-placement")
    assert (asked["BlockDeviceMapping.1.Ebs.VolumeSize"], asked["BlockDeviceMapping.1.Ebs.VolumeType"]) == (
        "20",
        "gp3",
    )
    assert asked["BlockDeviceMapping.1.Ebs.DeleteOnTermination"] == "true"
    assert len({body["ClientToken"][0] for body in runs}) == 4
    kinds = {value for key, value in asked.items() if key.endswith("ResourceType")}
    assert kinds == {"instance", "volume", "spot-instances-request"}
    rules = next(body for call, body in zip(faults.calls, faults.bodies, strict=True) if "Ingress" in call)
    assert rules["IpPermissions.1.IpRanges.1.CidrIp"] == ["203.0.113.7/32"]
    assert rules["IpPermissions.2.IpProtocol"] == ["-1"]


def user_data_of(aws: Aws, instance: str) -> dict[str, object]:
    answer = aws.client().describe_instance_attribute(InstanceId=instance, Attribute="userData")
    text = base64.b64decode(answer["UserData"]["Value"]).decode()
    loaded: dict[str, object] = json.loads(text.partition("\n")[2])
    return loaded


def test_each_machine_is_known_by_a_key_of_its_own_before_the_first_connection(aws: Aws, place: Path) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    rental = next((place / "home" / "rentals").glob("pairs-*"))
    known = dict(line.split(" ", 1) for line in (rental / "known_hosts").read_text().splitlines())
    instances = aws.instances()
    assert len(known) == len(set(known.values())) == len(instances) == 4
    login = (rental / "login.pub").read_text().strip()
    for each in instances:
        given = user_data_of(aws, each["InstanceId"])
        keys = given["ssh_keys"]
        assert isinstance(keys, dict)
        assert keys["ed25519_public"].startswith(known[each["PublicIpAddress"]])
        assert given["ssh_authorized_keys"] == [f"{login} tare"]
        assert given["packages"] == ["docker.io"]


def test_no_credential_and_no_private_key_is_written_but_the_login_key_for_its_owner_alone(
    aws: Aws, place: Path
) -> None:
    planned(aws)
    printed = done("sites", "create", "plan.yaml", "--yes").output + done("sites", "list", "--json").output
    private = {
        line
        for each in aws.instances()
        for line in str(user_data_of(aws, each["InstanceId"])["ssh_keys"]["ed25519_private"]).splitlines()[2:-1]  # type: ignore[index]  # JSON
    }
    rental = next((place / "home" / "rentals").glob("pairs-*"))
    assert rental.stat().st_mode & 0o777 == 0o700
    assert (rental / "login").stat().st_mode & 0o777 == 0o600
    written = {path: path.read_bytes().decode(errors="replace") for path in place.rglob("*") if path.is_file()}
    assert len(written) >= 7
    for path, text in {**written, Path("printed"): printed}.items():
        assert not [line for line in private if line in text], path
        assert SECRET not in text, path
        assert KEY_ID not in text, path
        assert "PRIVATE KEY" not in text or path.name == "login", path
    done("sites", "destroy", "--yes")
    assert not [path for path in place.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]


def test_what_machines_cost_is_taken_from_the_catalogue(aws: Aws, faults: Faults) -> None:
    faults.usd_hour = "0.1150000000"
    planned(aws)
    shown = done("sites", "create", "plan.yaml", "--dry-run").stderr
    assert "cost 0.46 USD an hour, 3.68 USD until the end of life, without disks and traffic" in shown
    assert not aws.left()


@pytest.mark.parametrize("unit", ["Quantity", "Hrs"])
def test_a_product_that_is_not_sold_by_the_hour_has_no_price(unit: str) -> None:
    price_of = {"unit": unit, "pricePerUnit": {"USD": "9" if unit == "Quantity" else "0"}}
    assert price.on_demand_price({"terms": {"OnDemand": {"a": {"priceDimensions": {"b": price_of}}}}}) is None
    assert price.on_demand_price({"terms": {}}) is None


def test_spot_prices_are_the_market_s_last_ones(aws: Aws) -> None:
    class Market:
        def describe_spot_price_history(self, **asked: object) -> dict[str, object]:
            assert asked["AvailabilityZone"] == ZONE
            return {"SpotPriceHistory": [{"SpotPrice": "0.04"}]}

    planned(aws, old="placement: cluster\n", new="spot: true\n")
    plan = load_plan(Path("plan.yaml"))
    assert price.cost_of(plan, ZONE, Market(), None) == Cost(4 * 0.04)


def test_a_cost_that_is_not_known_is_no_zero(aws: Aws, faults: Faults) -> None:
    planned(aws)
    shown = done("sites", "create", "plan.yaml", "--yes").stderr
    assert "the cost is unknown: the catalogue has no price of m5.large in eu-central-1" in shown
    assert json.loads(done("sites", "list", "--json").stdout)["rentals"][0]["usd_hour"] is None


def test_a_catalogue_that_does_not_answer_keeps_nobody_from_machines(aws: Aws) -> None:
    planned(aws)
    assert "the cost is unknown: " in done("sites", "create", "plan.yaml", "--dry-run").stderr


def test_a_plan_whose_machines_are_there_is_refused(aws: Aws) -> None:
    planned(aws)
    done("sites", "create", "plan.yaml", "--yes")
    error = refused("sites", "create", "plan.yaml", "--yes", "--output", "other.yaml")
    assert "machines of the plan pairs exist already: pairs-" in str(error)
    assert "sites.yaml names machines that exist" in str(refused("sites", "create", "plan.yaml", "--yes"))
    done("sites", "destroy", "--yes")
    done("sites", "create", "plan.yaml", "--yes")  # the file of machines that are gone is replaced
    Path("mine.yaml").write_text("format: 1\n")
    error = refused("sites", "create", "plan.yaml", "--yes", "--output", "mine.yaml")
    assert "mine.yaml is there already" in str(error)


def test_a_file_of_sites_that_cannot_be_written_is_shown(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StudyError("cannot write the report to sites.yaml: No space left on device")

    planned(aws)
    monkeypatch.setattr(command, "write", full)
    result = tare("sites", "create", "plan.yaml", "--yes")
    assert "the machines of pairs-" in str(result.exception)
    assert "- name: pairs-2" in result.stderr
    assert len(aws.instances()) == 4
    assert "was interrupted while tare created it (4 of 4 machines running)" in done("sites", "list").stderr


REFUSALS = [
    (
        "RunInstances",
        "VcpuLimitExceeded",
        0,
        "Vcpu Limit Exceeded (VcpuLimitExceeded); everything created so far was removed",
    ),
    ("RunInstances", "InsufficientInstanceCapacity", 1, "try another zone or machine type, fewer sites, or later"),
    ("RunInstances", "MaxSpotInstanceCountExceeded", 3, "ask AWS for a higher quota"),
    ("RunInstances", "UnauthorizedOperation", 2, "docs/reference/machine-plan.md lists what is needed"),
    ("CreateSecurityGroup", "SecurityGroupLimitExceeded", 0, "nothing was made"),
    (
        "AuthorizeSecurityGroupIngress",
        "RulesPerSecurityGroupLimitExceeded",
        0,
        "everything created so far was removed",
    ),
    ("CreatePlacementGroup", "PlacementGroupLimitExceeded", 1, "everything created so far was removed"),
]


@pytest.mark.parametrize(("operation", "code", "after", "sentence"), REFUSALS, ids=[each[1] for each in REFUSALS])
def test_if_one_cannot_be_had_all_others_are_removed_again(  # noqa: PLR0917 - fixtures
    aws: Aws, faults: Faults, place: Path, operation: str, code: str, after: int, sentence: str
) -> None:
    planned(aws)
    faults.refuse(operation, code, after=after)
    error = refused("sites", "create", "plan.yaml", "--yes")
    assert isinstance(error, EnvironmentLacks)
    assert sentence in str(error)
    assert code in str(error)
    assert aws.left() == []
    assert not list((place / "home" / "rentals").glob("pairs-*"))
    assert not Path("sites.yaml").exists()


def test_what_cannot_be_removed_again_is_named_and_stays_in_the_ledger(aws: Aws, faults: Faults) -> None:
    planned(aws)
    faults.refuse("RunInstances", "InsufficientInstanceCapacity", after=1)
    faults.refuse("TerminateInstances", "UnauthorizedOperation")
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    (left,) = aws.instances()
    assert "not everything could be removed: machine tare-pairs-" in error
    assert left["InstanceId"] in error
    assert "try again: tare sites destroy pairs-" in error
    faults.refusals.clear()
    assert "was interrupted while tare created it (1 of 4 machines running)" in done("sites", "list").stderr
    done("sites", "destroy", "--yes")
    assert aws.left() == []


def test_requests_that_ec2_throttles_are_repeated(
    aws: Aws, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.httpsession.time", None, raising=False)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    planned(aws)
    seen: list[str] = []

    def first_two(operation: str) -> None:
        seen.append(operation)
        if operation == "RunInstances":
            limited = "RequestLimitExceeded" if seen.count(operation) <= 2 else ""
            faults.refusals["RunInstances"] = (limited, 0, 503)

    faults.before = first_two
    done("sites", "create", "plan.yaml", "--yes")
    assert seen.count("RunInstances") == 6
    assert len(aws.instances()) == 4


def test_throttling_that_does_not_end_is_told(aws: Aws, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    planned(aws)
    faults.refuse("RunInstances", "RequestLimitExceeded", status=503)
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "(RequestLimitExceeded)" in error
    assert "wait some minutes" in error
    assert aws.left() == []


def test_missing_credentials_are_told_with_where_they_are_looked_for(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(aws)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "Unable to locate credentials" in error
    assert "AWS_PROFILE" in error


def test_wrong_credentials_are_told(aws: Aws) -> None:
    planned(aws)
    aws.post("/moto-api/reset-auth", b"0")
    try:
        error = str(refused("sites", "create", "plan.yaml", "--yes"))
    finally:
        aws.post("/moto-api/reset-auth", b"Infinity")
    assert "(AuthFailure)" in error
    assert "aws sts get-caller-identity" in error
    assert SECRET not in error


WRONG = [
    ("region: eu-central-1", "region: eu-centrl-1", StudyError, "no region 'eu-centrl-1' (did you mean \"eu-c"),
    ("machine: m5.large", "machine: m5.huge", EnvironmentLacks, "looking for the machine types m5.huge was"),
    ("image: IMAGE", "image: ami-00000000", EnvironmentLacks, "looking for the image ami-00000000 was"),
    ("image: IMAGE", "image: {owner: self, name: none*}", EnvironmentLacks, "there is no image none* of self"),
    ("placement: cluster", "zone: eu-central-1z", EnvironmentLacks, "no m5.large in eu-central-1z (these have: "),
    ("placement: cluster", "network: subnet-0", EnvironmentLacks, "looking for the subnet subnet-0 was"),
    ("machine: m5.large", "machine: t2.micro", EnvironmentLacks, "t2.micro cannot be in a placement group"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "kind", "sentence"), WRONG, ids=[each[1] for each in WRONG])
def test_what_ec2_does_not_have_is_told_before_anything_is_made(  # noqa: PLR0917 - fixtures
    aws: Aws, place: Path, right: str, wrong: str, kind: type[TareError], sentence: str
) -> None:
    planned(aws, old=right, new=wrong)
    error = refused("sites", "create", "plan.yaml", "--yes")
    assert isinstance(error, kind)
    assert sentence in str(error)
    assert aws.left() == []
    assert not (place / "home" / "rentals").exists()


def test_an_image_for_another_architecture_is_refused(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    monkeypatch.setattr(offering, "machine_here", lambda: "aarch64")
    assert "tare's agent for aarch64 only" in str(refused("sites", "create", "plan.yaml", "--yes"))


def test_an_endpoint_out_of_reach_is_told(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    assert "EC2 did not answer" in str(refused("sites", "create", "plan.yaml", "--yes"))


def test_machines_that_do_not_start_in_time_are_removed(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    monkeypatch.setattr("tare.sites.cloud.creation._usable", lambda *_: False)
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "4 machines did not start within" in error
    assert aws.left() == []


def test_ctrl_c_removes_what_was_made(aws: Aws, faults: Faults) -> None:
    planned(aws)
    faults.before = lambda operation: signal.raise_signal(signal.SIGINT) if operation == "RunInstances" else None
    result = tare("sites", "create", "plan.yaml", "--yes")
    assert result.exit_code == 130
    assert "everything created so far was removed" in result.stderr
    assert "interrupted by SIGINT" in result.stderr
    assert aws.left() == []


def test_without_boto3_one_sentence_says_what_to_install(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(aws)
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "tare.sites.cloud.ec2.provider", raising=False)
    error = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert error == (
        "machines from EC2 need the Python package boto3, which is not installed "
        "(install tare with its extra: pip install 'tare-bench[cloud]')"
    )


def test_regions_that_boto3_knows_are_accepted() -> None:
    assert REGION in boto3.Session().get_available_regions("ec2")
