from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tare.deployments.vm.cpio import archive, directory, link, program


def test_every_header_begins_at_a_multiple_of_four() -> None:
    packed = archive([directory("bin"), program("bin/abc", b"12345"), link("init", "bin/abc")])
    assert packed[:6] == b"070701"
    at, names = 0, list[str]()
    while not names or names[-1] != "TRAILER!!!":
        fields = [int(packed[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        start = at + 110
        names.append(packed[start : start + fields[11] - 1].decode())
        at = start + fields[11]
        at += -at % 4 + fields[6]
        at += -at % 4
    assert names == ["bin", "bin/abc", "init", "TRAILER!!!"]
    assert at == len(packed)


@pytest.mark.skipif(shutil.which("busybox") is None, reason="no cpio here")
def test_another_cpio_unpacks_it(tmp_path: Path) -> None:
    packed = archive([directory("bin"), program("bin/abc", b"12345"), link("init", "bin/abc")])
    subprocess.run(
        ["busybox", "cpio", "-i"], input=packed, cwd=tmp_path, check=True, capture_output=True, timeout=60
    )
    assert (tmp_path / "bin" / "abc").read_bytes() == b"12345"
    assert (tmp_path / "bin" / "abc").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "init").readlink() == Path("bin/abc")
