"""What a virtual machine is made of, without starting one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import MACHINES, Bind, Endpoint, MachineSetting
from tare.deployments.network.path import Side, decide_guest_path
from tare.deployments.network.sockets import Connection
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.vm.accelerator import Verdict, accelerator_of, cached_accelerator
from tare.deployments.vm.command import QEMU, Accelerator, Disk, Hardware, Wiring, escaped, qemu_argv, trial_argv
from tare.deployments.vm.disks import data_disk, take_back
from tare.deployments.vm.guest import words_of
from tare.deployments.vm.kernel import Kernel, in_order
from tare.deployments.vm.qemu import cache_mode, cpu_threads, disk_aio
from tare.record.network_path import Hop
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.study.registry import installed

DATA = Path(__file__).resolve().parents[2] / "data" / "vm"
CLIENT, GUEST = Endpoint("127.0.0.1", 40000), Endpoint("127.0.0.1", 3306)
INSIDE = Connection(Endpoint("10.0.2.15", 3306), Endpoint("10.0.2.2", 5000), 7)


def test_modules_stand_after_all_that_they_depend_on() -> None:
    fields = {
        "net": b"\0depends=fail-over,ring\0",
        "fail_over": b"\0depends=\0",
        "ring": b"\0depends=base\0",
        "base": b"nothing",
    }
    assert list(in_order(["net", "ring"], fields.__getitem__)) == ["fail_over", "base", "ring", "net"]


def test_levels_of_the_disk_reach_qemu_and_commas_in_paths_are_doubled() -> None:
    disk = Disk("/a,b/data.disk", "disk0", "/data", read_only=False, cache="directsync", aio="native")
    hardware = Hardware(Accelerator.TCG, 3, 512 << 20, (disk,), "user,id=net", "52:54:00:00:00:01")
    wiring = Wiring(*(f"/run/{name}" for name in "abcdefghi"))
    argv = qemu_argv("sut", hardware, wiring)
    assert argv[0] == QEMU
    assert argv[argv.index("-smp") + 1] == "3"
    assert argv[argv.index("-m") + 1] == "512M"
    drive = argv[argv.index("-drive") + 1]
    assert drive == "if=none,id=disk0,format=raw,readonly=off,cache=directsync,aio=native,file=/a,,b/data.disk"
    assert "virtio-blk-pci,drive=disk0,serial=disk0,werror=report,rerror=report" in argv
    assert escaped("a,b") == "a,,b"


def test_kvm_is_used_only_after_a_guest_has_said_that_kvm_runs_it() -> None:
    kernel = Kernel("linux", "/k", "/i")
    trial = trial_argv(Accelerator.KVM, "/k", "/i")
    common = {
        (QEMU, "--version"): Completed((), 0, b"QEMU emulator version 7.2.22\n"),
        ("test", "-c", "/dev/kvm"): Completed((), 0),
    }
    words = {
        b"tare-guest: trial: run by KVMKVMKVM\n": Accelerator.KVM,
        b"tare-guest: trial: run by TCGTCGTCGTCG\n": Accelerator.TCG,
        b"": Accelerator.TCG,
    }
    for output, wanted in words.items():
        host = FakeHost(answers={**common, trial: Completed((), 0, output)})
        assert accelerator_of(host, Layout(Path("/home/t")), kernel).accelerator is wanted


def test_a_kvm_that_was_not_there_is_looked_for_again_and_what_a_trial_has_shown_is_kept() -> None:
    kernel, layout = Kernel("linux", "/k", "/i"), Layout(Path("/home/t"))
    host = FakeHost(
        answers={
            (QEMU, "--version"): Completed((), 0, b"QEMU emulator version 7.2.22\n"),
            ("test", "-c", "/dev/kvm"): Completed((), 1),
            trial_argv(Accelerator.KVM, "/k", "/i"): Completed((), 0, b"tare-guest: trial: run by KVMKVMKVM\n"),
        }
    )
    assert accelerator_of(host, layout, kernel) == Verdict(Accelerator.TCG, "there is no /dev/kvm")
    assert cached_accelerator(host, layout) is None
    host.answers["test", "-c", "/dev/kvm"] = Completed((), 0)
    assert accelerator_of(host, layout, kernel) == Verdict(Accelerator.KVM, None)
    assert cached_accelerator(host, layout) == Verdict(Accelerator.KVM, None)
    host.answers[QEMU, "--version"] = Completed((), 0, b"QEMU emulator version 9.0.0\n")
    assert cached_accelerator(host, layout) is None


def test_on_the_user_network_qemu_must_hold_the_clients_connection() -> None:
    client, inside = Side("1", (Connection(CLIENT, GUEST, 1),)), Side("guest", (INSIDE,))
    held = (Connection(GUEST, CLIENT, 2),)
    path = decide_guest_path(client, held, inside, GUEST)
    assert path is not None
    assert (path.hop, path.connections, path.server_sees) == (Hop.USER, 1, INSIDE.remote)
    for outside, seen in (((), inside), (held, Side("guest", ()))):
        unmatched = decide_guest_path(client, outside, seen, GUEST)
        assert unmatched is not None
        assert unmatched.hop is None
    assert decide_guest_path(Side("1", ()), held, inside, GUEST) is None


def test_by_a_tap_both_ends_see_each_others_addresses() -> None:
    here, there = Endpoint("10.231.0.1", 40000), Endpoint("10.231.0.2", 3306)
    client = Side("1", (Connection(here, there, 1),))
    path = decide_guest_path(client, (), Side("guest", (Connection(there, here, 9),)), there)
    assert path is not None
    assert (path.hop, path.server_sees) == (Hop.TAP, here)


def test_studies_may_name_every_machine() -> None:
    assert set(DEPLOYMENTS) >= MACHINES
    assert set(installed().deployments) >= MACHINES


def test_a_panic_is_told_before_the_last_lines_of_its_dump() -> None:
    dump = ["booted", "[ 9.1] Kernel panic - not syncing: sysrq", *(f"line {n}" for n in range(9)), ""]
    host = FakeHost(files={"/r/sut.console": "\r\n".join(dump).encode(), "/r/sut.stderr": b"\n"})
    text = words_of(host, "/r/sut.console")
    assert text == "console: [ 9.1] Kernel panic - not syncing: sysrq / line 7 / line 8"
    assert words_of(host, "/r/sut.stderr") is None
    assert words_of(host, "/r/none") is None


def test_qemu_tells_cache_mode_and_threads() -> None:
    document = json.loads((DATA / "query-block.json").read_text())
    assert cache_mode(document, ["disk0", "disk1"]) == "directsync"
    assert cache_mode(document, ["root"]) == "writeback"
    assert cache_mode(document, ["root", "disk0"]) is None
    assert cache_mode(document, ["none"]) is None
    argv = ("python3", "-I", "-S", "/run/t/line.py", "qmp", "/run/t/qmp", "30", "query-cpus-fast")
    host = FakeHost(answers={argv: Completed((), 0, (DATA / "query-cpus-fast.json").read_bytes())})
    assert cpu_threads(host, "/run/t") == (1736, 1737)


@pytest.mark.parametrize(
    ("maps", "descriptors", "aio"),
    [
        (b"7f87 rw-s 00000000 00:13 2646472       /[aio] (deleted)\n", b"anon_inode:[eventfd]\n", "native"),
        (b"", b"/x.disk\nanon_inode:[io_uring]\n", "io_uring"),
        (b"", b"/x.disk\n", "threads"),
        (b"", b"", None),
        (None, b"", None),
    ],
)  # fmt: skip
def test_the_kernel_tells_by_which_interface_disks_are_read(
    maps: bytes | None, descriptors: bytes, aio: str | None
) -> None:
    files = {} if maps is None else {"/proc/7/maps": maps}
    held = {f"/proc/7/fd/{number}": target for number, target in enumerate(descriptors.decode().splitlines())}
    assert disk_aio(FakeHost(files=files, linked=held), 7) == aio


def test_what_lies_below_a_scratch_place_gets_a_small_disk_and_is_brought_back() -> None:
    asked = []

    class Recording(FakeHost):
        def run(self, argv: Sequence[str], **given: Any) -> Completed:
            asked.append(argv)
            return Completed((), 0, b"900 901 750")

    for target in ("/run/tare", "/runs"):
        take_back(Recording(), Bind("/work/x", target), "/work/x.disk")
        take_back(Recording(), Bind("/work/x", target, read_only=True), "/work/x.disk")
        data_disk(Recording(), Bind("/work/x", target), "/work/x.disk", MachineSetting(disk_bytes=16 << 30))
    made = [argv for argv in asked if argv[0] == "mke2fs"]
    assert [argv[-1] for argv in made] == ["256M", "16384M"]
    assert [argv[argv.index("-N") + 1] for argv in made] == ["16384", "65536"]
    dumped = [argv for argv in asked if argv[:2] == ["debugfs", "-R"]]
    assert dumped == [["debugfs", "-R", 'rdump / "/work/x"', "/work/x.disk"]]
