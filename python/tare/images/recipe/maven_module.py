"""A Maven module's jars: its own, and all that it needs at run time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed, StudyError, TimedOut
from tare.sites import Host

BUILD_TIMEOUT_S = 1800.0
_NOT_FOUND = 127
_NEEDED = "apt-get install maven default-jdk-headless"


def sources_of(module: Path) -> Iterator[tuple[str, bytes]]:
    """Every file that a build depends on, with its path in the module, in the order of paths."""
    if not (module / "pom.xml").is_file():
        raise StudyError(f"{module} is not a Maven module: it has no pom.xml")
    for path in sorted([module / "pom.xml", *(module / "src").rglob("*")]):
        if path.is_file():
            yield path.relative_to(module).as_posix(), path.read_bytes()


def digest_of(module: Path) -> str:
    """sha256 over all files of `sources_of`."""
    total = hashlib.sha256()
    for name, content in sources_of(module):
        total.update(f"{name}\n{len(content)}\n".encode() + content)
    return total.hexdigest()


def build_jars(host: Host, module: Path, scratch: Path) -> tuple[Path, ...]:
    """Build a copy of the module in `scratch`; return its jar and those of its dependencies, sorted by name.

    The module's pom copies its dependencies to target/lib. Their versions are fixed there, and Maven checks
    downloads against the repository's digests. Raises `EnvironmentLacks` with Maven's own message.
    """
    for name, content in sources_of(module):
        place = scratch / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    what = f"the Maven module {module} could not be built"
    argv = ["env", "mvn", "-B", "-q", "-Dstyle.color=never", "-f", str(scratch / "pom.xml"), "package"]
    try:
        done = host.run(argv, timeout_s=BUILD_TIMEOUT_S, check=False)
    except (TimedOut, RunFailed) as error:
        raise EnvironmentLacks(f"{what}: {error}", hint=_NEEDED) from error
    if done.code == _NOT_FOUND:
        raise EnvironmentLacks(f"{what}: there is no mvn", hint=_NEEDED)
    if done.code != 0:
        lines = [line for line in done.text.splitlines() if line.startswith("[ERROR]")] or ["it gave no reason"]
        hint = "Maven must reach its repository, and a JDK must be installed"
        raise EnvironmentLacks(f"{what}: {lines[0].removeprefix('[ERROR] ')}", hint=hint)
    jars = [*(scratch / "target").glob("*.jar"), *(scratch / "target" / "lib").glob("*.jar")]
    return tuple(sorted(jars, key=lambda path: path.name))
