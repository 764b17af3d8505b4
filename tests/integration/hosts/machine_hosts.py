"""Two virtual machines as hosts: each has a kernel, a boot and clocks of its own, and can be rebooted.

tare reaches their sshd through QEMU's forwarded ports on loopback. The measured network is a wire between the two
and nothing else: datagrams between two Unix sockets. So all that is made ends with the two QEMU processes.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tare.deployments.vm.command import Accelerator, machine_argv
from tare.deployments.vm.cpio import Entry, archive, directory, link, program
from tare.deployments.vm.kernel import Kernel, in_order, kernel_of
from tare.images.prepare import prepare
from tare.sites.file import SiteSpec
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

RECIPE = """\
format: 1
suite: bookworm
packages: [openssh-server, iproute2, procps, mount, util-linux, coreutils, hostname, kmod, ethtool, python3]
directories:
  - {path: /var/lib/tare, mode: "0755", empty: true}
env: {PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
entrypoint: [/usr/sbin/sshd]
data_dir: /var/lib/tare
"""
MODULES = ("virtio_pci", "virtio_blk", "virtio_net")
EARLY = """\
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do /bin/busybox insmod $module; done
until /bin/busybox mount -t ext4 /dev/vda /root; do /bin/busybox sleep 0.1; done
/bin/busybox mount --move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
"""
INIT = """\
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /run/sshd /run/lock
hostname {name}
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip address add {measured}/24 dev eth1
ip link set eth1 up
while :; do /usr/sbin/sshd -D -e; done
"""
RESET = "sync; echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger"
DISK = "8G"
MEMORY = "1536M"
AHEAD_S = 3600.0
"""What the second one's wall clock is ahead of the first one's."""
BOOT_S = 240.0
"""With every instruction emulated, on a machine that is busy."""


@dataclass(frozen=True)
class MachineHost:
    """`directory`: its disk, console and sockets. `port`: where its sshd is reached on loopback."""

    name: str
    measured: str
    port: int
    directory: Path
    keys: Path
    ahead_s: float = 0.0
    """Of its wall clock, when it is switched on."""

    def ssh(self, *argv: str, timeout_s: float = 60.0, check: bool = True) -> str:
        """What a program there prints."""
        words = ["ssh", "-F", str(self.keys / "ssh_config"), self.name, "--", *argv]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=timeout_s)
        if check and done.returncode != 0:
            raise AssertionError(f"{argv[0]} on {self.name} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    @property
    def boot(self) -> str:
        """The id of this life of its kernel."""
        return self.ssh("cat", "/proc/sys/kernel/random/boot_id").strip()

    def answers(self, within_s: float = BOOT_S) -> None:
        """Wait until its sshd lets tare's user in."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                self.ssh("true", timeout_s=30)
            except (AssertionError, subprocess.TimeoutExpired):
                time.sleep(0.5)
            else:
                return
        raise AssertionError(f"{self.name} does not answer: {self.console()}")

    def console(self) -> str:
        """The end of what its kernel and sshd have said."""
        return (self.directory / "console").read_text(errors="replace")[-3000:]

    def reset(self) -> None:
        """Reboot at once, as a watchdog would: nothing is ended, nothing is written back."""
        with suppress(subprocess.TimeoutExpired):  # it says no more
            self.ssh("sh", "-c", f"'{RESET}'", timeout_s=10, check=False)


@contextmanager
def machines(below: Path) -> Iterator[tuple[MachineHost, MachineHost]]:
    """Both, up and answering."""
    layout = default_layout()
    ledger, here = SqliteLedger(layout.ledger), LocalHost()
    recipe = below / "machine-host.yaml"
    recipe.write_text(RECIPE)
    image = prepare(str(recipe), host=here, layout=layout, ledger=ledger, engine=None)
    kernel = kernel_of(here, ledger, layout)
    keys = below / "keys"
    keys.mkdir(mode=0o700)
    _keys(keys)
    (below / "initramfs").write_bytes(_early(here, kernel))
    both = []
    with ExitStack() as stack:
        for number in (1, 2):
            place = below / f"machine-{number}"
            place.mkdir()
            ahead_s = AHEAD_S if number == 2 else 0.0
            host = MachineHost(f"machine-{number}", f"10.215.0.{number}", _free_port(), place, keys, ahead_s)
            _disk(host, Path(image.rootfs))
            both.append(host)
        (keys / "ssh_config").write_text("".join(_ssh_config(each) for each in both))
        for each, other in zip(both, reversed(both), strict=True):
            stack.enter_context(_running(each, other, kernel, below / "initramfs"))
        for each in both:
            each.answers()
            known = each.ssh("cat", "/etc/ssh/ssh_host_ed25519_key.pub").split()
            assert known[:2] == (keys / "host.pub").read_text().split()[:2]
        yield both[0], both[1]


def site(server: MachineHost, client: MachineHost) -> SiteSpec:
    """As sites.yaml would name them."""

    def spec(host: MachineHost) -> dict[str, object]:
        return {"ssh": host.name, "address": host.measured, "ssh_config": str(host.keys / "ssh_config")}

    return SiteSpec.model_validate({"name": "machines", "sut": spec(server), "client": spec(client)})


def _keys(keys: Path) -> None:
    for name in ("host", "client"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)]
        subprocess.run(argv, check=True, timeout=60)
    (keys / "known_hosts").write_text(f"* {(keys / 'host.pub').read_text()}")


