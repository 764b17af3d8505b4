"""Remove what the ledger lists: after a tare that was killed, or when the user asks for it.

An entry only says where to look. What is removed must bear tare's mark (sites/marks.py), which is looked at right
before; otherwise it belongs to somebody else and stays.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from tare.deployments.cgroup.hierarchy import cgroups_of
from tare.deployments.cgroup.removal import clear, stop_units, warden
from tare.deployments.containerd.client import remove_container
from tare.deployments.directories import force_unmount, is_there, remove_marked
from tare.deployments.kube.namespaces import may_be_gone, remove_namespace
from tare.deployments.kube.node_image import remove_node_image
from tare.deployments.network.bridge import is_ours
from tare.deployments.pod import cni, rules
from tare.deployments.vm.network import remove_link
from tare.errors import RunFailed, TareError
from tare.sites import Host, Process, marks
from tare.sites.engines import Engines, parse_entry
from tare.sites.ledger import Kind, Ledger, Made
from tare.sites.marks import LABEL, RUN_LABEL
from tare.sites.process import alive, boot_id, from_ident, to_ident

if TYPE_CHECKING:
    from docker import DockerClient

_GRACE_S = 2.0
_CALL_S = 60.0
_POLL_S = 0.1

REMAINS = "remains of a killed run"


@dataclass
class Swept:
    """Results of a sweep, one sentence each. Whatever failed is still in the ledger."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def sentences(self, of_what: str) -> tuple[str, ...]:
        """`removed OF WHAT: …` for each removed entry, then the sentences of `failed`."""
        return (*(f"removed {of_what}: {each}" for each in self.removed), *self.failed)


def sweep(
    entries: Iterable[Made],
    hosts: Mapping[str, Host],
    engine: DockerClient | None,
    ledger: Ledger,
    others: Engines | None = None,
) -> Swept:
    """Remove every entry, users before the resources that they use; a failure does not stop the next entry.

    `others`: engines that entries name; entries of `engine` name none.
    """
    others = others or Engines()
    swept = Swept()
    order = list(Kind)
    for entry in sorted(entries, key=lambda entry: order.index(entry.kind)):
        try:
            done = _remove(entry, hosts, engine, others, ledger.home(entry.host))
        except (TareError, DockerException, RequestException) as error:
            explained = error.explanation if isinstance(error, APIError) else str(error)
            swept.failed.append(f"{entry} could not be removed: {explained}{_instead(entry, error)}")
            continue
        ledger.forget(entry.kind, entry.ident, host=entry.host)
        if done:
            swept.removed.append(str(entry))
    return swept


def orphans(engine: DockerClient, here: Host, *, engine_host: str = "local") -> tuple[Made, ...]:
    """Containers and networks whose label names a tare of this boot that is no longer running.

    The ledger lists them too, except one that the engine was still making when its tare was killed, and that an
    earlier sweep therefore did not find.
    """
    boot, orphaned = boot_id(here), []
    wanted: dict[str, str | list[str] | bool] = {"label": RUN_LABEL}
    containers = engine.containers.list(all=True, filters=wanted, ignore_removed=True)
    seen = [(Kind.CONTAINER, str(each.name), each.labels[LABEL]) for each in containers]
    networks = [each for each in engine.networks.list(filters=wanted) if is_ours(each)]
    seen += [(Kind.NETWORK, str(each.name), each.attrs["Labels"][LABEL]) for each in networks]
    for kind, name, label in seen:
        with contextlib.suppress(ValueError):  # not written by this tare, so not to be judged
            owner = from_ident(label)
            if owner.boot_id == boot and not alive(here, owner):
                orphaned.append(Made(kind, name, engine_host, owner))
    return tuple(orphaned)


def _remove(
    entry: Made, hosts: Mapping[str, Host], engine: DockerClient | None, others: Engines, home: str
) -> bool:
    """Remove one entry of the ledger in `home`; return whether there was anything to remove."""
    host = hosts.get(entry.host)
    if host is None:
        raise RunFailed(f"this tare does not know the host {entry.host}")
    if entry.kind in _OF_HOST:
        return _OF_HOST[entry.kind](Entry(host, entry.ident, home, entry.owner))
    named = parse_entry(entry.ident)
    if named.engine is not None:
        engine = others.client(named.engine)
    if engine is None:
        raise RunFailed("no container engine answers", hint="start it and sweep again")
    return _OF_ENGINE[entry.kind](engine, named.ident, entry.owner)


def _instead(entry: Made, error: Exception) -> str:
    """What to do where the cluster of a namespace was not reached."""
    if entry.kind is not Kind.NAMESPACE or not may_be_gone(error):
        return ""
    return f"; set KUBECONFIG to that cluster's file, or if it is gone for good: tare clean --forget {entry.ident}"


