"""Whether the user's cluster runs pods on this machine: one is started here and removed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

from tare.deployments.kube.api import Cluster, connect
from tare.deployments.kube.cluster_pod import ClusterPod
from tare.deployments.kube.requirement import usable_node
from tare.deployments.kube.sleeper import sleeper
from tare.deployments.sweep import sweep
from tare.doctor import Line, missing, ok
from tare.errors import EnvironmentLacks, RunFailed, TareError
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.process import alive
from tare.study.values import NetworkKind

_CALL_S = 30.0
_ADVICE = "only needed by arms with `deployment: pod`"
_LINE = "cluster"


def cluster_lines(host: Host, ledger: Ledger, reach: Callable[[], Cluster] = connect) -> Iterator[Line]:
    """One line: the cluster's address, this machine's node, and whether a pod of tare starts here."""
    try:
        cluster = reach()
    except EnvironmentLacks as error:
        yield ok(_LINE, error.what)
        return
    if host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() != "0":
        yield missing(_LINE, f"{cluster.server}: cannot be tried without root", f"{_ADVICE}: run it with sudo")
        return
    try:
        node = usable_node(host, reach)
        seconds = _trial(host, ledger, reach)
    except TareError as error:
        hint = "" if error.hint is None else f": {error.hint}"
        yield missing(_LINE, f"{cluster.server}: does not work: {error.what}", f"{_ADVICE}{hint}")
        return
    what = f"node {node.name}, kubelet {node.kubelet}, {node.runtime.replace('://', ' ')}"
    yield ok(_LINE, f"{cluster.server}: works, a pod was started and ended in {seconds:.1f} s ({what})")


def _trial(host: Host, ledger: Ledger, reach: Callable[[], Cluster]) -> float:
    """Start and end a pod whose program sleeps; return the seconds it took.

    The namespace made for it is removed too.
    """
    began, before = time.monotonic(), set(ledger.entries())
    place = host.run(["mktemp", "-d"], timeout_s=_CALL_S).text.strip()
    try:
        pods = ClusterPod(host, ledger, None, reach)
        name = f"tare-doctor-{uuid4().hex[:12]}"
        task = sleeper(host, place, name)
        # The image is the trial's own, as the trial removes it again.
        image = replace(task.image, digest=uuid4().hex)
        task = replace(task, image=image, network=NetworkKind.POD)
        instance = pods.start(task)
        try:
            lives = alive(host, instance.process)
        finally:
            pods.stop(instance, grace_s=0)
        if not lives:
            raise RunFailed("a pod was started, and its program ended at once")
    finally:
        host.run(["rm", "-rf", "--one-file-system", "--", place], timeout_s=_CALL_S, check=False)
        kinds = {Kind.NAMESPACE, Kind.NODE_IMAGE}
        made = [entry for entry in ledger.entries() if entry.kind in kinds and entry not in before]
        swept = sweep(made, {host.name: host}, None, ledger)
    if swept.failed:
        raise RunFailed("; ".join(swept.failed), hint="tare clean tries again")
    return time.monotonic() - began
