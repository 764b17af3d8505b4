"""NFS storage without NFS: what is asked of server and kernel, and what shows that it is that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tare.deployments.mounts import describe_mount, parse_mountinfo
from tare.deployments.network.bridge import free_network
from tare.errors import EnvironmentLacks, RunFailed
from tare.requirements import HostPlan
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.ledger import Kind
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.storage import DataRequest
from tare.storage.nfs.client import NFS, NfsMount, mount_export, mount_options, verify_export
from tare.storage.nfs.nfs import NfsStorage
from tare.storage.nfs.server import GaneshaServer, config_text, listens, server_argv
from tare.study.model import StorageSpec

DATA = Path(__file__).resolve().parents[2] / "data" / "storage"
MOUNTINFO = (DATA / "nfs_mountinfo.txt").read_bytes()
"""Of a Debian cloud kernel that has mounted a server of tare's, with rsize and wsize asked for."""
MOUNTED, SERVER = "/mnt/nfs", "10.231.0.2"
EXPORTED = NfsMount(SERVER, "10.231.0.1")
WITH_CLIENT = {"/proc/filesystems": b"nodev\tsysfs\n\text4\nnodev\tnfs\nnodev\tnfs4\n"}
WITHOUT = {"/proc/filesystems": b"nodev\tsysfs\n\text4\nnodev\tnfsd\n"}


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(("sync", "setting"), [(True, "true"), (False, "false")])
def test_the_server_speaks_one_version_on_one_port_to_one_directory(sync: bool, setting: str) -> None:
    config = config_text("/x/export", "/x/recovery", sync=sync)
    for line in (
        "Protocols = 4;", "NFS_Port = 2049;", "Enable_UDP = false;", "Enable_NLM = false;", "Graceless = true;",
        'RecoveryRoot = "/x/recovery";', 'Path = "/x/export";', 'Pseudo = "/";', "Squash = no_root_squash;",
        f"NFS_Commit = {setting};", "Name = VFS;",
    ):  # fmt: skip
        assert config.count(line) >= 1, line
    assert config.count("{") == config.count("}")


def test_the_server_has_files_a_network_and_no_bus_of_its_own() -> None:
    argv = server_argv("/x")
    assert argv[2:5] == ["unshare", "--net", "--"]
    assert "-F" in argv
    assert argv[1] == "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/x/no-bus"
    assert {"/x/ganesha.conf", "/x/ganesha.log", "/x/ganesha.pid"} <= set(argv)


def test_a_server_that_listens_is_seen_in_its_own_namespace() -> None:
    host = FakeHost()
    assert not listens(host, 7)
    host.files = {f"/proc/7/net/{name}": (DATA / f"ganesha_{name}.txt").read_bytes() for name in ("tcp", "tcp6")}
    assert listens(host, 7)
    assert not listens(host, 8)
    established = host.files["/proc/7/net/tcp6"].replace(b" 0A ", b" 01 ")
    assert not listens(FakeHost(files={"/proc/7/net/tcp6": established}), 7)


def test_names_of_links_fit_and_differ(ledger: SqliteLedger) -> None:
    links = {GaneshaServer(FakeHost(), ledger, "/x", name).link for name in ("tare-a-1", "tare-a-2")}
    assert len(links) == 2
    assert all(len(link) <= 15 for link in links)


def test_a_mount_says_all_that_a_helper_program_would_find_out() -> None:
    options = mount_options(EXPORTED).split(",")
    assert {"vers=4.2", "proto=tcp", "sec=sys", "softerr", "nosharecache"} <= set(options)
    assert {f"addr={SERVER}", "clientaddr=10.231.0.1"} <= set(options)
    assert not [option for option in options if option.startswith(("rsize", "wsize"))]
    sized = mount_options(NfsMount(SERVER, "10.231.0.1", rsize="64K", wsize="1M")).split(",")
    assert {"rsize=65536", "wsize=1048576"} <= set(sized)


@pytest.mark.parametrize(
    ("files", "answers", "message"),
    [
        (WITH_CLIENT, {}, None),
        (WITH_CLIENT, {("ganesha.nfsd",): RunFailed("ganesha.nfsd cannot be run")}, "install nfs-ganesha"),
        (WITH_CLIENT, {("ip",): RunFailed("ip cannot be run")}, "iproute2"),
        (WITHOUT, {}, "`modprobe nfsv4` loads none"),
        (WITHOUT, {("modprobe",): RunFailed("no such program")}, "there is no modprobe"),
    ],
)
def test_a_host_without_the_means_is_told_what_to_do(
    files: dict[str, bytes], answers: dict[tuple[str, ...], RunFailed], message: str | None
) -> None:
    why = NFS.why_not(HostPlan(FakeHost(files=dict(files), answers=dict(answers))))
    assert (why is None) == (message is None)
    assert message is None or message in (why or "")
    assert message is None or "(" in (why or "")


