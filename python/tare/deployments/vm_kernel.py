"""Kernel and initial RAM file system of virtual machines: Debian's cloud kernel, unpacked and not installed."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tare.deployments.cpio import Entry, archive, directory, link, program
from tare.deployments.paths import remove_tree
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.binaries import GUEST, find
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger

PACKAGE = "linux-image-cloud-amd64"
MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_console")
"""Of the package's modules those that a machine of tare's loads, each after those that it says it depends on."""
_FETCH_S, _CALL_S = 900.0, 60.0
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_INTERPRETER, _HEADERS = b"/ld-linux", 8192
_HINT = "apt must be set up for Debian, whose cloud kernel virtual machines boot: apt-get update"


@dataclass(frozen=True)
class Kernel:
    """Paths on the host. `version`: the package's name, which tells the kernel's."""

    version: str
    image: str
    initramfs: str


def kernel_of(host: Host, ledger: Ledger, layout: Layout) -> Kernel:
    """What was unpacked before, else fetched now. Raises `EnvironmentLacks` where apt has none."""
    home = f"{layout.machines}/kernel"
    version = _kept(host, home)
    if version is None:
        version = _fetch(host, ledger, home)
    binary = find(host, GUEST)
    if binary is None:
        raise EnvironmentLacks("tare-guest, which every virtual machine runs, is not here", hint=GUEST.hint)
    agent = host.read(binary) or b""
    if _INTERPRETER in agent[:_HEADERS]:
        raise EnvironmentLacks(
            f"{binary} needs a C library, and a machine's first program has none", hint=GUEST.hint
        )
    digest = hashlib.sha256(agent + repr(MODULES).encode()).hexdigest()[:16]
    initramfs = f"{home}/initramfs-{digest}"
    if host.run(["test", "-f", initramfs], timeout_s=_CALL_S, check=False).code != 0:
        host.put(_initramfs(host, home, agent), initramfs)
    return Kernel(version, f"{home}/vmlinuz", initramfs)


def _kept(host: Host, home: str) -> str | None:
    told = host.read(f"{home}/version")
    return None if told is None else told.decode().strip()


def _fetch(host: Host, ledger: Ledger, home: str) -> str:
    """Put in place by a rename, so that what stands there is whole."""
    scratch = f"{home}.part"
    try:
        ledger.note(Kind.PATH, scratch, host=host.name)
        remove_tree(host, scratch)
        host.run(["install", "-d", "-m", "0755", "--", scratch], timeout_s=_CALL_S)
        version = _newest(host)
        host.run(["env", f"--chdir={scratch}", "apt-get", "-qq", "download", version], timeout_s=_FETCH_S)
        found = host.run(["find", scratch, "-name", "*.deb"], timeout_s=_CALL_S).text.split()
        host.run(["dpkg-deb", "-x", found[0], f"{scratch}/root"], timeout_s=_FETCH_S)
        release = version.removeprefix("linux-image-")
        host.run(["mv", "--", f"{scratch}/root/boot/vmlinuz-{release}", f"{scratch}/vmlinuz"], timeout_s=_CALL_S)
        modules = f"{scratch}/root/lib/modules/{release}/kernel"
        host.run(["mv", "--", modules, f"{scratch}/modules"], timeout_s=_CALL_S)
        host.run(["rm", "-rf", "--", f"{scratch}/root", found[0]], timeout_s=_CALL_S)
        host.put(version.encode(), f"{scratch}/version")
        host.run(["mv", "-T", "--", scratch, home], timeout_s=_CALL_S)
    except RunFailed as error:
        raise EnvironmentLacks(f"no kernel for virtual machines: {error.what}", hint=_HINT) from error
    finally:
        remove_tree(host, scratch)
        ledger.forget(Kind.PATH, scratch, host=host.name)
    return version


def _newest(host: Host) -> str:
    """The package that the release's current one depends on."""
    listed = host.run(["env", "LC_ALL=C", "apt-cache", "depends", PACKAGE], timeout_s=_CALL_S, check=False).text
    words = [line.split() for line in listed.splitlines()]
    found = [line[1] for line in words if len(line) == 2 and line[0] == "Depends:" and "-cloud-" in line[1]]
    if not found:
        raise EnvironmentLacks(f"apt knows no package {PACKAGE}", hint=_HINT)
    return found[0]


def _initramfs(host: Host, home: str, agent: bytes) -> bytes:
    listed = host.run(["find", f"{home}/modules", "-name", "*.ko"], timeout_s=_CALL_S).text.split()
    paths = {path.rpartition("/")[2].removesuffix(".ko").replace("-", "_"): path for path in listed}

    def content(name: str) -> bytes:
        if name not in paths:
            raise EnvironmentLacks(f"the kernel package has no module {name}", hint=f"remove {home}")
        return host.read(paths[name]) or b""

    modules = [
        Entry(f"modules/{n:02}-{name}.ko", stat.S_IFREG | 0o644, module)
        for n, (name, module) in enumerate(in_order(MODULES, content).items())
    ]
    return archive(
        (
            *(directory(name) for name in ("dev", "proc", "sys", "bin", "task", "modules")),
            Entry("dev/console", stat.S_IFCHR | 0o600, major=5, minor=1),
            program("init", agent),
            link("bin/readlink", "/init"),
            link("bin/sha256sum", "/init"),
            *modules,
        )
    )


def in_order(wanted: Iterable[str], content: Callable[[str], bytes]) -> dict[str, bytes]:
    """Modules with all that they depend on before them, by the field `depends` that modpost writes into each."""
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        module = content(name)
        told = _DEPENDS.search(module)
        for needed in (told[1].decode() if told else "").split(","):
            if needed:
                add(needed.replace("-", "_"))
        ordered[name] = module

    for name in wanted:
        add(name)
    return ordered
