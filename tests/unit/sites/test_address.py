"""Which address other hosts get where sites.yaml names none."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tare.errors import EnvironmentLacks
from tare.sites.file import SshSpec
from tare.sites.ssh.address import address_of


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def known(*_: object, **__: object) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, 0)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", known)


def test_a_given_address_is_taken() -> None:
    assert address_of(SshSpec(ssh="db", address="192.168.7.2")) == "192.168.7.2"


def test_the_first_that_leads_others_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "fe80::1%eth0", "::1", "10.0.0.2", "10.0.0.3")
    assert address_of(SshSpec(ssh="db")) == "10.0.0.2"


def test_a_forwarded_port_of_this_machine_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1")
    with pytest.raises(
        EnvironmentLacks, match=r"db has no address .* ssh reaches it at 127\.0\.0\.1, which is local to each host"
    ) as raised:
        address_of(SshSpec(ssh="db"))
    assert raised.value.hint == "give the host an `address` in sites.yaml"


def test_a_host_alone_may_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1")
    assert address_of(SshSpec(ssh="db"), alone=True) == "127.0.0.1"
