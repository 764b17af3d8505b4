"""Rights that a non-root user lacks on a host over SSH, and the command that grants them."""

from __future__ import annotations

from tare.doctor import Line, cannot, ok, warning
from tare.sites import Host
from tare.sites.file import SshSpec
from tare.sites.reading import answer, as_int
from tare.sites.ssh.dialing import sudoers_script

_FILE = "/etc/sudoers.d/tare"
_HOME = 'HOME=$(getent passwd "$(id -u)" | cut -d: -f6)'
"""The agent's programs do not have the environment of a login."""
_NOT_OURS = 'test -S "$1" && test ! -w "$1" && echo so'


def rights_line(host: Host, spec: SshSpec, *, engine: bool, no_sidecar: str | None) -> Line:
    """Rights of the user who logs in by SSH.

    Container arms need the engine; other arms need root, or sudo for the agent. `no_sidecar`: as in `local_line`.
    """
    user = as_int(answer(host, ["id", "-u"]).strip() or None)
    if user == 0:
        return ok("rights", "root by sudo" if spec.sudo else "root")
    if user is None:
        return cannot("rights", "cannot be determined", f"does `ssh {spec.ssh} id` work?")
    line = answer(host, ["sh", "-c", f"{_HOME}; {sudoers_script(spec)}"]).strip()
    agent = line.rpartition("NOPASSWD: ")[2]
    if agent and answer(host, ["sudo", "-n", "-l", agent]).strip():
        more = "write `sudo: true` for this host in sites.yaml, where sudo starts the agent without a password"
    else:
        more = (
            f"log in as root, or as root there: echo '{line}' >{_FILE}; then write `sudo: true` for this host in "
            "sites.yaml"
        )
    return _of_user(host, user, engine=engine, no_sidecar=no_sidecar, more=more)


def local_line(host: Host, *, engine: bool, no_sidecar: str | None) -> Line:
    """Rights of the user who runs tare here.

    `no_sidecar`: why the engine cannot access containers' files for the user.
    """
    user = as_int(answer(host, ["id", "-u"]).strip() or None)
    if user == 0:
        return ok("rights", "root")
    if user is None:
        return cannot("rights", "cannot be determined", "does `id` work?")
    return _of_user(host, user, engine=engine, no_sidecar=no_sidecar, more="run tare as root")


def _of_user(host: Host, user: int, *, engine: bool, no_sidecar: str | None, more: str) -> Line:
    """Rights of a non-root user. `more`: how arms other than containers can be run."""
    name = f"{answer(host, ['id', '-un']).strip() or user} (user {user})"
    bare = "bare arms, pods, virtual machines and storages but `bind` need root"
    if not engine:
        return cannot("rights", f"{name}, and no engine answers", f"container arms need an engine; {bare}: {more}")
    if no_sidecar is not None:
        return cannot("rights", f"{name}; {no_sidecar}", f"{bare}: {more}")
    return warning("rights", f"{name}: studies of container arms work", f"{bare}: {more}")


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
