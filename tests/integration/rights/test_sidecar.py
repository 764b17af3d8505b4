"""The sidecar's container: what it may do, that it goes with its tare, and that a lost one is an error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.image_tags import image_tags

from tare.errors import RunFailed
from tare.sites.engine import connect
from tare.sites.layout import Layout, make_home
from tare.sites.local import LocalHost
from tare.sites.sidecar import container
from tare.sites.sidecar.container import CAPABILITIES, Sidecar, surroundings
from tare.sites.sidecar.host import UserHost
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.apart]

_USER = 65_432
CAPABILITY_BITS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "SYS_PTRACE": 19}
"""Of linux/capability.h."""


@pytest.fixture
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=30)
    yield client
    client.close()


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.fixture
def host(
    engine: DockerClient, tmp_path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> Iterator[UserHost]:
    """As the host of a user with that number."""
    monkeypatch.setattr(
        container, "surroundings", lambda *words: replace(surroundings(*words), user=_USER, group=_USER)
    )
    layout = Layout(tmp_path / "home")
    make_home(layout.home)
    layout.work.mkdir()
    for place in (layout.home, layout.work):
        os.chown(place, _USER, _USER)
    host = UserHost(Sidecar(LocalHost(), lambda: engine, layout.home, ledger), layout)
    yield host
    host.calls.rest()
    assert ledger.entries() == ()
    assert not any(tag.startswith("tare/sidecar:") for tag in image_tags(engine))


def test_it_is_the_user_with_four_capabilities_and_no_way_to_more(host: UserHost, tmp_path: Path) -> None:
    work = tmp_path / "home" / "work"
    script = "print(open('/proc/self/status').read())"
    status = dict(
        line.split(":\t", 1)
        for line in host.run(["python3", "-c", script, str(work)], timeout_s=60).text.splitlines()
        if ":\t" in line
    )
    wanted = sum(1 << CAPABILITY_BITS[name] for name in CAPABILITIES)
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")} == {wanted}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split() == [str(_USER)] * 4
    host.run(["install", "-d", f"{work}/run"], timeout_s=60)
    assert (work / "run").stat().st_uid == _USER


def test_files_are_given_away_read_and_removed_and_others_namespaces_seen(host: UserHost, tmp_path: Path) -> None:
    work = tmp_path / "home" / "work"
    host.run(["install", "-d", "-m", "0700", f"{work}/data"], timeout_s=60)
    host.put(b"secret", f"{work}/data/file", mode=0o600)
    host.run(["chown", "-R", "--", "998:998", f"{work}/data"], timeout_s=60)
    assert (work / "data" / "file").stat().st_uid == 998
    assert host.read(f"{work}/data/file") == b"secret"
    host.run(["rm", "-rf", "--", f"{work}/data"], timeout_s=60)
    assert list(work.iterdir()) == []
    link = f"/proc/{os.getpid()}/ns/net"
    assert host.run(["readlink", link], timeout_s=60).text.strip() == os.readlink(link)  # noqa: PTH115 - no path


def test_nothing_of_the_host_is_there_but_programs_its_home_and_control_groups(
    host: UserHost, tmp_path: Path
) -> None:
    beside = tmp_path / "beside"
    beside.write_text("x")
    work = str(tmp_path / "home" / "work")
    shown = host.run(["ls", "-A", work, "/etc", "/root", str(tmp_path)], timeout_s=60, check=False).text
    assert "shadow" not in shown
    assert "beside" not in shown
    refused = host.run(["touch", f"{work}/x", "/usr/bin/x"], timeout_s=60, check=False)
    assert b"Read-only file system" in refused.stderr


def test_one_that_was_removed_is_an_error_and_the_next_question_makes_another(
    host: UserHost, engine: DockerClient, tmp_path: Path
) -> None:
    work = str(tmp_path / "home" / "work")
    host.run(["test", "-d", work], timeout_s=60)
    (container,) = engine.containers.list(filters={"name": "tare-sidecar-"}, ignore_removed=True)
    container.remove(force=True)
    with pytest.raises(RunFailed, match="container for files and processes"):
        host.run(["test", "-d", work], timeout_s=60)
    assert host.run(["test", "-d", work], timeout_s=60).code == 0