@dataclass(frozen=True)
class Entry:
    """What to remove from a host, as the ledger in `home` lists it."""

    host: Host
    ident: str
    home: str
    owner: Process


def _remove_path(entry: Entry) -> bool:
    there = is_there(entry.host, entry.ident, entry.home)
    if there:
        remove_marked(entry.host, entry.ident, entry.home)
    return there


def _unmount(entry: Entry) -> bool:
    if not marks.is_below_own(entry.ident, entry.home):
        raise RunFailed("it is not below a directory that tare makes, so it was left unchanged")
    return force_unmount(entry.host, entry.ident)


def _drop_rules(entry: Entry) -> bool:
    host = entry.host
    maker, _, name = entry.ident.partition(":")
    if maker != "cni":
        marks.refuse_rules(maker, name, entry.owner)
        return rules.drop(host, maker, name)
    scratch = cni.scratch_of(name)
    return is_there(host, scratch, entry.home) and cni.detach(host, name, scratch)


def _end_process(entry: Entry) -> bool:
    process = _process_of(entry.ident)
    if not alive(entry.host, process):
        return False
    words = ("end", str(process.pid), str(process.started_ticks), f"{_GRACE_S:g}", to_ident(entry.owner))
    warden(entry.host, *words, timeout_s=_CALL_S)
    return True


def _process_of(ident: str) -> Process:
    try:
        return from_ident(ident)
    except ValueError as error:
        raise RunFailed("it does not name a process") from error


def _remove_link(entry: Entry) -> bool:
    marks.refuse_link(entry.ident, entry.owner)
    return remove_link(entry.host, entry.ident)


def _remove_node_image(entry: Entry) -> bool:
    marks.refuse_node_image(entry.ident)
    return remove_node_image(entry.host, entry.ident)


def _clear_cgroup(entry: Entry) -> bool:
    host, path = entry.host, entry.ident
    marks.refuse_cgroup(path, entry.owner)
    cgroups = cgroups_of(host)
    places = [f"{place}/cgroup.procs" for place in cgroups.directories(path)]
    there = any(host.read(place) is not None for place in places)
    clear(host, cgroups, path)
    stop_units(host, cgroups, path)
    return there


def _remove_container(engine: DockerClient, name: str, owner: Process) -> bool:
    try:
        container = engine.containers.get(name)
    except NotFound:
        return False
    marks.refuse_labels(container.labels, owner)
    try:
        container.remove(v=True, force=True)
    except NotFound:
        return True
    except APIError as error:
        if error.status_code != HTTPStatus.CONFLICT:
            raise
        _wait_until_gone(engine, name)  # the engine is removing it already: a dead tare had asked for it
    return True


def _wait_until_gone(engine: DockerClient, name: str) -> None:
    deadline = time.monotonic() + _CALL_S
    while time.monotonic() < deadline:
        try:
            engine.containers.get(name)
        except NotFound:
            return
        time.sleep(_POLL_S)
    raise RunFailed(f"the engine has been removing it for {_CALL_S:g} s", hint=f"docker inspect {name}")


def _remove_network(engine: DockerClient, name: str, owner: Process) -> bool:
    try:
        network = engine.networks.get(name)
    except NotFound:
        return False
    marks.refuse_labels(network.attrs.get("Labels") or {}, owner)
    network.remove()
    return True


def _remove_volume(engine: DockerClient, name: str, owner: Process) -> bool:
    try:
        volume = engine.volumes.get(name)
    except NotFound:
        return False
    marks.refuse_labels(volume.attrs.get("Labels") or {}, owner)
    volume.remove(force=True)
    return True


def _remove_image(engine: DockerClient, name: str, _: Process) -> bool:
    """Remove a name of an image.

    The image itself goes with its last name, so it stays while another home uses it.
    """
    marks.refuse_image(name)
    try:
        engine.images.remove(name, force=True, noprune=True)
    except ImageNotFound:
        return False
    return True


_OF_ENGINE: Mapping[Kind, Callable[[DockerClient, str, Process], bool]] = {
    Kind.CONTAINER: _remove_container,
    Kind.NETWORK: _remove_network,
    Kind.VOLUME: _remove_volume,
    Kind.IMAGE: _remove_image,
}
_OF_HOST: Mapping[Kind, Callable[[Entry], bool]] = {
    Kind.PROCESS: _end_process,
    Kind.SERVER: _end_process,
    Kind.MOUNT: _unmount,
    Kind.CGROUP: _clear_cgroup,
    Kind.RULES: _drop_rules,
    Kind.LINK: _remove_link,
    Kind.PATH: _remove_path,
    Kind.NAMESPACE: lambda entry: remove_namespace(entry.ident),
    Kind.CONTAINERD: lambda entry: remove_container(entry.host, entry.ident),
    Kind.NODE_IMAGE: _remove_node_image,
}
