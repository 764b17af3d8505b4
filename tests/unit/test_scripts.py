"""The set-up scripts: what they decide, and what they say where they cannot go on. Nothing is really installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
NEEDED = ("sh", "cat", "cut", "dirname", "mktemp", "rm", "tail", "timeout", "env", "sha256sum")


class Machine:
    """A PATH with nothing on it but a few programs of the system and the fakes that a test adds."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder
        for name in NEEDED:
            result = next(path for place in ("/bin", "/usr/bin") if (path := Path(place) / name).exists())
            (folder / name).symlink_to(result)

    def fake(self, name: str, script: str) -> None:
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def run(self, name: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        environ: Mapping[str, str] = {"PATH": str(self.bin), **env}
        return subprocess.run(
            [str(SCRIPTS / name), *words], env=environ, capture_output=True, text=True, check=False, timeout=60
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_installed_where_every_command_is_there(machine: Machine) -> None:
    machine.fake("mmdebstrap", "")
    done = machine.run("apt_install.sh", "images need it", "mmdebstrap:mmdebstrap")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_who_is_not_root_is_told_in_one_sentence_what_root_must_install(machine: Machine) -> None:
    machine.fake("id", "echo 1000")
    machine.fake("apt-get", "echo called >&2")
    done = machine.run("apt_install.sh", "images need them", "no-such-x:one", "two")
    assert done.returncode == 3
    assert done.stderr == "tare: images need them: please have root run: apt-get install one two\n"


def test_a_system_without_apt_is_told_the_names_that_debian_uses(machine: Machine) -> None:
    done = machine.run("apt_install.sh", "images need it", "no-such-x:one")
    assert done.returncode == 3
    assert "please install what Debian calls: one" in done.stderr


def test_package_lists_are_renewed_only_when_installing_fails_without(machine: Machine, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    machine.fake("id", "echo 0")
    lists = tmp_path / "lists"
    machine.fake(
        "apt-get",
        f'case " $* " in *" update "*) echo update >>{calls}; : >{lists} ;;\n'
        f"*) echo install >>{calls}; [ -e {lists} ] ;; esac",
    )
    done = machine.run("apt_install.sh", "why", "no-such-x:one")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().split() == ["install", "update", "install"]


def test_an_installation_that_fails_shows_why(machine: Machine) -> None:
    machine.fake("id", "echo 0")
    machine.fake("apt-get", "echo E: no such package; exit 100")
    done = machine.run("apt_install.sh", "why", "no-such-x:one")
    assert done.returncode == 3
    assert "E: no such package" in done.stderr
    assert "apt-get could not install one" in done.stderr


def python(version: str, *, venv: bool = True) -> str:
    """A fake interpreter: answers the questions that python.sh asks of one."""
    new_enough = tuple(map(int, version.split("."))) >= (3, 11)
    return (
        f'case "$2" in *"(3, 11)"*) exit {0 if new_enough else 1} ;; *sys.executable*) echo "$0" ;; '
        f"*ensurepip*) exit {0 if venv else 1} ;; *) echo {version} ;; esac"
    )


def test_a_newer_python_is_found_beside_an_old_one(machine: Machine) -> None:
    machine.fake("python3", python("3.10"))
    machine.fake("python3.12", python("3.12"))
    assert machine.run("python.sh").stdout == f"{machine.bin}/python3.12\n"


def test_the_python_that_the_user_names_comes_first(machine: Machine) -> None:
    machine.fake("python3", python("3.11"))
    machine.fake("mine", python("3.13"))
    assert machine.run("python.sh", PYTHON="mine").stdout == f"{machine.bin}/mine\n"


def test_a_python_without_venv_asks_for_the_package_of_its_version(machine: Machine) -> None:
    machine.fake("id", "echo 1000")
    machine.fake("apt-get", "")
    machine.fake("python3", python("3.13", venv=False))
    done = machine.run("python.sh")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("please have root run: apt-get install python3.13-venv\n")


def test_an_engine_that_the_user_names_is_never_replaced_by_another() -> None:
    done = subprocess.run(
        [str(SCRIPTS / "engine.sh"), "run", "true"],
        env={"PATH": "/usr/bin:/bin", "DOCKER_HOST": "unix:///nowhere.sock"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == (
        "tare: no engine answers at DOCKER_HOST=unix:///nowhere.sock: start it, or unset DOCKER_HOST\n"
    )


@pytest.mark.parametrize(("words", "code"), [((), 2), (("restart",), 2)])
def test_the_engine_script_refuses_what_it_does_not_know(
    words: tuple[str, ...], code: int, machine: Machine
) -> None:
    assert machine.run("engine.sh", *words).returncode == code


def test_a_timed_command_keeps_its_exit_code_and_its_output(machine: Machine) -> None:
    machine.fake("date", "echo 100")
    done = machine.run("timed.sh", "study", "sh", "-c", "echo out; exit 4")
    assert (done.returncode, done.stdout, done.stderr) == (4, "out\n", "tare: study: 0 s\n")


class Clone:
    """A tree with what rust_cache.sh reads of a checkout, its own cache, and a rustc of some version."""

    def __init__(self, place: Path, cache: Path, rustc: str = "rustc 1.88.0") -> None:
        self.root, self.target, self.cargo, self.cache = place, place / "target", place / "cargo", cache
        for folder in ("scripts", ".cargo", "crates/bin", "cargo"):
            (place / folder).mkdir(parents=True)
        shutil.copy(SCRIPTS / "rust_cache.sh", place / "scripts")
        for name in ("Cargo.toml", "Cargo.lock", ".cargo/config.toml", "pyproject.toml", "crates/bin/main.rs"):
            (place / name).write_text(name)
        (self.cargo / "rustc").write_text(f"#!/bin/sh\necho {rustc}\n")
        (self.cargo / "rustc").chmod(0o755)

    def call(self, *words: str, **env: str) -> str:
        environ = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(self.cache), **env}
        argv = [str(self.root / "scripts" / "rust_cache.sh"), *words]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert not list(self.root.glob("build/*")), "a scratch directory is left"
        return done.stdout.strip()

    def restore(self, **env: str) -> str:
        return self.call("restore", str(self.cargo), **env)

    def build(self) -> None:
        for name in ("deps/libserde.rlib", "deps/libtare_probe.rlib", ".fingerprint/tare-bin/dep", "tare-probe"):
            path = self.target / "debug" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(self.root))

    def holds(self) -> set[str]:
        return {path.name for path in self.target.rglob("*") if path.is_file()}


@pytest.fixture
def first(tmp_path: Path) -> Clone:
    """A clone that has built and saved."""
    clone = Clone(tmp_path / "first", tmp_path / "cache")
    key = clone.restore()
    clone.build()
    clone.call("save", key)
    return clone


WHOLE = {"libserde.rlib", "libtare_probe.rlib", "dep", "tare-probe"}


def archives(clone: Clone) -> list[Path]:
    return sorted((clone.cache / "tare" / "rust").iterdir())


def test_a_second_clone_takes_what_the_first_one_built(first: Clone, tmp_path: Path) -> None:
    second = Clone(tmp_path / "second", first.cache)
    assert second.restore() == "", "there is nothing to save"
    assert second.holds() == WHOLE


def test_a_source_that_is_edited_later_is_newer_than_what_was_restored(first: Clone, tmp_path: Path) -> None:
    """And one from before is older: cargo goes by the times."""
    second = Clone(tmp_path / "second", first.cache)
    source = second.root / "crates" / "bin" / "main.rs"
    before = source.stat().st_mtime_ns
    second.restore()
    source.write_text("edited")
    times = {path.stat().st_mtime_ns for path in second.target.rglob("*")}
    assert before <= min(times)
    assert max(times) <= source.stat().st_mtime_ns


def test_of_other_sources_only_the_dependencies_are_taken(first: Clone, tmp_path: Path) -> None:
    second = Clone(tmp_path / "second", first.cache)
    (second.root / "crates" / "bin" / "main.rs").write_text("other")
    assert second.restore() != ""
    assert second.holds() == {"libserde.rlib"}


def test_another_compiler_finds_nothing(first: Clone, tmp_path: Path) -> None:
    second = Clone(tmp_path / "second", first.cache, rustc="rustc 1.99.0")
    assert second.restore() != ""
    assert not second.target.exists()


def test_sources_that_changed_while_they_were_built_are_not_saved(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "first", tmp_path / "cache")
    key = clone.restore()
    clone.build()
    (clone.root / "crates" / "bin" / "main.rs").write_text("edited")
    clone.call("save", key)
    assert not clone.cache.exists()


def test_a_target_directory_that_is_there_is_left_alone(first: Clone) -> None:
    (first.target / "debug" / "tare-probe").write_text("the developer's own")
    assert first.restore() == ""
    assert (first.target / "debug" / "tare-probe").read_text() == "the developer's own"


def test_a_target_directory_that_the_user_shares_is_his_own_affair(first: Clone, tmp_path: Path) -> None:
    second = Clone(tmp_path / "second", first.cache)
    assert second.restore(CARGO_TARGET_DIR="/somewhere") == ""
    assert not second.target.exists()


def test_an_archive_that_is_cut_short_is_removed_and_costs_a_build(first: Clone, tmp_path: Path) -> None:
    (archive,) = archives(first)
    with archive.open("r+b") as file:
        os.truncate(file.fileno(), archive.stat().st_size // 2 + 100)
    second = Clone(tmp_path / "second", first.cache)
    assert second.restore() != ""
    assert not second.target.exists()
    assert archives(first) == []


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    clone = Clone(tmp_path / "first", tmp_path / "cache")
    key = clone.restore()
    clone.build()
    clone.call("save", key)
    assert clone.holds() == WHOLE


def test_without_a_home_there_is_no_cache(tmp_path: Path) -> None:
    assert Clone(tmp_path / "first", tmp_path / "cache").restore(XDG_CACHE_HOME="") == ""


def test_what_a_killed_save_left_is_no_archive(first: Clone, tmp_path: Path) -> None:
    (archive,) = archives(first)
    archive.rename(archive.with_name("new.Ab12Cd"))
    assert Clone(tmp_path / "second", first.cache).restore() != ""
    assert not (tmp_path / "second" / "target").exists()


def test_the_newest_three_archives_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        clone = Clone(tmp_path / str(number), tmp_path / "cache")
        (clone.root / "crates" / "bin" / "main.rs").write_text(str(number))
        key = clone.restore()
        clone.build()
        clone.call("save", key)
    kept = archives(clone)
    assert len(kept) == 3
    assert f"{key}.tar" in {path.name for path in kept}


@pytest.mark.parametrize(
    ("target", "option"),
    [("bench-load", "--pairs 5"), ("bench-load", "--minutes 60"), ("bench-explain", "--pairs 5")],
)
def test_a_benchmark_has_its_defaults(target: str, option: str) -> None:
    dry = subprocess.run(
        ["make", "--dry-run", target], cwd=SCRIPTS.parent, capture_output=True, text=True, check=True, timeout=60
    )
    assert option in dry.stdout
