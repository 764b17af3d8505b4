"""Go programs in recipes: built by `go install`, held against the module's sum, and told of in the image."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks, StudyError, TimedOut
from tare.images.oci.unpack import unpack
from tare.images.packages import installed_packages
from tare.images.recipe.file import AddedProgram, read_recipe, recipe_key
from tare.images.recipe.go_program import BuiltProgram, build_program
from tare.images.recipe.recipe import FetchedFiles, write_layer
from tare.sites import Completed
from tare.sites.fake import Answer, FakeHost

SUM = "h1:e68kyioANdGrATjgVINPCJgsSN7H+cOPMDGvJoYxz5E="
PROGRAM = AddedProgram(
    path="/usr/local/bin/ferretdb", go="github.com/FerretDB/FerretDB/v2/cmd/ferretdb", version="v2.7.0", sum=SUM
)
# What `go version -m` of Go 1.26.8 told, but for the many lines of dependencies.
TOLD = f"""\
/scratch/bin/ferretdb: go1.26.8
\tpath\tgithub.com/FerretDB/FerretDB/v2/cmd/ferretdb
\tmod\tgithub.com/FerretDB/FerretDB/v2\tv2.7.0\t{SUM}
\tdep\tgithub.com/AlekSi/lazyerrors\tv0.0.0-20251102120325-67e66cc79778\th1:aFkT3MB8FKl6f7xzyh0VIuNGVAuKBAlSgO39X4cIPTU=
\tbuild\t-buildmode=exe
\tbuild\t-trimpath=true
"""
RECIPE = f"""\
format: 1
suite: sid
packages: [pp]
programs:
  - {{go: {PROGRAM.go}, version: v2.7.0, sum: "{SUM}", path: /usr/local/bin/ferretdb}}
"""


class Toolchain(FakeHost):
    """Answers like `go`, and leaves files where GOBIN says."""

    def __init__(self, scratch: Path, told: str = TOLD, done: Completed | None = None, files: int = 1) -> None:
        self.place, self.files_left = scratch / "bin", files
        answer: Answer = done if done is not None else self.install
        super().__init__(answers={("env",): answer, ("go", "version"): Completed((), 0, told.encode())})

    def install(self, argv: object, stdin: bytes) -> Completed:
        del argv, stdin
        self.place.mkdir()
        for number in range(self.files_left):
            (self.place / f"program-{number}").write_bytes(b"\x7fELF")
        return Completed((), 0, b"")


def test_the_very_version_is_built_with_this_toolchain_in_the_scratch_directory(tmp_path: Path) -> None:
    host = Toolchain(tmp_path)
    built = build_program(host, PROGRAM, tmp_path)
    assert built == BuiltProgram(tmp_path / "bin" / "program-0", "go1.26.8")
    argv = host.ran()[0]
    assert argv[-3:] == ("go", "install", f"{PROGRAM.go}@v2.7.0")
    assert {"GOTOOLCHAIN=local", "CGO_ENABLED=0", f"GOPATH={tmp_path}/path", f"GOCACHE={tmp_path}/cache"} <= set(
        argv
    )
    assert any(word.startswith("GOFLAGS=-trimpath") for word in argv)


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (Completed((), 127, b"", b"env: 'go': No such file or directory\n"), "there is no go"),
        (Completed((), 1, b"", b"go: downloading a v1\ngo: b@v1: requires go >= 1.99\n"), "requires go >= 1.99"),
        (Completed((), 1, b""), "gave no reason"),
    ],
)
def test_what_go_cannot_build_is_told(tmp_path: Path, done: Completed, told: str) -> None:
    with pytest.raises(EnvironmentLacks, match=told):
        build_program(Toolchain(tmp_path, done=done), PROGRAM, tmp_path)


def test_a_build_that_takes_too_long_is_told(tmp_path: Path) -> None:
    host = FakeHost(answers={("env",): TimedOut("go took more than 1800 s")})
    with pytest.raises(EnvironmentLacks, match="took more than 1800 s"):
        build_program(host, PROGRAM, tmp_path)


@pytest.mark.parametrize(
    "told", [TOLD.replace("v2.7.0\th1:e68", "v2.7.0\th1:f68"), TOLD.replace("\tmod\t", "\tx\t")]
)
def test_another_modules_sum_is_refused(tmp_path: Path, told: str) -> None:
    with pytest.raises(EnvironmentLacks, match=r"not v2\.7\.0 h1:e68"):
        build_program(Toolchain(tmp_path, told), PROGRAM, tmp_path)


def test_a_package_of_several_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="2 files instead of one"):
        build_program(Toolchain(tmp_path, files=2), PROGRAM, tmp_path)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE)
    return path


def test_it_is_in_the_image_and_among_its_packages(recipe: Path, tmp_path: Path) -> None:
    passwd, built, base = tmp_path / "passwd", tmp_path / "built", tmp_path / "base.tar"
    passwd.write_text("root:x:0:0::/root:/bin/sh\n")
    built.write_bytes(b"\x7fELF")
    with tarfile.open(base, "w") as tar:
        tar.add(passwd, "./etc/passwd")
    brought = FetchedFiles(programs={PROGRAM.path: BuiltProgram(built, "go1.26.8")})
    write_layer(read_recipe(recipe), recipe, base, tmp_path / "layer.tar", brought)
    root = tmp_path / "root"
    root.mkdir()
    unpack([base, tmp_path / "layer.tar"], root)
    assert (root / "usr/local/bin/ferretdb").read_bytes() == b"\x7fELF"
    assert (root / "usr/local/bin/ferretdb").stat().st_mode & 0o777 == 0o755
    assert installed_packages(root) == ((PROGRAM.go, f"v2.7.0 {SUM} go1.26.8"),)


def test_version_and_sum_are_in_the_key_and_a_path_is_taken_once(recipe: Path) -> None:
    before = recipe_key(read_recipe(recipe), recipe)
    recipe.write_text(RECIPE.replace("version: v2.7.0", "version: v2.7.1"))
    assert recipe_key(read_recipe(recipe), recipe) != before
    recipe.write_text(f"{RECIPE}files: [{{path: /usr/local/bin/ferretdb, content: x}}]\n")
    with pytest.raises(StudyError, match="added twice"):
        read_recipe(recipe)


@pytest.mark.parametrize("line", ["sum: h1:short", "version: latest", "go: 'a b'"])
def test_what_names_no_fixed_module_is_refused(recipe: Path, line: str) -> None:
    key = line.partition(":")[0]
    lines = [f"  - {{go: {PROGRAM.go}, version: v2.7.0, sum: '{SUM}', path: /p}}"]
    text = lines[0].replace(
        {"sum": f"sum: '{SUM}'", "version": "version: v2.7.0", "go": f"go: {PROGRAM.go}"}[key], line
    )
    recipe.write_text(f"format: 1\nsuite: sid\npackages: [pp]\nprograms:\n{text}\n")
    with pytest.raises(StudyError, match=key):
        read_recipe(recipe)
