"""What a user's own SSH set-up brings along: jump hosts, agents and sudo, by OpenSSH against real sshds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hosts.sshd import Sshd, running, trust

from tare.errors import EnvironmentLacks
from tare.sites.ssh.dialing import SshDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link

pytestmark = pytest.mark.skipif(
    shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") is None and "CI" not in os.environ,
    reason="no sshd: apt-get install openssh-server",
)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@pytest.fixture(scope="module")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running(tmp_path_factory.mktemp("jump")) as jump:
        yield jump


def linked(sshd: Sshd, config: Path, home: Path, **keys: object) -> Link:
    spec = sshd.spec(home=str(home), ssh_config=str(config), **keys)
    return Link("far", SshDialer(spec, "test", agent_program()))


def by_way_of(jump: Sshd, sshd: Sshd, config: Path) -> Path:
    """As ~/.ssh/config has it: `far` is reached through `jump`, each with keys of its own."""
    through, beyond = (each.config.read_text() for each in (jump, sshd))
    config.write_text(
        f"{through.replace('Host *', 'Host jump')}\n{beyond.replace('Host *', 'Host far')}  ProxyJump jump\n"
    )
    return config


def test_a_host_behind_a_jump_host_is_reached_through_it(jump: Sshd, sshd: Sshd, tmp_path: Path) -> None:
    config = by_way_of(jump, sshd, tmp_path / "ssh_config")
    link = linked(sshd, config, tmp_path / "home")
    try:
        assert len(jump.connections()) == 1
        assert SshHost(link).run(["echo", "there"], timeout_s=60).text == "there\n"
        jump.cut()
        assert SshHost(link).run(["echo", "still there"], timeout_s=60).text == "still there\n"
        assert len(jump.connections()) == 1
    finally:
        link.close()


def test_an_unknown_jump_host_is_refused(jump: Sshd, sshd: Sshd, tmp_path: Path) -> None:
    trust(jump, None)
    try:
        with pytest.raises(EnvironmentLacks, match="host key"):
            linked(sshd, by_way_of(jump, sshd, tmp_path / "ssh_config"), tmp_path / "home")
    finally:
        trust(jump, "host")
    assert not (tmp_path / "home").exists()


def test_a_jump_host_out_of_reach_is_told(jump: Sshd, sshd: Sshd, tmp_path: Path) -> None:
    config = by_way_of(jump, sshd, tmp_path / "ssh_config")
    config.write_text(config.read_text().replace(f"Port {jump.port}", "Port 1"))
    with pytest.raises(EnvironmentLacks, match="far cannot be reached: "):
        linked(sshd, config, tmp_path / "home")


def test_the_user_s_agent_lets_in_and_does_not_go_along(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the user's configuration says of forwarding it."""
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True, timeout=60).stdout
    words = dict(word.split("=", 1) for line in started.splitlines() for word in line.split("; ") if "=" in word)
    monkeypatch.setenv("SSH_AUTH_SOCK", words["SSH_AUTH_SOCK"].rstrip(";"))
    try:
        subprocess.run(["ssh-add", "-q", str(sshd.place / "client")], check=True, timeout=60)
        config = tmp_path / "ssh_config"
        lines = [line for line in sshd.config.read_text().splitlines() if "Identit" not in line]
        config.write_text("\n".join([*lines, "  IdentityFile none", "  ForwardAgent yes", ""]))
        link = linked(sshd, config, tmp_path / "home")
        try:
            printed = SshHost(link).run(["sh", "-c", "echo ${SSH_AUTH_SOCK-none}"], timeout_s=60)
            assert printed.text == "none\n"
        finally:
            link.close()
    finally:
        os.kill(int(words["SSH_AGENT_PID"].rstrip(";")), signal.SIGTERM)


def test_sudo_starts_the_agent_and_nothing_else(sshd: Sshd, tmp_path: Path) -> None:
    """A line for sudoers that names the agent alone is enough. Stood in for by one that keeps what it was asked."""
    sudo, asked = tmp_path / "bin" / "sudo", tmp_path / "asked"
    sudo.parent.mkdir()
    sudo.write_text(f'#!/bin/sh\necho "$*" >>{asked}\n[ "$1" = -n ] || exit 1\nshift\nexec "$@"\n')
    sudo.chmod(0o755)
    # The agent lies in the home of whoever logs in, as root does not here: root's own place is the machine's.
    identity = tmp_path / "bin" / "id"
    identity.write_text("#!/bin/sh\necho 1000\n")
    identity.chmod(0o755)
    config = sshd.place / "sshd_config"
    before = config.read_text()
    config.write_text(before.replace('"PATH=', f'XDG_DATA_HOME={tmp_path}/data "PATH={sudo.parent}:'))
    sshd.down()
    sshd.up()
    try:
        link = linked(sshd, sshd.config, tmp_path / "home", sudo=True)
        try:
            SshHost(link).put(b"content", f"{tmp_path}/file")
            assert SshHost(link).read(f"{tmp_path}/file") == b"content"
        finally:
            link.close()
    finally:
        config.write_text(before)
        sshd.down()
        sshd.up()
    (program,) = (tmp_path / "data" / "tare" / "agent").glob("tare-agent-*")
    starts = set(asked.read_text().splitlines())
    assert starts == {f"-n {program} connect --session test --home {tmp_path}/home"}
