"""What a wheel holds and can do, in an environment of its own outside the checkout."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from tests.integration.lacking import left_out

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sysconfig.get_path("scripts"))
BUILD_S = 1200.0
CALL_S = 120.0


def run(*argv: str | Path, cwd: Path, timeout_s: float = CALL_S, path: str = "") -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        timeout=timeout_s,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def built(out: Path, *options: str) -> Path:
    """The wheel, its program built as that of an editable install is, so that nothing is compiled twice."""
    maturin = SCRIPTS / "maturin"
    if not maturin.exists():
        left_out("maturin is not installed in this environment; scripts/venv.sh does so")
    cargo = run(ROOT / "scripts" / "rust.sh", "build", cwd=ROOT, timeout_s=BUILD_S).strip()
    run(maturin, "build", "--profile", "dev", "--out", out, *options, cwd=ROOT, timeout_s=BUILD_S, path=cargo)
    return next(out.glob("*.whl"))


def installed(wheel: Path, place: Path) -> Path:
    """An environment with the wheel; what it depends on is lent by the environment of the tests."""
    venv.create(place, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    (packages / "lent.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--no-deps", "--no-index", "--no-compile", wheel, cwd=place)
    return place / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this checkout."""
    return built(tmp_path_factory.mktemp("dist"))


@pytest.mark.timeout(BUILD_S + 300)
def test_a_wheel_brings_the_command_the_probe_the_studies_and_the_recipes(wheel: Path, tmp_path: Path) -> None:
    programs = installed(wheel, tmp_path / "env")
    assert run(programs / "tare", "version", cwd=tmp_path) == run(
        programs / "python", "-m", "tare", "version", cwd=tmp_path
    )
    assert run(programs / "tare-probe", "--version", cwd=tmp_path).startswith("tare-probe ")
    where = run(programs / "python", "-c", "import tare; print(tare.__file__)", cwd=tmp_path)
    assert where.startswith(str(tmp_path)), "the checkout's own package answers, so this says nothing of the wheel"
    assert "percona-2016" in run(programs / "tare", "plan", "percona-2016", "--scale", "demo", cwd=tmp_path)
    recipes = run(
        programs / "python", "-c", "from tare.study.catalogue import recipes; print(*recipes())", cwd=tmp_path
    )
    assert {path.stem for path in (ROOT / "images").glob("*.yaml")} == set(recipes.split())
    claims = run(
        programs / "python", "-c", "from tare.knowledge import load_claims; print(len(load_claims()))", cwd=tmp_path
    )
    files = (path for path in (ROOT / "knowledge").glob("**/*.yaml") if "traps" not in path.parts)
    assert int(claims) == len(list(files))


@pytest.mark.timeout(BUILD_S + 300)
def test_the_probe_in_a_wheel_needs_no_library(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".cyclonedx.json")], "no list of its crates"
        name = next(name for name in archive.namelist() if name.endswith("/scripts/tare-probe"))
        program = tmp_path / "tare-probe"
        program.write_bytes(archive.read(name))
    headers = run("readelf", "--program-headers", program, cwd=tmp_path)
    assert "LOAD" in headers
    assert "INTERP" not in headers


@pytest.mark.slow
@pytest.mark.timeout(BUILD_S + 300)
def test_a_wheel_made_from_the_source_distribution_holds_the_same(wheel: Path, tmp_path: Path) -> None:
    by_way_of_sdist = built(tmp_path / "sdist", "--sdist")
    with tarfile.open(next((tmp_path / "sdist").glob("*.tar.gz"))) as source:
        assert any(name.endswith("/wheel.data/scripts/tare") for name in source.getnames())
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(by_way_of_sdist) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert not any(Path(sys.prefix).name in Path(name).parts for name in one.namelist())
