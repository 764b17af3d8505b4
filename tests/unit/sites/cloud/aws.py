"""A moto server to speak EC2 with, and faults that it does not have, put in between by botocore's events."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import boto3
import botocore.loaders
import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from moto.ec2.models import amis
from moto.ec2.responses import EC2Response
from moto.server import ThreadedMotoServer

REGION, ZONE = "eu-central-1", "eu-central-1a"
KEY_ID, SECRET = "AKIACANARY0000000000", "CanarySecretOfTheTestsThatNobodyMayWrite"
CLEAN = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}
"""No other credentials than these, wherever the tests run."""
REAL_SESSION = boto3.Session
"""Tests put their own in its place."""

LOADER = botocore.loaders.create_loader()


def new_session() -> Any:
    """With credentials of its own, as always, and botocore's models, which take half a second to read, of all."""
    core = botocore.session.get_session()
    core.register_component("data_loader", LOADER)
    return REAL_SESSION(botocore_session=core, region_name=REGION)


class Groups:
    """Placement groups, which moto has not: made, shown by tag, and deleted unless machines stand in them."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}

    def create(self, query: Mapping[str, list[str]]) -> str:
        name = query["GroupName"][0]
        tags = {
            query[f"TagSpecification.1.Tag.{n}.Key"][0]: query[f"TagSpecification.1.Tag.{n}.Value"][0]
            for n in range(1, 20)
            if f"TagSpecification.1.Tag.{n}.Key" in query
        }
        self.there[name] = {"strategy": query["Strategy"][0], "tags": tags}
        return "<CreatePlacementGroupResponse><return>true</return></CreatePlacementGroupResponse>"

    def describe(self, query: Mapping[str, list[str]]) -> str:
        key = query.get("Filter.1.Name", ["tag:"])[0].removeprefix("tag:")
        wanted = query.get("Filter.1.Value.1", [""])[0]
        shown = [name for name, group in self.there.items() if not key or group["tags"].get(key) == wanted]
        return (
            "<DescribePlacementGroupsResponse><placementGroupSet>"
            + "".join(self._item(name) for name in shown)
            + "</placementGroupSet></DescribePlacementGroupsResponse>"
        )

    def _item(self, name: str) -> str:
        tags = "".join(
            f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>"
            for key, value in self.there[name]["tags"].items()
        )
        return (
            f"<item><groupName>{name}</groupName><strategy>{self.there[name]['strategy']}</strategy>"
            f"<state>available</state><tagSet>{tags}</tagSet></item>"
        )

    def delete(self, query: Mapping[str, list[str]]) -> str:
        self.there.pop(query["GroupName"][0], None)
        return "<DeletePlacementGroupResponse><return>true</return></DeletePlacementGroupResponse>"


@dataclass
class Aws:
    """`url`: where it answers. `groups`: its placement groups."""

    url: str
    groups: Groups

    def client(self) -> Any:
        """To look at it, past tare and without faults."""
        return new_session().client("ec2", endpoint_url=self.url)

    def instances(self) -> list[dict[str, Any]]:
        reservations = self.client().describe_instances()["Reservations"]
        return [
            each for some in reservations for each in some["Instances"] if each["State"]["Name"] != "terminated"
        ]

    def left(self) -> list[str]:
        """Everything that tare can have made."""
        ec2 = self.client()
        groups = [each["GroupName"] for each in ec2.describe_security_groups()["SecurityGroups"]]
        volumes = [each["VolumeId"] for each in ec2.describe_volumes()["Volumes"]]
        return [
            *(each["InstanceId"] for each in self.instances()),
            *volumes,
            *(name for name in groups if name.startswith("tare-")),
            *self.groups.there,
        ]

    def image(self) -> str:
        """Return the id of the only image that this server has."""
        return str(_image()["ami_id"])

    def post(self, path: str, body: bytes = b"") -> None:
        """Tell moto something about itself."""
        plain = {"Content-Type": "text/plain"}
        with urllib.request.urlopen(
            urllib.request.Request(f"{self.url}{path}", body, plain, method="POST"), timeout=60
        ):
            pass


@contextmanager
def serving() -> Iterator[Aws]:
    """A server with placement groups, and with nothing in it yet."""
    groups = Groups()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patched:
        for name, answer in (
            ("create_placement_group", groups.create),
            ("describe_placement_groups", groups.describe),
            ("delete_placement_group", groups.delete),
        ):
            patched.setattr(EC2Response, name, _answering(answer), raising=False)
        # moto makes some 1,300 images for each region at each reset, which takes longer than a test.
        patched.setattr(amis, "AMIS", [_image()])
        patched.setenv("MOTO_AMIS_PATH", "none beside AMIS, which was read when moto was imported")
        server.start()
        try:
            host, port = server.get_host_and_port()
            yield Aws(f"http://{host}:{port}", groups)
        finally:
            server.stop()


@cache
def _image() -> dict[str, Any]:
    """Return the first of moto's images that a machine of this kind can start from."""
    images = [each for each in amis.AMIS if each["architecture"] == "x86_64" and each.get("root_device_name")]
    return min(images, key=lambda image: str(image["ami_id"]))


