"""Hosts over OpenSSH: the whole contract, each refusal as one sentence, and connections that break."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
from tests.integration.hosts.sshd import Sshd, running, trust
from tests.unit.sites.host_contract import HostContract, until
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.sites.connected import connected
from tare.sites.file import SiteSpec
from tare.sites.layout import Layout
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.ssh.dialing import SshDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link

pytestmark = pytest.mark.skipif(
    shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") is None and "CI" not in os.environ,
    reason="no sshd: apt-get install openssh-server",
)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


def dialer(sshd: Sshd, home: Path, **keys: object) -> SshDialer:
    return SshDialer(sshd.spec(home=str(home), **keys), "test", agent_program())


@pytest.fixture(scope="module")
def link(sshd: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    link = Link("far", dialer(sshd, tmp_path_factory.mktemp("home")))
    yield link
    link.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


class TestOverSsh(HostContract):
    @pytest.fixture
    def host(self, link: Link) -> Host:
        return SshHost(link)


def test_the_agent_is_copied_once(sshd: Sshd, home: Path) -> None:
    for _ in range(2):
        link = Link("far", dialer(sshd, home))
        link.close()
    (program,) = (home / "agent").glob("tare-agent-*")
    assert program.read_bytes() == agent_program().read_bytes()
    copied = program.stat().st_mtime_ns
    Link("far", dialer(sshd, home)).close()
    assert program.stat().st_mtime_ns == copied


def refused(sshd: Sshd, home: Path, **keys: object) -> str:
    with pytest.raises(EnvironmentLacks) as raised:
        Link("far", dialer(sshd, home, **keys))
    assert not (home / "agent").exists()
    return str(raised.value)


def test_an_unknown_host_key_is_refused(sshd: Sshd, home: Path) -> None:
    trust(sshd, None)
    try:
        sentence = refused(sshd, home)
    finally:
        trust(sshd, "host")
    assert "the host key of far is not known here (log in once and compare the key: ssh -F" in sentence
    assert not (sshd.place / "known_hosts").read_text().count("\n") > 1


def test_a_changed_host_key_is_refused(sshd: Sshd, home: Path) -> None:
    trust(sshd, "stranger")
    try:
        sentence = refused(sshd, home)
    finally:
        trust(sshd, "host")
    assert "the host key of far has changed" in sentence


def test_a_key_that_is_not_let_in_is_told(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(sshd.config.read_text().replace(f"{sshd.place}/client", f"{sshd.place}/stranger"))
    assert "far accepts none of this user's keys (" in refused(sshd, home, ssh_config=str(config))


def test_a_host_out_of_reach_is_told(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(sshd.config.read_text().replace(f"Port {sshd.port}", "Port 1"))
    sentence = refused(sshd, home, ssh_config=str(config))
    assert "far cannot be reached: ssh: connect to host 127.0.0.1 port 1: Connection refused" in sentence
    nowhere = "no.such.host.invalid"
    config.write_text(sshd.config.read_text().replace("HostName 127.0.0.1", f"HostName {nowhere}"))
    assert f"far cannot be reached: ssh: Could not resolve hostname {nowhere}" in refused(
        sshd, home, ssh_config=str(config)
    )


def test_a_machine_of_another_kind_is_told(sshd: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "s390x")
    sentence = refused(sshd, home)
    assert f"far is a {os.uname().machine} machine, and tare has an agent for s390x only" in sentence


def test_sudo_that_asks_is_told(sshd: Sshd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stood in for by a sudo that says what the real one says without a terminal."""
    sudo = tmp_path / "bin" / "sudo"
    sudo.parent.mkdir()
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    config = sshd.place / "sshd_config"
    before = config.read_text()
    config.write_text(before.replace('"PATH=', f'XDG_DATA_HOME={tmp_path}/data "PATH={sudo.parent}:'))
    sshd.down()
    sshd.up()
    try:
        with pytest.raises(EnvironmentLacks, match="sudo on far does not start tare's agent without a password"):
            Link("far", SshDialer(sshd.spec(sudo=True), "test", agent_program()))
    finally:
        config.write_text(before)
        sshd.down()
        sshd.up()
        _remove_copied()


def _remove_copied() -> None:
    """Root's agents lie below /var/lib/tare where sites.yaml gives no home."""
    folder = Path("/var/lib/tare/agent")
    digest = hashlib.sha256(agent_program().read_bytes()).hexdigest()
    (folder / f"tare-agent-{digest[:16]}").unlink(missing_ok=True)
    if folder.exists() and not list(folder.iterdir()):
        folder.rmdir()


