"""Bring an image to a node: the tree that bare tasks run from, as one layer, imported into containerd."""

from __future__ import annotations

from dataclasses import dataclass

from tare.deployments.containerd.ctr import CALL_S, KUBELETS, ctr
from tare.deployments.directories import remove_tree
from tare.deployments.kube.archive import CONFIG, LAYER, MANIFEST, manifest, settings
from tare.images import Image
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import make_marked

LABEL = "org.tare-bench.digest"
_LONG_S = 900.0


@dataclass(frozen=True)
class NodeImages:
    """Images on one node.

    `socket`: its containerd's socket; `namespace`: containerd's namespace that holds the images.
    """

    host: Host
    ledger: Ledger
    socket: str
    namespace: str = KUBELETS

    def ensure(self, image: Image, scratch: str) -> str:
        """Import the image unless the node has it; return its name for containers.

        It stays on the node as a cache.
        """
        name = f"tare.invalid/image:{image.digest[:24]}"
        place = self.socket if self.namespace == KUBELETS else f"{self.socket}#{self.namespace}"
        self.ledger.note(Kind.NODE_IMAGE, f"{name}@{place}", host=self.host.name, keep=True)
        if name in ctr(self.host, self.socket, "images", "ls", "-q", namespace=self.namespace).split():
            return name
        self.ledger.note(Kind.PATH, scratch, host=self.host.name)
        try:
            self._bring(image, name, scratch)
        finally:
            remove_tree(self.host, scratch)
            self.ledger.forget(Kind.PATH, scratch, host=self.host.name)
        return name

    def _bring(self, image: Image, name: str, scratch: str) -> None:
        run, layer = self.host.run, f"{scratch}/{LAYER}"
        make_marked(self.host, scratch, "0700")
        tree = ["--sort=name", "--numeric-owner", "--xattrs", "--xattrs-include=security.capability"]
        run(["tar", *tree, "--create", "--file", layer, "--directory", image.rootfs, "."], timeout_s=_LONG_S)
        digest = run(["sha256sum", "--", layer], timeout_s=_LONG_S).text.split()[0]
        machine = run(["uname", "-m"], timeout_s=CALL_S).text.strip()
        self.host.put(settings(digest, machine, labels={LABEL: image.digest}), f"{scratch}/{CONFIG}")
        self.host.put(manifest(name), f"{scratch}/{MANIFEST}")
        whole = f"{scratch}/image.tar"
        files = [MANIFEST, CONFIG, LAYER]
        run(["tar", "--create", "--file", whole, "--directory", scratch, *files], timeout_s=_LONG_S)
        ctr(self.host, self.socket, "images", "import", whole, namespace=self.namespace, timeout_s=_LONG_S)


def remove_node_image(host: Host, ident: str) -> bool:
    """Remove an image listed in the ledger as `NAME@SOCKET` or `NAME@SOCKET#NAMESPACE`; return whether it existed.

    Without the socket's directory there is nothing to remove: containerd is gone, or kubelet will remove unused
    images after a reboot. tare's own namespace is removed with the last image in it.
    """
    name, _, where = ident.partition("@")
    socket, _, own = where.partition("#")
    namespace = own or KUBELETS
    place = socket.rpartition("/")[0]
    if host.run(["test", "-d", place], timeout_s=CALL_S, check=False).code != 0:
        return False
    there = name in ctr(host, socket, "images", "ls", "-q", namespace=namespace).split()
    if there:
        ctr(host, socket, "images", "rm", "--sync", name, namespace=namespace)
    if own:  # refused while something else is in the namespace
        argv = ["ctr", "--address", socket, "namespaces", "rm", own]
        host.run(argv, timeout_s=CALL_S, check=False)
    return there