def emptied(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """The server without all that earlier tests made, for tare to use in this environment, and nothing else."""
    for key, value in {**CLEAN, "AWS_ENDPOINT_URL": aws.url}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("boto3.Session", lambda **_: new_session())
    aws.groups.there.clear()
    aws.post("/moto-api/reset")
    return aws


def _answering(answer: Callable[[Mapping[str, list[str]]], str]) -> Callable[[Any], str]:
    def respond(self: Any) -> str:
        return answer(self.querystring)

    return respond


@dataclass
class _Raw:
    body: bytes

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self.body

    def read(self, *_: object, **__: object) -> bytes:
        return self.body


@dataclass
class Faults:
    """What goes wrong. `refusals`: operation → code, from which call on (counted from 0), and HTTP status."""

    refusals: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    bodies: list[dict[str, list[str]]] = field(default_factory=list)
    before: Callable[[str], None] | None = None
    usd_hour: str | None = None
    """Price of a machine in the catalogue, which moto has not."""

    def refuse(self, operation: str, code: str, *, after: int = 0, status: int = 400) -> None:
        """From the given call of the operation on, with that error of EC2's."""
        self.refusals[operation] = (code, after, status)

    def session(self) -> Any:
        """A session of boto3 with these faults in it."""
        session = new_session()
        session.events.register("before-send.ec2.*", self._sent)
        session.events.register("before-send.pricing.*", self._priced)
        return session

    def _priced(self, request: Any, **_: object) -> AWSResponse:
        """As the Price List Query API answers: each product is a text of JSON."""
        wanted = {each["Field"]: each["Value"] for each in json.loads(request.body)["Filters"]}
        assert wanted.keys() >= {"instanceType", "regionCode", "operatingSystem", "tenancy"}
        price = {"unit": "Hrs", "pricePerUnit": {"USD": self.usd_hour}}
        product = {"terms": {"OnDemand": {"SKU.TERM": {"priceDimensions": {"SKU.TERM.RATE": price}}}}}
        listed = [] if self.usd_hour is None else [json.dumps(product)]
        answer = json.dumps({"FormatVersion": "aws_v1", "PriceList": listed})
        return AWSResponse(request.url, 200, {}, cast("Any", _Raw(answer.encode())))

    def _sent(self, request: Any, **_: object) -> AWSResponse | None:
        body = request.body.decode() if isinstance(request.body, bytes) else str(request.body)
        query = parse_qs(body)
        operation = query["Action"][0]
        earlier = self.calls.count(operation)
        self.calls.append(operation)
        self.bodies.append(query)
        if self.before is not None:
            self.before(operation)
        code, after, status = self.refusals.get(operation, ("", 0, 0))
        if not code or earlier < after:
            return None
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", code)
        answer = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{words}.</Message></Error></Errors></Response>"
        )
        return AWSResponse(request.url, status, {}, cast("Any", _Raw(answer.encode())))
