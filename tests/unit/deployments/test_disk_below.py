"""What an engine keeps and what tare keeps must lie on one disk to be compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tare.deployments.mounts import mount_under, must_share_disk
from tare.errors import EnvironmentLacks
from tare.sites import Completed
from tare.sites.fake import FakeHost

MOUNTS = b"""\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 21 254:0 /docker /var/lib/docker rw,relatime - ext4 /dev/vda rw
41 21 8:16 / /mnt/disk rw,relatime - xfs /dev/sdb rw
42 21 0:50 /@tare /srv/tare rw,relatime - btrfs /dev/sdc rw
43 21 0:51 /@docker /srv/docker rw,relatime - btrfs /dev/sdc rw
44 21 0:60 / /memory rw - tmpfs tmpfs rw
45 21 0:61 / /other rw - tmpfs tmpfs rw
"""


def real(argv: Sequence[str], stdin: bytes) -> Completed:
    del stdin
    return Completed(tuple(argv), 0, f"{argv[-1]}\n".encode())


HOST = FakeHost(answers={("realpath", "--"): real}, files={"/proc/self/mountinfo": MOUNTS})


@pytest.mark.parametrize(
    ("engines", "ours"), [("/var/lib/docker/overlay2/x/diff", "/var/lib/tare/work"), ("/srv/docker", "/srv/tare")]
)
def test_one_disk_however_often_it_is_mounted(engines: str, ours: str) -> None:
    must_share_disk(HOST, engines, ours)


@pytest.mark.parametrize(("engines", "ours"), [("/mnt/disk/docker", "/var/lib/tare"), ("/memory", "/other")])
def test_another_disk_is_refused_with_what_to_do(engines: str, ours: str) -> None:
    with pytest.raises(EnvironmentLacks, match=r"arms would use different disks") as caught:
        must_share_disk(HOST, engines, ours)
    assert "TARE_HOME" in (caught.value.hint or "")
    assert mount_under(HOST, engines).source in str(caught.value)
