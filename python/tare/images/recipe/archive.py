"""A tar from Maven's repository: fetched by Maven, checked against its digest, and read for the image."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tare.errors import EnvironmentLacks, RunFailed, StudyError, TimedOut
from tare.images.digest import file_digest
from tare.images.recipe.file import AddedArchive
from tare.sites import Host

FETCH_TIMEOUT_S = 900.0
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_NEEDED = "apt-get install maven default-jre-headless"


@dataclass(frozen=True)
class Unpacked:
    """One entry. `name`: path below the archive's place in the image; `content`: `None` for a directory."""

    name: str
    mode: int
    content: bytes | None


def fetch_archive(host: Host, archive: AddedArchive, scratch: Path) -> Path:
    """Fetch the archive to `scratch`. Raises `EnvironmentLacks` if Maven cannot, or if its digest differs."""
    what = f"the archive {archive.maven} is not available"
    argv = ["env", "mvn", "-B", "-q", "-Dstyle.color=never", _COPY, f"-Dartifact={archive.maven}"]
    try:
        done = host.run([*argv, f"-DoutputDirectory={scratch}"], timeout_s=FETCH_TIMEOUT_S, check=False)
    except (TimedOut, RunFailed) as error:
        raise EnvironmentLacks(f"{what}: {error}", hint=_NEEDED) from error
    if done.code != 0:
        output = (done.text + done.stderr.decode(errors="replace")).splitlines()
        lines = [line.strip() for line in output if line.startswith("[ERROR]")] or [line for line in output if line]
        reason = lines[0].removeprefix("[ERROR] ") if lines else f"mvn ended with {done.code}"
        raise EnvironmentLacks(f"{what}: {reason}", hint=f"Maven must reach its repository; {_NEEDED}")
    archives = sorted(scratch.glob("*.tar.gz"))
    if len(archives) != 1:
        raise EnvironmentLacks(f"{what}: Maven left {len(archives)} files instead of one")
    if (digest := file_digest(archives[0])) != archive.sha256:
        raise EnvironmentLacks(
            f"{what}: its sha256 is {digest}, which differs from the recipe's",
            hint="the repository has another file than the recipe expects",
        )
    return archives[0]


def archive_files(archive: AddedArchive, source: Path) -> Iterator[Unpacked]:
    """Directories and files in the archive's order.

    Raises `StudyError` for other kinds and for names that leave it.
    """
    with tarfile.open(source) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts or any(part.startswith(".wh.") for part in path.parts):
                raise StudyError(f"the archive {archive.maven} has a name that no image may have: {member.name!r}")
            if not (member.isfile() or member.isdir()):
                raise StudyError(f"the archive {archive.maven}: {member.name!r} is neither a file nor a directory")
            name = "/".join(path.parts[archive.strip :])
            if name:
                file = tar.extractfile(member)
                yield Unpacked(name, member.mode & 0o777, None if file is None else file.read())
