"""Kernel and initial RAM file system of virtual machines: Debian's cloud kernel, unpacked but not installed."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tare.deployments.vm.cpio import Entry, archive, directory, link, program
from tare.deployments.vm.packages import CALL_S, PackageSet, kept_version, unpack
from tare.deployments.vm.runtime import Runtime, entries
from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.sites.binaries import GUEST, find
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger

PACKAGE = "linux-image-cloud-amd64"
MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_console")
"""Modules of the package that tare's machines load, each after its dependencies."""
CONTAINER_MODULES = (*MODULES, "overlay")
"""Modules for a machine in which a container runs."""
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_INTERPRETER, _HEADERS = b"/ld-linux", 8192
_HINT = "apt must be set up for Debian, whose cloud kernel virtual machines boot: apt-get update"


@dataclass(frozen=True)
class Kernel:
    """Paths on the host. `version`: name of the package, which contains the kernel's version."""

    version: str
    image: str
    initramfs: str


def kernel_of(host: Host, ledger: Ledger, layout: Layout, runtime: Runtime | None = None) -> Kernel:
    """Kernel that was unpacked before, or else fetched now. `runtime`: added if a container is to run inside.

    Raises `EnvironmentLacks` if apt offers no kernel.
    """
    home = f"{layout.machines}/kernel"
    version = kept_version(host, home) or unpack(host, ledger, home, _Package(host))
    binary = find(host, GUEST)
    if binary is None:
        raise EnvironmentLacks("tare-guest, which every virtual machine runs, is missing", hint=GUEST.hint)
    agent = host.read(binary) or b""
    if _INTERPRETER in agent[:_HEADERS]:
        raise EnvironmentLacks(
            f"{binary} needs a C library, and a machine's first program has none", hint=GUEST.hint
        )
    modules = MODULES if runtime is None else CONTAINER_MODULES
    wanted = repr(modules if runtime is None else (modules, runtime.version)).encode()
    digest = hashlib.sha256(agent + wanted).hexdigest()[:16]
    initramfs = f"{home}/initramfs-{digest}"
    if host.run(["test", "-f", initramfs], timeout_s=CALL_S, check=False).code != 0:
        added = () if runtime is None else entries(host, runtime)
        host.put(_initramfs(host, home, agent, modules, added), initramfs)
    return Kernel(version, f"{home}/vmlinuz", initramfs)


@dataclass(frozen=True)
class _Package:
    """The kernel's image and its modules, taken from the package."""

    host: Host
    hint: str = _HINT

    def choose(self) -> PackageSet:
        """The release's current kernel package."""
        version = _newest(self.host)
        return PackageSet(version, (version,))

    def arrange(self, scratch: str) -> None:
        """Move the image to `vmlinuz` and the modules to `modules`."""
        listing = ["find", f"{scratch}/root/boot", "-name", "vmlinuz-*"]
        image = self.host.run(listing, timeout_s=CALL_S).text.splitlines()[0]
        modules = f"{scratch}/root/lib/modules/{image.rpartition('/vmlinuz-')[2]}/kernel"
        self.host.run(["mv", "--", image, f"{scratch}/vmlinuz"], timeout_s=CALL_S)
        self.host.run(["mv", "--", modules, f"{scratch}/modules"], timeout_s=CALL_S)


def _newest(host: Host) -> str:
    """The package that the release's kernel metapackage depends on."""
    listed = host.run(["env", "LC_ALL=C", "apt-cache", "depends", PACKAGE], timeout_s=CALL_S, check=False).text
    words = [line.split() for line in listed.splitlines()]
    packages = [line[1] for line in words if len(line) == 2 and line[0] == "Depends:" and "-cloud-" in line[1]]
    if not packages:
        raise EnvironmentLacks(f"apt knows no package {PACKAGE}", hint=_HINT)
    return packages[0]


def _initramfs(host: Host, home: str, agent: bytes, wanted: tuple[str, ...], added: tuple[Entry, ...]) -> bytes:
    listed = host.run(["find", f"{home}/modules", "-name", "*.ko"], timeout_s=CALL_S).text.splitlines()
    paths = {path.rpartition("/")[2].removesuffix(".ko").replace("-", "_"): path for path in listed}

    def content(name: str) -> bytes:
        if name not in paths:
            raise EnvironmentLacks(f"the kernel package has no module {name}", hint=f"remove {home}")
        return host.read(paths[name]) or b""

    modules = [
        Entry(f"modules/{n:02}-{name}.ko", stat.S_IFREG | 0o644, module)
        for n, (name, module) in enumerate(in_order(wanted, content).items())
    ]
    return archive(
        (
            *(directory(name) for name in ("dev", "proc", "sys", "bin", "task", "modules")),
            Entry("dev/console", stat.S_IFCHR | 0o600, major=5, minor=1),
            program("init", agent),
            link("bin/readlink", "/init"),
            link("bin/sha256sum", "/init"),
            *modules,
            *added,
        )
    )


def in_order(wanted: Iterable[str], content: Callable[[str], bytes]) -> dict[str, bytes]:
    """Modules, each after its dependencies, which modpost writes into the field `depends` of each module."""
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        module = content(name)
        match = _DEPENDS.search(module)
        for needed in (match[1].decode() if match else "").split(","):
            if needed:
                add(needed.replace("-", "_"))
        ordered[name] = module

    for name in wanted:
        add(name)
    return ordered