def test_a_full_disk_is_told(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True, timeout=60)
    try:
        with pytest.raises(EnvironmentLacks, match=r"could not be copied to far: .*No space left"):
            Link("far", dialer(sshd, small))
        link = Link("far", dialer(sshd, home))
        with pytest.raises(Exception, match=f"{small}/x cannot be written on far: No space left on device"):
            SshHost(link).put(b"x" * 100_000, f"{small}/x")
        with pytest.raises(Exception, match=f"{small}/x cannot be written on far: No space left on device"):
            SshHost(link).put(b"x" * 9_000_000, f"{small}/x")
        assert {path.name for path in small.iterdir()} == {"agent", ".tare"}
        assert not list((small / "agent").iterdir())
        link.close()
    finally:
        subprocess.run(["umount", str(small)], check=True, timeout=60)


def test_a_connection_cut_for_seconds_is_not_noticed(sshd: Sshd, link: Link, tmp_path: Path) -> None:
    script = f"echo ran >>{tmp_path}/runs; sleep 4; echo done"
    host = SshHost(link)

    def fault() -> None:
        sshd.down()
        time.sleep(2)
        sshd.up()

    Timer(0.5, fault).start()
    assert host.run(["sh", "-c", script], timeout_s=60).text == "done\n"
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_a_connection_cut_again_and_again_loses_nothing(sshd: Sshd, link: Link, tmp_path: Path) -> None:
    host = SshHost(link)
    for n in range(5):
        sshd.cut()
        host.run(["sh", "-c", f"echo {n} >>{tmp_path}/order"], timeout_s=60)
    assert (tmp_path / "order").read_text() == "0\n1\n2\n3\n4\n"


def test_a_site_is_connected_with_one_ledger_over_its_hosts(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    here = Layout(tmp_path / "here")
    site = SiteSpec(name="pair", sut="local", client=sshd.spec(home=str(home), address="127.0.0.1"))
    with connected(site, layout=here) as connection:
        assert (connection.site.sut.name, connection.site.client.name) == ("local", "far")
        assert connection.site.addresses == {"far": "127.0.0.1", "local": "127.0.0.1"}
        assert connection.homes["far"] == Layout(home)
        connection.ledger.note(Kind.PATH, f"{tmp_path}/a/here", host="local")
        connection.ledger.note(Kind.PATH, f"{tmp_path}/a/far", host="far")
        assert {(made.host, made.ident) for made in connection.ledger.entries()} == {
            ("local", f"{tmp_path}/a/here"), ("far", f"{tmp_path}/a/far")
        }  # fmt: skip
        assert not connection.ledger.abandoned()
        agent = from_ident(connection.links["far"].agent.ident)
    until(lambda: not alive(LocalHost(), agent))


def test_one_host_under_two_names_is_refused(sshd: Sshd, home: Path) -> None:
    one = sshd.spec(home=str(home))
    other = sshd.spec(home=str(home), ssh="127.0.0.1", name="other")
    with (
        pytest.raises(EnvironmentLacks, match="far and other are one host under two names"),
        connected(SiteSpec(name="pair", sut=one, client=other), session="a"),
    ):
        pass


def test_clean_removes_what_the_ledger_of_a_host_names(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    link = Link("far", dialer(sshd, home))
    cache = home / "programs" / "cache"
    cache.mkdir(parents=True)
    AgentLedger(link).note(Kind.PATH, str(cache), host="far", keep=True)
    link.close()
    assert cache.exists()
    far = f"{{ssh: far, ssh_config: {sshd.config}, home: {home}}}"
    (tmp_path / "sites.yaml").write_text(f"format: 1\nsites:\n  - {{name: one, sut: {far}, client: {far}}}\n")
    call = ["clean", "--yes", "--sites", str(tmp_path / "sites.yaml")]
    done = CliRunner().invoke(app, call, env={"TARE_HOME": str(tmp_path / "here")})
    assert done.exit_code == 0, done.output
    assert f"path {cache} on far" in done.stdout
    assert not cache.exists()
    assert "nothing to remove" in CliRunner().invoke(app, call, env={"TARE_HOME": str(tmp_path / "here")}).stdout


def test_what_a_running_tare_uses_is_not_cleaned(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    link = Link("far", dialer(sshd, home))
    AgentLedger(link).note(Kind.PATH, f"{tmp_path}/deep/run", host="far")
    far = f"{{ssh: far, ssh_config: {sshd.config}, home: {home}}}"
    (tmp_path / "sites.yaml").write_text(f"format: 1\nsites:\n  - {{name: one, sut: {far}, client: {far}}}\n")
    call = ["clean", "--yes", "--sites", str(tmp_path / "sites.yaml")]
    done = CliRunner().invoke(app, call, env={"TARE_HOME": str(tmp_path / "here")})
    assert isinstance(done.exception, EnvironmentLacks)
    assert " on far) is using what would be removed" in str(done.exception)
    link.close()
