"""A volume of a cluster's storage class: claimed, held by a pod that sleeps, seen on the node, emptied, let go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.test_cluster_pod import PID, SCHEDULED, Bench

from tare.deployments import Claim
from tare.deployments.kube import cluster_pod
from tare.deployments.kube.claims import must_have_classes
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Completed
from tare.storage import DataRequest
from tare.storage.claim import ClaimStorage
from tare.study.model import StorageSpec

FAST = StorageSpec(kind="claim", storage_class="fast", size="1G")
PENDING = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        }
    ]
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A node that shows the volume of a class `fast` at /vols/a."""
    for limit in ("_START_S", "_PENDING_S", "_REPORTED_S", "_GONE_S"):
        monkeypatch.setattr(cluster_pod, limit, 0.3)
    bench = Bench(tmp_path)
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    bench.client.objects |= {
        f"{classes}/fast": {"metadata": {"name": "fast"}},
        classes: {"items": [{"metadata": {"name": "slow"}}, {"metadata": {"name": "fast"}}]},
    }
    bench.host.files[f"/proc/{PID}/mountinfo"] = b"90 80 7:3 / /volume rw - ext4 /dev/loop3 rw\n"
    bench.host.files["/proc/self/mountinfo"] += b"40 25 7:3 / /vols/a rw - ext4 /dev/loop3 rw\n"
    bench.host.answers["stat",] = Completed((), 0, b"7:2\n7:2\n")
    return bench


def storage(bench: Bench) -> ClaimStorage:
    return ClaimStorage(bench.host, bench.ledger, None, lambda: bench.cluster)


def request(name: str = "tare-a") -> DataRequest:
    return DataRequest(f"/w/{name}", name, 1 << 20)


def claims(bench: Bench) -> dict[str, Any]:
    return {path: tree for path, tree in bench.client.objects.items() if "/persistentvolumeclaims/" in path}


def test_a_volume_is_claimed_of_its_class_and_found_where_the_node_has_it(bench: Bench) -> None:
    mount = storage(bench).prepare(request(), FAST)
    ((path, tree),) = claims(bench).items()
    assert tree["spec"]["storageClassName"] == "fast"
    assert tree["spec"]["resources"] == {"requests": {"storage": str(1 << 30)}}
    assert (mount.path, mount.fstype, mount.device) == ("/vols/a/data", "ext4", "7:3")
    assert mount.claim == path.rpartition("/")[2]
    assert mount.mismatch("ext4 7:3") is None
    assert mount.mismatch("ext4 254:0") == "ext4 7:3"
    (pod,) = (tree for path, tree in bench.client.objects.items() if "/pods/" in path)
    volumes = [each.get("persistentVolumeClaim") for each in pod["spec"]["volumes"]]
    assert {"claimName": mount.claim} in volumes


def test_without_a_size_a_claim_has_room_for_twice_the_data(bench: Bench) -> None:
    storage(bench).prepare(request(), StorageSpec(kind="claim", storage_class="fast"))
    (tree,) = claims(bench).values()
    assert tree["spec"]["resources"] == {"requests": {"storage": str((2 << 20) + (256 << 20))}}


def test_the_data_go_before_the_pod_and_the_next_run_takes_the_same_claim(bench: Bench) -> None:
    made = storage(bench)
    first = made.prepare(request(), FAST)
    made.clear(request())
    removed = [argv for argv in bench.host.ran() if argv[0] == "rm" and argv[-1] == "/vols/a/data"]
    assert len(removed) == 2, "before the data are put there, and after"
    assert bench.left == set()
    again = storage(bench)
    assert again.prepare(request("tare-b"), FAST).claim == first.claim
    assert len(claims(bench)) == 1
    again.clear(request("tare-b"))
    again.clear(request("tare-b"))


def test_two_runs_at_once_have_a_claim_each(bench: Bench) -> None:
    first, second = storage(bench), storage(bench)
    assert first.prepare(request(), FAST).claim != second.prepare(request("tare-b"), FAST).claim
    assert len(claims(bench)) == 2


def test_a_class_that_is_not_there_is_told_with_those_that_are(bench: Bench) -> None:
    why = r"the cluster at https://cluster:6443 has no storage class `none` \(it has: fast, slow\)"
    with pytest.raises(EnvironmentLacks, match=why):
        storage(bench).prepare(request(), StorageSpec(kind="claim", storage_class="none"))
    with pytest.raises(EnvironmentLacks, match="no storage class `a` and no `b`"):
        must_have_classes(bench.cluster, ["b", "fast", "a"])
    assert claims(bench) == {}
    assert bench.left == set()


def test_a_claim_without_a_volume_is_pending_with_the_schedulers_reason(bench: Bench) -> None:
    bench.status = PENDING
    why = r"the claim of the storage class `fast` is pending: .*: the pod .* unbound immediate Persistent"
    with pytest.raises(RunFailed, match=why):
        storage(bench).prepare(request(), FAST)
    assert bench.left == set()


def test_a_pod_that_fails_with_a_bound_claim_is_told_as_any(bench: Bench) -> None:
    def bound(place: str, tree: dict[str, Any]) -> None:
        tree["status"] = {"phase": "Bound"} if tree["kind"] == "PersistentVolumeClaim" else bench.status

    bench.client.on_post = bound
    bench.status = {"conditions": [SCHEDULED], "phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    with pytest.raises(RunFailed, match=r"^the pod .* was evicted from its node: low on memory"):
        storage(bench).prepare(request(), FAST)
    assert bench.left == set()


def test_a_volume_that_the_node_does_not_show_is_refused_and_let_go(bench: Bench) -> None:
    bench.host.answers["stat",] = Completed((), 0, b"7:2\n8:9\n")
    made = storage(bench)
    with pytest.raises(EnvironmentLacks, match="fake cannot see where a volume of the storage class `fast` is"):
        made.prepare(request(), FAST)
    made.clear(request())
    assert bench.left == set()


def test_a_server_has_the_data_below_the_volume(bench: Bench) -> None:
    from tests.unit.deployments.kube.test_manifest import a_task, manifest

    task = storage(bench).prepare(request(), FAST).add_to(a_task(), "/data")
    (claim,) = task.claims
    assert (claim.target, claim.below) == ("/data", "data")
    assert task.targets == ("/data",)
    (container,) = manifest(claims=(Claim("c", "/data", "data"),))["spec"]["containers"]
    assert {"name": "claim-0", "mountPath": "/data", "subPath": "data"} in container["volumeMounts"]