def test_a_client_that_is_a_module_is_loaded_first() -> None:
    host = FakeHost(files=dict(WITHOUT))

    def load(argv: Sequence[str], _: bytes) -> Completed:
        host.files.update(WITH_CLIENT)
        return Completed(tuple(argv), 0)

    host.answers["modprobe",] = load
    assert NFS.why_not(HostPlan(host)) is None


def a_client(magic: bytes = b"6969\n", mountinfo: bytes = MOUNTINFO) -> FakeHost:
    answers = {
        ("realpath",): Completed((), 0, f"{MOUNTED}\n".encode()),
        ("stat", "-f"): Completed((), 0, magic),
    }
    return FakeHost(files={"/proc/self/mountinfo": mountinfo}, answers=dict(answers))


def the_server() -> str:
    """Whom the captured mount is of."""
    (mount,) = (each for each in parse_mountinfo(MOUNTINFO.decode()) if each.target == MOUNTED)
    return describe_mount(mount).split()[2]


def test_what_was_mounted_is_held_against_what_was_asked_for() -> None:
    nfs_mount = NfsMount(the_server(), "10.0.2.15", rsize="64K", wsize="32K")
    mount = mount_export(a_client(), nfs_mount, MOUNTED)
    assert (mount.fstype, mount.target) == ("nfs4", MOUNTED)


@pytest.mark.parametrize(
    ("client", "changed", "message"),
    [
        (a_client(magic=b"ef53\n"), {}, "magic number ef53"),
        (a_client(mountinfo=b"1 0 254:0 / / rw - ext4 /dev/vda rw\n"), {}, "of type ext4"),
        (a_client(), {"address": "10.231.9.9"}, "not 10.231.9.9"),
        (a_client(), {"rsize": "1M"}, "rsize 1M was requested, 65536 is in force"),
    ],
)
def test_a_mount_of_something_else_is_refused(client: FakeHost, changed: dict[str, str], message: str) -> None:
    nfs_mount = NfsMount(**{"address": the_server(), "near": "10.0.2.15", **changed})
    with pytest.raises(EnvironmentLacks, match=message):
        mount_export(client, nfs_mount, MOUNTED)


def test_a_mount_that_fails_tells_the_kernels_words() -> None:
    host = FakeHost(answers={("mount",): RunFailed("mount ended with 32: Protocol not supported")})
    with pytest.raises(EnvironmentLacks, match=r"Protocol not supported .*dmesg"):
        mount_export(host, EXPORTED, MOUNTED)


@pytest.mark.parametrize(
    ("inodes", "served_on", "message"),
    [
        (b"42\n42\n", "254:0", None),
        (b"42\n43\n", "254:0", "another directory"),
        (b"42\n42\n", "0:99", "on 0:99, and this host on 254:0"),
    ],
)
def test_both_ends_must_show_one_directory_on_one_device(
    inodes: bytes, served_on: str, message: str | None
) -> None:
    host = FakeHost(
        answers={("stat",): Completed((), 0, inodes), ("realpath",): Completed((), 0, b"/x/export\n")},
        files={
            "/proc/self/mountinfo": b"1 0 254:0 / / rw - ext4 /dev/vda rw\n",
            "/proc/7/mountinfo": f"1 0 {served_on} / / rw - ext4 /dev/vda rw\n".encode(),
        },
    )
    if message is None:
        verify_export(host, MOUNTED, "/x/export", 7)
        return
    with pytest.raises(EnvironmentLacks, match=message):
        verify_export(host, MOUNTED, "/x/export", 7)


def test_data_are_put_past_the_mount_that_the_task_is_given(ledger: SqliteLedger) -> None:
    home, host = "/var/tare/x", FakeHost(files=dict(WITH_CLIENT))
    near, address = (str(each) for each in free_network(host, "tare-a").hosts())
    served = (
        f"1 0 254:0 / / rw - ext4 /dev/vda rw\n9 1 0:53 / {home}/mount rw - nfs4 {address}:/ rw,addr={address}\n"
    )
    pid = host.next_pid

    def mounted(argv: Sequence[str], _: bytes) -> Completed:
        host.files["/proc/self/mountinfo"] = served.encode()
        return Completed(tuple(argv), 0)

    def resolved(argv: Sequence[str], _: bytes) -> Completed:
        return Completed(tuple(argv), 0, f"{argv[-1]}\n".encode())

    host.files |= {
        "/proc/self/mountinfo": b"1 0 254:0 / / rw - ext4 /dev/vda rw\n",
        f"/proc/{pid}/mountinfo": b"1 0 254:0 / / rw - ext4 /dev/vda rw\n",
        f"/proc/{pid}/net/tcp6": (DATA / "ganesha_tcp6.txt").read_bytes(),
    }
    host.answers |= {
        ("realpath",): resolved,
        ("readlink",): Completed((), 0, b"net:[1]\nnet:[2]\n"),
        ("mount",): mounted,
        ("stat", "-f"): Completed((), 0, b"6969\n"),
        ("stat", "-c"): Completed((), 0, b"42\n42\n"),
    }
    data_mount = NfsStorage(host, ledger).prepare(
        DataRequest(home, "tare-a", 0), StorageSpec(kind="nfs", sync=True)
    )
    assert (data_mount.path, data_mount.source) == (f"{home}/export/data", f"{home}/mount/data")
    assert data_mount.mismatch(f"nfs4 0:53 {address}") is None
    assert data_mount.server is not None
    assert data_mount.server.pid == pid
    assert "NFS_Commit = true;" in host.files[f"{home}/ganesha.conf"].decode()
    (mount,) = (argv for argv in host.ran() if argv[0] == "mount")
    assert f"clientaddr={near}" in mount[5]
    assert [entry.kind for entry in ledger.entries()] == [Kind.MOUNT, Kind.SERVER, Kind.LINK]


