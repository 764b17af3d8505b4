"""Engines that arms name: where they are looked for, whether they are those, and whose things are whose."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tare.errors import EnvironmentLacks
from tare.record.engine_facts import EngineFacts
from tare.sites import engines
from tare.sites.engines import (
    ENGINES,
    EngineLedger,
    Engines,
    address_of,
    connect_to,
    parse_entry,
    service_at,
    why_no_user_ranges,
)
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger


def test_an_engines_address_is_its_variables_else_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TARE_PODMAN", raising=False)
    assert address_of("podman") == "unix:///run/podman/podman.sock"
    monkeypatch.setenv("TARE_PODMAN", "unix:///elsewhere.sock")
    assert address_of("podman") == "unix:///elsewhere.sock"
    monkeypatch.delenv("TARE_PODMAN_ROOTLESS", raising=False)
    monkeypatch.setenv("SUDO_UID", "1234")
    assert address_of("podman-rootless") == "unix:///run/user/1234/podman/podman.sock"


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_one_that_does_not_answer_is_told_with_how_to_have_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ENGINES[name].variable, f"unix://{tmp_path}/none.sock")
    with pytest.raises(EnvironmentLacks, match=f"no engine `{name}`") as error:
        connect_to(name)
    assert "systemctl" in str(error.value)


class Client:
    """Connected, and closed again by whoever does not want it."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("name", "product", "rootless", "right"),
    [
        ("podman", "podman", False, True),
        ("podman", "docker", False, False),
        ("podman", "podman", True, False),
        ("podman-rootless", "podman", True, True),
        ("podman-rootless", "podman", False, False),
        ("docker", "podman", False, False),
    ],
)
def test_an_engine_is_believed_by_what_it_says_of_itself(
    name: str, product: str, *, rootless: bool, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = Client()
    monkeypatch.setattr(engines, "connect", lambda _address, timeout_s: client)
    monkeypatch.setattr(
        engines, "engine_facts", lambda _client: EngineFacts(engine=product, engine_rootless=rootless)
    )
    if right:
        assert connect_to(name) is client
    else:
        with pytest.raises(EnvironmentLacks, match=f"not the engine `{name}`"):
            connect_to(name)
    assert client.closed is not right


@pytest.mark.parametrize(
    ("uids", "gids", "file"),
    [([1], [1], "subuid"), ([1, 65_536], [1], "subgid"), ([1, 65_536], [1, 65_536], None), (None, None, None)],
)
def test_a_user_without_numbers_for_others_is_told_how_to_have_them(
    uids: list[int] | None, gids: list[int] | None, file: str | None
) -> None:
    maps = {
        kind: None if sizes is None else [{"container_id": 0, "host_id": 990, "size": size} for size in sizes]
        for kind, sizes in (("uidmap", uids), ("gidmap", gids))
    }
    why = why_no_user_ranges(EngineFacts(engine_id_maps=maps))
    assert why_no_user_ranges(EngineFacts()) is None
    if file is None:
        assert why is None
    else:
        assert why is not None
        assert f"no range of ids in /etc/{file} " in why
        assert "usermod --add-subuids" in why


def test_a_users_engine_has_to_be_on_this_machine_and_listening(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=r"tcp://192\.0\.2\.1:8080 is not a Unix socket"):
        service_at("tcp://192.0.2.1:8080")
    with pytest.raises(EnvironmentLacks, match=r"nothing answers at unix:///.*/none: No such file"):
        service_at(f"unix://{tmp_path}/none")


def test_what_an_engine_makes_stands_in_the_ledger_with_its_name(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    podman = EngineLedger(ledger, "podman")
    podman.note(Kind.CONTAINER, "tare-1-sut")
    podman.note(Kind.CGROUP, "tare/1")
    ledger.note(Kind.CONTAINER, "tare-1-client")
    entries = {(made.kind, made.ident) for made in podman.entries()}
    assert entries == {
        (Kind.CONTAINER, "tare-1-sut@podman"),
        (Kind.CGROUP, "tare/1"),
        (Kind.CONTAINER, "tare-1-client"),
    }
    podman.forget(Kind.CONTAINER, "tare-1-sut")
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize(
    ("ident", "name", "engine"),
    [
        ("tare-1-sut@podman", "tare-1-sut", "podman"),
        ("tare/x:1-2@podman-rootless", "tare/x:1-2", "podman-rootless"),
        ("tare-1-sut", "tare-1-sut", None),
        ("x@y", "x@y", None),
    ],
)
def test_an_entry_names_its_engine(ident: str, name: str, engine: str | None) -> None:
    things = parse_entry(ident)
    assert (things.ident, things.engine) == (name, engine)


def test_only_engines_whose_socket_is_there_are_looked_into(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TARE_PODMAN", f"unix://{tmp_path}/p.sock")
    monkeypatch.setenv("TARE_PODMAN_ROOTLESS", f"unix://{tmp_path}/none.sock")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "p.sock"))
        assert list(Engines().there()) == ["podman"]


def test_a_socket_in_a_directory_of_root_alone_is_no_engine_of_a_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Debian's podman makes /run/podman with the mode 0700."""
    shut = tmp_path / "podman"
    shut.mkdir(mode=0o700)
    monkeypatch.setenv("TARE_PODMAN", f"unix://{shut}/podman.sock")
    monkeypatch.setenv("TARE_PODMAN_ROOTLESS", f"unix://{tmp_path}/none.sock")
    shut.chmod(0)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            os.write(writer, repr(list(Engines().there())).encode())
        except BaseException as error:  # noqa: BLE001 - the parent tells it
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    shut.chmod(0o700)
    assert os.read(reader, 4096) == b"[]"
