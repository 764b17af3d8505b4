"""Take the directory of a build out of a wheel's lists of crates: `python -m tools.relocate_sbom WHEEL DIRECTORY`.

cargo names a crate of the workspace by its directory (`path+file:///home/…`), which then is in the CycloneDX files
of the wheel; nothing else in a release says where it was built.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import sys
import zipfile
from pathlib import Path

PLACE = "file:///tare"
"""Where `scripts/release.sh` has the compiler say that the sources are, too."""


def relocate(wheel: Path, directory: Path) -> int:
    """Rewrite the wheel with its `RECORD`; how many files named the directory.

    Raises `OSError`, and `BadZipFile` where it is no wheel.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    changed: dict[str, bytes] = {}
    for info, content in members:
        if "/sboms/" in info.filename and directory.as_uri().encode() in content:
            changed[info.filename] = content.replace(directory.as_uri().encode(), PLACE.encode())
    written = wheel.with_suffix(".part")
    with zipfile.ZipFile(written, "w") as archive:
        for info, content in members:
            kept = changed.get(info.filename, content)
            archive.writestr(info, _record(content, changed) if info.filename.endswith("/RECORD") else kept)
    written.replace(wheel)
    return len(changed)


def _record(content: bytes, changed: dict[str, bytes]) -> bytes:
    """Digests as in the specification of binary distributions: sha256, base64 for URLs without padding."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    for row in rows:
        if row[0] in changed:
            digest = base64.urlsafe_b64encode(hashlib.sha256(changed[row[0]]).digest()).rstrip(b"=").decode()
            row[1:] = [f"sha256={digest}", str(len(changed[row[0]]))]
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    return lines.getvalue().encode()


if __name__ == "__main__":
    print(relocate(Path(sys.argv[1]), Path(sys.argv[2])))