def test_the_mount_goes_before_its_server_and_nothing_stays_in_the_ledger(ledger: SqliteLedger) -> None:
    mount = b"9 1 0:53 / /var/tare/x/mount rw - nfs4 10.231.0.2:/ rw,addr=10.231.0.2\n"
    host = FakeHost(files={"/proc/self/mountinfo": mount})
    host.answers["realpath",] = Completed((), 0, b"/var/tare/x\n")
    server = host.spawn("ganesha.nfsd")
    host.files["/var/tare/x/server"] = to_ident(server).encode()
    request = DataRequest("/var/tare/x", "tare-a", 0)
    link = GaneshaServer(host, ledger, "/var/tare/x", "tare-a").link
    host.files[f"/sys/class/net/{link}/ifindex"] = b"7\n"
    for kind, ident in (
        (Kind.MOUNT, "/var/tare/x/mount"),
        (Kind.SERVER, to_ident(server)),
        (Kind.LINK, link),
    ):
        ledger.note(kind, ident, host="fake")

    def gone(argv: Sequence[str], _: bytes) -> Completed:
        host.files["/proc/self/mountinfo"] = b""
        return Completed(tuple(argv), 0)

    host.answers["umount",] = gone
    NfsStorage(host, ledger).clear(request)
    programs = [argv[0] for argv in host.ran()]
    assert programs.index("umount") < programs.index("python3") < programs.index("ip") < programs.index("rm")
    (umount,) = (argv for argv in host.ran() if argv[0] == "umount")
    assert {"--force", "--lazy", "--internal-only", "--no-canonicalize"} <= set(umount)
    assert ledger.entries() == ()


def test_a_sweep_ends_tasks_then_the_mount_then_its_server_then_the_rest() -> None:
    order = list(Kind)
    kinds = (Kind.CONTAINER, Kind.PROCESS, Kind.CGROUP, Kind.MOUNT, Kind.SERVER, Kind.LINK, Kind.PATH)
    assert [kind for kind in order if kind in kinds] == list(kinds)


def test_a_mount_that_stays_keeps_its_server(ledger: SqliteLedger) -> None:
    mount = b"9 1 0:53 / /var/tare/x/mount rw - nfs4 10.231.0.2:/ rw,addr=10.231.0.2\n"
    host = FakeHost(files={"/proc/self/mountinfo": mount})
    host.answers["realpath",] = Completed((), 0, b"/var/tare/x\n")
    server = host.spawn("ganesha.nfsd")
    host.files["/var/tare/x/server"] = to_ident(server).encode()
    ledger.note(Kind.SERVER, to_ident(server), host="fake")
    with pytest.raises(RunFailed, match="still mounted"):
        NfsStorage(host, ledger).clear(DataRequest("/var/tare/x", "tare-a", 0))
    assert [entry.kind for entry in ledger.entries()] == [Kind.SERVER]


def test_a_host_without_a_client_starts_no_server(ledger: SqliteLedger) -> None:
    host = FakeHost(files=dict(WITHOUT))
    with pytest.raises(EnvironmentLacks, match="storage `nfs` is not available"):
        NfsStorage(host, ledger).prepare(DataRequest("/var/tare/x", "tare-a", 0), StorageSpec(kind="nfs"))
    assert not [asked for asked in host.asked if asked.what in ("start", "put")]


@pytest.mark.parametrize("size", ["4K", "64K", "1M", "1048576"])
def test_requests_are_of_whole_pages(size: str) -> None:
    assert StorageSpec(kind="nfs", rsize=size, wsize=size).rsize == size


@pytest.mark.parametrize("size", ["1K", "5000", "2M", "1G", "0"])
def test_sizes_that_the_kernel_would_change_are_refused(size: str) -> None:
    with pytest.raises(ValueError, match="rsize"):
        StorageSpec(kind="nfs", rsize=size)
