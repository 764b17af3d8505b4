"""Images as containerd imports them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

from tare.deployments.kube.archive import CONFIG, LAYER, MANIFEST, archive, settings
from tare.deployments.pod.pause import PATH, pause_image


def _files(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar}


def test_an_archive_names_its_image_and_its_layer_by_digest() -> None:
    layer = pause_image("x86_64")
    files = _files(archive("tare.invalid/pause:1", layer, "x86_64", PATH))
    (listed,) = json.loads(files[MANIFEST])
    config = json.loads(files[CONFIG])
    assert listed == {"Config": CONFIG, "RepoTags": ["tare.invalid/pause:1"], "Layers": [LAYER]}
    assert files[LAYER] == layer
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["architecture"] == "amd64"
    assert config["config"]["Entrypoint"] == ["/pause"]


def test_an_image_of_a_task_runs_nothing_by_itself() -> None:
    config = json.loads(settings("ab" * 32, "aarch64", labels={"a": "b"}))
    assert config["architecture"] == "arm64"
    assert config["config"] == {"Labels": {"a": "b"}}
