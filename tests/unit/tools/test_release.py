"""A wheel's lists of crates do not say where it was built, and the wheel stays whole."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from tools.relocate_sbom import relocate

CRATES = '{"bom-ref": "path+file:///home/x/a%20clone/crates/bin#tare-bin@0.1.0"}'
RECORD = "tare.dist-info/RECORD"
MEMBERS = {
    "tare/__init__.py": b"'file:///home/x/a%20clone'\n",
    "tare.dist-info/sboms/tare-bin.cyclonedx.json": CRATES.encode(),
}


def digest_of(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def wheel_of(place: Path) -> Path:
    record = "".join(f"{name},{digest_of(content)},{len(content)}\n" for name, content in MEMBERS.items())
    with zipfile.ZipFile(place / "tare.whl", "w") as wheel:
        for name, content in [*MEMBERS.items(), (RECORD, f"{record}{RECORD},,\n".encode())]:
            info = zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6))
            info.external_attr, info.compress_type = 0o755 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(info, content)
    return place / "tare.whl"


def test_the_directory_goes_from_the_lists_alone_and_the_record_fits(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path)
    assert relocate(wheel, Path("/home/x/a clone")) == 1
    with zipfile.ZipFile(wheel) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
        kept = {(info.date_time, info.external_attr, info.compress_type) for info in archive.infolist()}
    assert kept == {((2026, 1, 2, 3, 4, 6), 0o755 << 16, zipfile.ZIP_DEFLATED)}
    assert content["tare/__init__.py"] == MEMBERS["tare/__init__.py"]
    (crates,) = (name for name in content if "sboms" in name)
    assert content[crates] == b'{"bom-ref": "path+file:///tare/crates/bin#tare-bin@0.1.0"}'
    rows = [line.split(",") for line in content[RECORD].decode().splitlines()]
    assert rows[-1] == [RECORD, "", ""]
    for name, digest, size in rows[:-1]:
        assert (digest, int(size)) == (digest_of(content[name]), len(content[name]))


def test_a_wheel_that_names_no_directory_keeps_its_bytes(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path)
    relocate(wheel, Path("/home/x/a clone"))
    before = wheel.read_bytes()
    assert relocate(wheel, Path("/home/x/a clone")) == 0
    assert wheel.read_bytes() == before
