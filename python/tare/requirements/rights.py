"""Rights of the user."""

from __future__ import annotations

from collections.abc import Iterator

from tare.requirements import HostPlan, Lack, Requirement

_ENGINE_ONLY = (
    "or run a study whose servers and clients are all containers with the storage `bind`, which needs the engine "
    "only"
)


def _root(there: HostPlan) -> Iterator[Lack]:
    if not there.is_root:
        advice = "log in as root or give it `sudo: true`" if there.in_sites else "run tare with sudo"
        yield Lack("this user is not root", f"{advice}, {_ENGINE_ONLY}")


def _sight_of_lan(there: HostPlan) -> Iterator[Lack]:
    if not there.is_root:
        why = "only root sees whether they carry the traffic"
        yield Lack(why, "log in as root or give it `sudo: true`, or use another network")


ROOT = Requirement(
    "root",
    needed_by="bare tasks, virtual machines, pods, containerd, control groups (also of rootless Podman) and "
    "storages other than `bind`",
    tried_how="`id -u`",
    hint="run tare with sudo",
    ask=_root,
)
SIGHT_OF_LAN = Requirement(
    "root between hosts",
    needed_by="`macvlan` and `ipvlan` between hosts",
    tried_how="`id -u`",
    hint="log in as root or give the host `sudo: true`",
    ask=_sight_of_lan,
    between_hosts=True,
)
