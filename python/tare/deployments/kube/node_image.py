"""An image brought to a node: the very tree that bare tasks run from, as one layer, into its containerd."""

from __future__ import annotations

from dataclasses import dataclass

from tare.deployments.directories import remove_tree
from tare.deployments.kube.archive import CONFIG, LAYER, MANIFEST, manifest, settings
from tare.errors import EnvironmentLacks, RunFailed
from tare.images import Image
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger

LABEL = "org.tare-bench.digest"
_NAMESPACE = "k8s.io"
"""Of containerd's, in which the kubelet's images are."""
_CALL_S, _LONG_S = 60.0, 900.0


@dataclass(frozen=True)
class NodeImages:
    """Those of one node. `socket`: of its containerd."""

    host: Host
    ledger: Ledger
    socket: str

    def ensure(self, image: Image, scratch: str) -> str:
        """The name by which pods of this node have the image; brought to it once, and kept as a cache."""
        name = f"tare.invalid/image:{image.digest[:24]}"
        if name in ctr(self.host, self.socket, "images", "ls", "-q").split():
            return name
        self.ledger.note(Kind.NODE_IMAGE, f"{name}@{self.socket}", host=self.host.name, keep=True)
        self.ledger.note(Kind.PATH, scratch, host=self.host.name)
        try:
            self._bring(image, name, scratch)
        finally:
            remove_tree(self.host, scratch)
            self.ledger.forget(Kind.PATH, scratch, host=self.host.name)
        return name

    def _bring(self, image: Image, name: str, scratch: str) -> None:
        run, layer = self.host.run, f"{scratch}/{LAYER}"
        run(["install", "-d", "-m", "0700", "--", scratch], timeout_s=_CALL_S)
        tree = ["--sort=name", "--numeric-owner", "--xattrs", "--xattrs-include=security.capability"]
        run(["tar", *tree, "--create", "--file", layer, "--directory", image.rootfs, "."], timeout_s=_LONG_S)
        digest = run(["sha256sum", "--", layer], timeout_s=_LONG_S).text.split()[0]
        machine = run(["uname", "-m"], timeout_s=_CALL_S).text.strip()
        self.host.put(settings(digest, machine, labels={LABEL: image.digest}), f"{scratch}/{CONFIG}")
        self.host.put(manifest(name), f"{scratch}/{MANIFEST}")
        whole = f"{scratch}/image.tar"
        files = [MANIFEST, CONFIG, LAYER]
        run(["tar", "--create", "--file", whole, "--directory", scratch, *files], timeout_s=_LONG_S)
        ctr(self.host, self.socket, "images", "import", whole, timeout_s=_LONG_S)


def ctr(host: Host, socket: str, *words: str, timeout_s: float = _CALL_S) -> str:
    """Containerd's own client on the node. Raises `EnvironmentLacks` where it is missing or refused."""
    argv = ["ctr", "--address", socket, "--namespace", _NAMESPACE, *words]
    try:
        return host.run(argv, timeout_s=timeout_s).text
    except RunFailed as error:
        raise EnvironmentLacks(
            f"containerd at {socket} on {host.name} cannot be spoken to: {error.what}",
            hint="tare needs root on the node, and `ctr` of the package containerd",
        ) from error


def remove_node_image(host: Host, ident: str) -> bool:
    """Remove an image as it stands in the ledger, `NAME@SOCKET`; whether it was there.

    A socket's directory goes with its containerd, or with a reboot; kubelet then removes what no pod uses.
    """
    name, _, socket = ident.partition("@")
    place = socket.rpartition("/")[0]
    if host.run(["test", "-d", place], timeout_s=_CALL_S, check=False).code != 0:
        return False
    if name not in ctr(host, socket, "images", "ls", "-q").split():
        return False
    ctr(host, socket, "images", "rm", name)
    return True
