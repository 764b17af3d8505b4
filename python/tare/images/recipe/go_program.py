"""A program of a Go module: built by the local Go toolchain, and checked against the module's sum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.images.recipe.file import AddedProgram
from tare.sites import Host

BUILD_TIMEOUT_S = 1800.0
_READ_TIMEOUT_S = 60.0
_NOT_FOUND = 127
_NEEDED = "a Go toolchain must be in PATH (it fetches no other one) and reach its module proxy"


@dataclass(frozen=True)
class BuiltProgram:
    """A built file and the Go that built it (`go1.24.4`)."""

    file: Path
    toolchain: str


def build_program(host: Host, program: AddedProgram, scratch: Path) -> BuiltProgram:
    """Build in `scratch`, including caches.

    Raises `EnvironmentLacks` with Go's message, or if the module's sum differs. The same module and toolchain give
    the same bits: no cgo, no paths of this machine.
    """
    what = f"the Go program {program.go}@{program.version} could not be built"
    places = {"GOPATH": "path", "GOCACHE": "cache", "GOBIN": "bin", "GOTMPDIR": "tmp"}
    (scratch / places["GOTMPDIR"]).mkdir(parents=True)
    env = [
        *("GOTOOLCHAIN=local", "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath -modcacherw -buildvcs=false"),
        *(f"{name}={scratch / place}" for name, place in places.items()),
    ]
    argv = ["env", *env, "go", "install", f"{program.go}@{program.version}"]
    try:
        done = host.run(argv, timeout_s=BUILD_TIMEOUT_S, check=False)
    except (TimedOut, RunFailed) as error:
        raise EnvironmentLacks(f"{what}: {error}", hint=_NEEDED) from error
    if done.code == _NOT_FOUND:
        raise EnvironmentLacks(f"{what}: there is no go", hint=_NEEDED)
    if done.code != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reasons = [line for line in lines if not line.startswith("go: downloading ")] or ["it gave no reason"]
        raise EnvironmentLacks(f"{what}: {reasons[0]}", hint=_NEEDED)
    programs = [path for path in (scratch / places["GOBIN"]).rglob("*") if path.is_file()]
    if len(programs) != 1:
        raise EnvironmentLacks(f"{what}: Go left {len(programs)} files instead of one")
    version_listing = host.run(["go", "version", "-m", str(programs[0])], timeout_s=_READ_TIMEOUT_S).text
    return BuiltProgram(programs[0], _toolchain(version_listing, program))


def _toolchain(listing: str, program: AddedProgram) -> str:
    """Toolchain in the output of `go version -m`: first line; its `mod` line has module, version and sum."""
    lines = [line.split() for line in listing.splitlines()]
    sums = [words[2:] for words in lines if words[:1] == ["mod"]]
    if sums != [[program.version, program.sum]]:
        raise EnvironmentLacks(
            f"the Go program {program.go}: its module is {' '.join(sums[0]) if sums else 'unknown'},"
            f" not {program.version} {program.sum}",
            hint="the module proxy has another module than the recipe expects",
        )
    return lines[0][-1]
