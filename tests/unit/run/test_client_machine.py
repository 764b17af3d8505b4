"""A client in a virtual machine: by which address it finds a server, and who loads the data in its place."""

from __future__ import annotations

import pytest

from tare.deployments import Endpoint, Instance, Task
from tare.images import Image, ImageConfig
from tare.run.attempt.context import address_of
from tare.run.attempt.loading import without_machines
from tare.sites import Output, Process
from tare.study.model import ArmSettings, ClientSpec, LimitsSpec, SutSpec, VmSpec
from tare.study.values import NetworkKind

TASK = Task(
    "t", Image("tar:x", "0" * 64, "/", None, ImageConfig()), ("x",), Output("/o", "/e"), "tare/x", port=3306
)


def settings(client: ClientSpec, **sut: object) -> ArmSettings:
    server = SutSpec.model_validate({"image": "i", "database": "d", "deployment": "bare", **sut})
    return ArmSettings(sut=server, client=client, workload_name="w", workload={})


INSIDE = ClientSpec(
    image="i", deployment="vm-container", network=NetworkKind.USER, limits=LimitsSpec(memory="256M")
)
OUTSIDE = ClientSpec(image="i", deployment="bare")


@pytest.mark.parametrize(
    ("client", "address", "published", "wanted"),
    [
        (OUTSIDE, "127.0.0.1", None, Endpoint("127.0.0.1", 3306)),
        (INSIDE, "127.0.0.1", None, Endpoint("10.0.2.2", 3306)),
        (INSIDE, "172.18.0.2", Endpoint("127.0.0.1", 32768), Endpoint("10.0.2.2", 32768)),
        (INSIDE, "172.18.0.2", Endpoint("172.18.0.1", 32768), Endpoint("172.18.0.1", 32768)),
        (INSIDE, "10.231.0.2", None, Endpoint("10.231.0.2", 3306)),
    ],
)
def test_a_machine_finds_its_hosts_loopback_at_the_gateway_and_all_else_where_it_is(
    client: ClientSpec, address: str, published: Endpoint | None, wanted: Endpoint
) -> None:
    server = Instance(TASK, "bare", Process(1, 1, "boot"), None, address, published)
    assert address_of(server, settings(client)) == wanted


def test_data_are_loaded_without_machines_whoever_stands_in_one() -> None:
    both = settings(INSIDE, deployment="vm", network=NetworkKind.TAP, vm=VmSpec())
    loading = without_machines(both)
    assert loading == settings(
        INSIDE.model_copy(update={"deployment": "bare", "network": NetworkKind.HOST}),
    )
    elsewhere = settings(OUTSIDE, deployment="container", network=NetworkKind.BRIDGE)
    assert without_machines(elsewhere) == elsewhere
