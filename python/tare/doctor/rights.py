"""Rights that a non-root user lacks on a host over SSH, and the command that grants them."""

from __future__ import annotations

from collections.abc import Iterator

from tare.doctor import Line, cannot, missing, ok
from tare.requirements.rights import ROOT
from tare.sites import Host
from tare.sites.file import SshSpec
from tare.sites.reading import answer, as_int
from tare.sites.ssh.dialing import sudoers_script

_FILE = "/etc/sudoers.d/tare"
_HOME = 'HOME=$(getent passwd "$(id -u)" | cut -d: -f6)'
"""The agent's programs do not have the environment of a login."""
_NOT_OURS = 'test -S "$1" && test ! -w "$1" && echo so'


def rights_lines(host: Host, spec: SshSpec | None) -> Iterator[Line]:
    """Rights of the user who runs tare here, or who logs in by SSH.

    Container arms need the engine; other arms need root, or sudo for the agent.
    """
    user = as_int(answer(host, ["id", "-u"]).strip() or None)
    if user == 0:
        yield ok(ROOT.name, "root by sudo" if spec is not None and spec.sudo else "root")
    elif user is None:
        command = "id" if spec is None else f"ssh {spec.ssh} id"
        yield cannot(ROOT.name, "cannot be determined", f"does `{command}` work?")
    else:
        name = f"{answer(host, ['id', '-un']).strip() or user} (user {user})"
        more = "run tare as root" if spec is None else _by_sudo(host, spec)
        bare = "bare arms, pods, virtual machines and storages but `bind` need root"
        yield missing(ROOT.name, f"{name}: studies of container arms work", f"{bare}: {more}")
    if spec is not None and (socket := socket_line(host, spec)) is not None:
        yield socket


def _by_sudo(host: Host, spec: SshSpec) -> str:
    """How arms other than containers can be run by a user over SSH."""
    line = answer(host, ["sh", "-c", f"{_HOME}; {sudoers_script(spec)}"]).strip()
    agent = line.rpartition("NOPASSWD: ")[2]
    if agent and answer(host, ["sudo", "-n", "-l", agent]).strip():
        return "write `sudo: true` for this host in sites.yaml, where sudo starts the agent without a password"
    return (
        f"log in as root, or as root there: echo '{line}' >{_FILE}; then write `sudo: true` for this host in "
        "sites.yaml"
    )


def socket_line(host: Host, spec: SshSpec) -> Line | None:
    """Check the engine's socket, which SSH forwards as the user who logs in; `None` if nothing is wrong.

    An agent run by sudo sees the socket as root does, which says nothing about this user.
    """
    if spec.sudo or not answer(host, ["sh", "-c", _NOT_OURS, "sh", spec.engine]):
        return None
    owner, _, group = answer(host, ["stat", "-L", "-c", "%U %G", spec.engine]).strip().partition(" ")
    name = answer(host, ["id", "-un"]).strip()
    return cannot(
        "engine's socket",
        f"{spec.engine} is {owner}'s and the group {group}'s, and {name} may not use it",
        f"container arms need it; as root there: usermod -aG {group} {name}, which gives them root",
    )
