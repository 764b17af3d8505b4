"""What a task finds around itself: the same bits, user, environment, limits and places, bare or contained."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.deployments import Bind, Deployment, Instance, Limits, Task
from tare.images import Image

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]

LOOK = """
echo "id $(id)"; echo "pwd $(pwd)"; echo "umask $(umask)"; echo "arg $1"
env | grep -v -e ^SHLVL -e ^PWD | sort
ulimit -a
ls -ln /dev | awk '{print $1, $3, $4, $5, $6, $NF}' | grep -v -e ^total
for place in /tmp /var/tmp /run /dev/shm /dev/mqueue; do
    echo "$place $(stat -c '%a %u %g' $place) $(stat -f -c '%T' $place)"
done
grep -E ' (/tmp|/var/tmp|/run|/dev|/dev/pts) ' /proc/mounts | awk '{print $2, $3, $4}' | sort
for place in /tmp/x /var/tmp/x /run/x /x /etc/x /data/x /readonly/x; do
    touch $place 2>/dev/null && echo "can write $place"
done
echo seen >> /dev/stdout
cat /etc/hosts >/dev/null && cat /etc/resolv.conf > /dev/null && echo "names are there"
grep -q "$(hostname)" /etc/hosts && echo "the host's name is there"
test -n "$(ls /sys/fs/cgroup)" && echo "cgroups are shown"
cat /readonly/file
"""


def look(deployment: Deployment, task: Task) -> list[str]:
    instance = deployment.start(task)
    try:
        assert deployment.wait(instance, 60) == 0, Path(task.output.stderr).read_text()
        return Path(task.output.stdout).read_text().splitlines()
    finally:
        deployment.stop(instance)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("data", "readonly"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, 900, 901)
    (tmp_path / "readonly" / "file").write_text("content of a bind\n")
    return tmp_path


def test_a_bare_task_and_a_container_find_the_same_around_them(
    bare: Deployment, container: Deployment, make_task: MakeTask, data: Path
) -> None:
    task = make_task(
        "sh",
        "-c",
        LOOK,
        "look",
        "a b",
        env={"OVERRIDDEN": "yes"},
        workdir="/data",
        binds=(
            Bind(str(data / "data"), "/data"),
            Bind(str(data / "readonly"), "/readonly", read_only=True),
        ),
        limits=Limits(nofile=1000),
    )
    in_bare, in_container = look(bare, task), look(container, task)
    assert in_bare == in_container
    assert "id uid=900(db) gid=901(db) groups=901(db),902(extra)" in in_bare
    for line in ("pwd /data", "umask 0022", "arg a b", "FROM_IMAGE=yes", "OVERRIDDEN=yes", "HOME=/data", "seen"):
        assert line in in_bare
    assert [line for line in in_bare if line.startswith("can write")] == [
        "can write /tmp/x",
        "can write /var/tmp/x",
        "can write /data/x",
    ]
    assert "content of a bind" in in_bare
    assert "names are there" in in_bare
    assert "cgroups are shown" in in_bare
    assert "the host's name is there" in in_bare


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", "uid=900(db) gid=901(db) groups=901(db),902(extra)"),
        ("root", "uid=0(root) gid=0(root) groups=0(root)"),
        ("900", "uid=900(db) gid=901(db) groups=901(db),902(extra)"),
        ("db:empty", "uid=900(db) gid=903(empty) groups=903(empty)"),
        ("4711", "uid=4711 gid=0(root) groups=0(root)"),
        ("4711:4712", "uid=4711 gid=4712 groups=4712"),
    ],
)
def test_users_are_the_images_own(deployment: Deployment, make_task: MakeTask, user: str, expected: str) -> None:
    assert look(deployment, make_task("id", user=user)) == [expected]


def test_everything_observed_is_equal_but_what_a_container_is(
    bare: Deployment, container: Deployment, make_task: MakeTask, started: Started, data: Path
) -> None:
    limits = Limits(cpus="0", cpu_quota=0.5, memory_bytes=64 << 20, nofile=1000, nproc=500, disk_iops=900)
    binds = (Bind(str(data / "data"), "/data"),)
    instances = [
        (each, started(each, make_task("sleep", "1000", name=name, limits=limits, binds=binds)))
        for name, each in (("bare", bare), ("container", container))
    ]
    first, second = (each.observe(instance) for each, instance in instances)
    for name in (
        "cpu_weight",
        "cpus_allowed",
        "cpu_quota",
        "memory_bytes",
        "disk_iops",
        "limits",
        "speculation",
        "binary_digest",
        "scheduler",
        "oom_score_adj",
        "mounts",
    ):
        assert getattr(first, name) == getattr(second, name), name
    variables = [{**(each.environment or {}), "HOSTNAME": "its own"} for each in (first, second)]
    assert variables[0] == variables[1]
    assert {"FROM_IMAGE": "yes", "HOME": "/data"}.items() <= variables[0].items()
    assert first.cpus_allowed == "0"
    assert first.cpu_quota == 0.5
    assert first.memory_bytes == 64 << 20
    assert first.disk_iops == 900
    assert first.cpu_weight in (100, 1024)
    assert first.limits["Max open files"] == "1000 1000"
    assert first.limits["Max processes"] == "500 500"
    assert first.mounts["/data"].split()[1] != ""
    assert (first.seccomp, second.seccomp) == ("0", "2")
    assert set(first.cgroups) == set(second.cgroups)
    for paths in (first.cgroups, second.cgroups):
        assert {Path(path).parent for path in paths.values()} == {Path("/", instances[0][1].task.cgroup_parent)}
    host_namespaces = {kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("net", "pid", "uts", "ipc")}
    for kind, link in host_namespaces.items():
        assert link == f"{kind}:[{first.namespaces[kind]}]"
    assert first.namespaces["mnt"] != second.namespaces["mnt"]
    assert first.namespaces["pid"] != second.namespaces["pid"]


def test_limits_bite(deployment: Deployment, make_task: MakeTask) -> None:
    greedy = "sleep 0.2; dd if=/dev/zero of=/tmp/hog bs=1M count=64"
    instance = deployment.start(make_task("sh", "-c", greedy, limits=Limits(memory_bytes=16 << 20)))
    try:
        assert deployment.wait(instance, 60) != 0
    finally:
        deployment.stop(instance)


def test_a_limit_of_disk_operations_bites(deployment: Deployment, make_task: MakeTask, tmp_path: Path) -> None:
    """100 reads past the page cache at 50 a second; without the limit they take some 20 ms."""
    (tmp_path / "file").write_bytes(os.urandom(100 * 4096))
    reads = "dd if=/data/file of=/dev/null bs=4096 iflag=direct"
    task = make_task(
        "sh", "-c", reads, binds=(Bind(str(tmp_path), "/data"),), limits=Limits(disk_iops=50), user="root"
    )
    began = time.monotonic()
    look(deployment, task)
    assert time.monotonic() - began > 1.5


def test_the_images_root_is_never_written_to(bare: Deployment, make_task: MakeTask, image: Image) -> None:
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in Path(image.rootfs).rglob("*"))
    look(bare, make_task("sh", "-c", "touch /etc/x /bin/x /x /data/x /deep/x; true", user="root"))
    after = sorted((str(path), path.lstat().st_mtime_ns) for path in Path(image.rootfs).rglob("*"))
    assert after == before


def test_mount_points_that_the_image_lacks_are_made(
    deployment: Deployment, make_task: MakeTask, tmp_path: Path
) -> None:
    (tmp_path / "lent").mkdir()
    (tmp_path / "lent" / "file").write_text("lent\n")
    (tmp_path / "single").write_text("single\n")
    binds = (
        Bind(str(tmp_path / "lent"), "/new/deep/place"),
        Bind(str(tmp_path / "single"), "/etc/conf.d/single"),
        Bind(str(tmp_path / "lent"), "/var/run/below-a-link"),
    )
    command = "cat /new/deep/place/file /etc/conf.d/single /run/below-a-link/file; cat /etc/passwd | wc -l"
    assert look(deployment, make_task("sh", "-c", command, binds=binds)) == ["lent", "single", "lent", "2"]


def test_a_bare_task_sees_nothing_of_the_hosts_root(bare: Deployment, make_task: MakeTask) -> None:
    seen = look(bare, make_task("sh", "-c", "ls -d /usr /home 2>/dev/null; awk '{print $5}' /proc/self/mountinfo"))
    assert seen[0] == "/"
    assert not [line for line in seen if "rootfs" in line or line in ("/usr", "/home")]
