"""The first connection to a machine from a cloud, by the keys that tare made, to a real sshd."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.hosts.sshd import Sshd, running

from tare.errors import EnvironmentLacks
from tare.sites.cloud import Cost, Offer
from tare.sites.cloud.keys import SshKey, new_key
from tare.sites.cloud.plan import MachinePlan
from tare.sites.cloud.ready import ready
from tare.sites.cloud.rental import Rental, Rentals
from tare.sites.cloud.waits import Waits
from tare.sites.file import SshSpec
from tare.sites.layout import Layout

PLAN = MachinePlan(
    format=1, name="pairs", study="s", provider="ec2", region="eu-central-1", machine="m5.large", image="ami-1",
    lifetime_h=1.0, ssh_from="203.0.113.7/32",
)  # fmt: skip
WAITS = Waits(poll_s=0.05)


@pytest.fixture
def rental(tmp_path: Path) -> Rental:
    offer = Offer("ami-1", "debian", "eu-central-1a", Cost(None))
    return Rentals(Layout(tmp_path / "home")).begin(PLAN, offer, sites_file=tmp_path / "sites.yaml", made_by="test")


@pytest.fixture
def machine(tmp_path: Path, rental: Rental, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """An sshd with the host key of a file, which lets the rental's login key in and has a cloud-init."""
    place = tmp_path / "machine"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "cloud-init").write_text(f"#!/bin/sh\nexit $(cat {place}/code)\n")
    (place / "bin" / "cloud-init").chmod(0o755)
    (place / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{place}/bin", prepend=":")
    with running(place) as sshd:
        (place / "authorized_keys").write_text(f"{rental.login} tare\n")
        yield sshd


def known_as(machine: Sshd, rental: Rental, key: SshKey) -> SshSpec:
    """How tare reaches it, once it is known here by that key."""
    rental.trust({"s1-sut": key}, {"s1-sut": f"[127.0.0.1]:{machine.port}"})
    (machine.place / "host").write_text(key.private)
    machine.down()
    machine.up()
    return SshSpec(
        ssh=f"ssh://{getpass.getuser()}@127.0.0.1:{machine.port}",
        name="s1-sut",
        ssh_config=str(rental.folder / "ssh_config"),
    )


def soon(seconds: float) -> float:
    return WAITS.now() + seconds


def test_a_machine_with_the_key_that_it_was_given_lets_tare_in(machine: Sshd, rental: Rental) -> None:
    ready(known_as(machine, rental, new_key()), WAITS, soon(30))


def test_a_machine_with_another_key_is_refused(machine: Sshd, rental: Rental) -> None:
    spec = known_as(machine, rental, new_key())
    rental.trust({"s1-sut": new_key()}, {"s1-sut": f"[127.0.0.1]:{machine.port}"})
    with pytest.raises(EnvironmentLacks, match="the host key of s1-sut has changed"):
        ready(spec, WAITS, soon(0.5))


def test_a_machine_that_comes_up_later_is_waited_for(machine: Sshd, rental: Rental) -> None:
    spec = known_as(machine, rental, new_key())
    machine.down()

    def pause(_: float) -> None:
        if machine.process is None:
            machine.up()

    ready(spec, replace(WAITS, pause=pause), soon(30))


def test_a_cloud_init_that_fails_is_told_with_where_to_look(machine: Sshd, rental: Rental) -> None:
    spec = known_as(machine, rental, new_key())
    (machine.place / "code").write_text("1")
    with pytest.raises(EnvironmentLacks, match=r"cloud-init did not set up s1-sut .*cloud-init-output\.log"):
        ready(spec, WAITS, soon(30))
    (machine.place / "code").write_text("2")  # done, with warnings
    ready(spec, WAITS, soon(30))