def _ssh_config(host: MachineHost) -> str:
    return (
        f"Host {host.name}\n  HostName 127.0.0.1\n  Port {host.port}\n  User root\n"
        f"  IdentityFile {host.keys}/client\n  IdentitiesOnly yes\n  BatchMode yes\n  ConnectTimeout 20\n"
        f"  UserKnownHostsFile {host.keys}/known_hosts\n  HostKeyAlgorithms ssh-ed25519\n"
    )


def _date(ahead_s: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=ahead_s)).strftime("%Y-%m-%dT%H:%M:%S")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _disk(host: MachineHost, rootfs: Path) -> None:
    """A file system with the image's tree and what makes it this host."""
    tree = host.directory / "tree"
    subprocess.run(["cp", "-a", "--reflink=auto", str(rootfs), str(tree)], check=True, timeout=300)
    (tree / "sbin" / "init").unlink(missing_ok=True)
    (tree / "sbin" / "init").write_text(INIT.format(name=host.name, measured=host.measured))
    (tree / "sbin" / "init").chmod(0o755)
    for name in ("dev", "proc", "sys", "run", "tmp"):
        (tree / name).mkdir(exist_ok=True)
    there = tree / "etc" / "ssh"
    for name in ("host", "host.pub"):
        target = there / name.replace("host", "ssh_host_ed25519_key")
        shutil.copy(host.keys / name, target)
        target.chmod(0o600)
    (tree / "root" / ".ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(host.keys / "client.pub", tree / "root" / ".ssh" / "authorized_keys")
    (there / "sshd_config").write_text(
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "UsePAM no\nUseDNS no\nMaxStartups 100\n"
    )
    argv = ["mkfs.ext4", "-q", "-F", "-d", str(tree), str(host.directory / "disk"), DISK]
    subprocess.run(argv, check=True, timeout=300)
    shutil.rmtree(tree)


def _early(here: LocalHost, kernel: Kernel) -> bytes:
    """busybox, and the modules that a disk and a network card need."""
    busybox = shutil.which("busybox")
    assert busybox is not None, "scripts/packages.sh test"
    home = str(Path(kernel.image).parent)
    listed = here.run(["find", f"{home}/modules", "-name", "*.ko"], timeout_s=60).text.split()
    paths = {path.rpartition("/")[2].removesuffix(".ko").replace("-", "_"): path for path in listed}
    ordered = in_order(MODULES, lambda name: here.read(paths[name]) or b"")
    listing = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False, timeout=60).stdout
    libraries = [word for line in listing.splitlines() for word in line.split() if word.startswith("/")]
    directories = {str(parent)[1:] for library in libraries for parent in Path(library).parents} - {""}
    named = ("bin", "dev", "modules", "root")
    return archive(
        (
            *(directory(name) for name in sorted({*named, *directories}, key=len)),
            Entry("dev/console", 0o020600, major=5, minor=1),
            program("bin/busybox", Path(busybox).read_bytes()),
            *(program(library[1:], Path(library).read_bytes()) for library in libraries),
            *(program(f"modules/{n:02}-{name}.ko", module) for n, (name, module) in enumerate(ordered.items())),
            program("init", EARLY.encode()),
            link("bin/sh", "busybox"),
        )
    )


@contextmanager
def _running(host: MachineHost, other: MachineHost, kernel: Kernel, initramfs: Path) -> Iterator[None]:
    local, remote = host.directory / "wire", other.directory / "wire"
    mac = f"52:54:00:00:0{host.name[-1]}"
    words = [word for word in machine_argv(Accelerator.TCG) if word != "-no-reboot"]
    ahead = "base=utc" if host.ahead_s == 0 else f"base={_date(host.ahead_s)}"
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "--", *words),
        *(
            "-name",
            host.name,
            "-smp",
            "1",
            "-m",
            MEMORY,
            "-rtc",
            ahead,
            "-kernel",
            kernel.image,
            "-initrd",
            str(initramfs),
        ),
        *("-append", "console=ttyS0 panic=-1 quiet random.trust_cpu=on"),
        *("-chardev", f"file,id=console,path={host.directory}/console", "-serial", "chardev:console"),
        *("-drive", f"if=virtio,format=raw,file={host.directory}/disk,cache=unsafe"),
        *("-netdev", f"user,id=managed,restrict=off,hostfwd=tcp:127.0.0.1:{host.port}-10.0.2.15:22"),
        *("-device", f"virtio-net-pci,netdev=managed,mac={mac}:01,romfile="),
        *("-netdev", f"dgram,id=measured,local.type=unix,local.path={local}"),
    ]
    argv[-1] += f",remote.type=unix,remote.path={remote}"
    argv += ["-device", f"virtio-net-pci,netdev=measured,mac={mac}:02,romfile="]
    with (host.directory / "qemu").open("wb") as output:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
