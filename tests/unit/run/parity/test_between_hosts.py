"""Of runs between two hosts the client's host and the wire must be alike too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.record.parts import between, route
from tests.unit.run.parity.test_compare import SERVER, record, study

from tare.record.run_record import RunRecord
from tare.run.parity.compare import differences


def wired(**changes: Any) -> RunRecord:
    """A run between two hosts."""
    side = route(device="eth0", mtu=changes.get("mtu", 1500), qdisc="fq")
    hosts = between("db", changes.get("host", "load"), sides={"sut": side, "client": side})
    return record("bare", client_host={"thp": changes.get("thp", "madvise")}, between=hosts)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"mtu": 9000}, "host: MTU of the SUT's host to the other: 1500 in bare, 9000 in bare"),
        ({"thp": "always"}, "host: transparent huge pages of the client's host: madvise in bare, always in bare"),
        ({"host": "third"}, "host: name of the client's host: load in bare, third in bare"),
    ],
)
def test_between_two_hosts_the_wire_and_the_clients_host_must_be_alike_too(
    change: dict[str, Any], difference: str
) -> None:
    assert differences(study(), wired(), wired(), SERVER) == ()
    assert difference in [str(each) for each in differences(study(), wired(), wired(**change), SERVER)]
