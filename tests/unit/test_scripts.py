"""The set-up scripts: what they decide, and what they say where they cannot go on. Nothing is really installed."""

from __future__ import annotations

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
            found = next(path for place in ("/bin", "/usr/bin") if (path := Path(place) / name).exists())
            (folder / name).symlink_to(found)

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
