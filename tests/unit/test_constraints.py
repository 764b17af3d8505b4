"""constraints.txt: a version with digests for all that `make setup` installs, and nothing else is installed."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "constraints.txt").read_text()
NOT_OURS = {"pip", "setuptools", "tare-bench"}
"""What a new environment has, and tare itself."""
ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(.*\n(?:    --hash=sha256:[0-9a-f]{64}.*\n)*)", re.MULTILINE)


def plain(name: str) -> str:
    """As PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for match in ENTRY.finditer(LOCK):
        versions.setdefault(plain(match[1]), set()).add(match[2])
    return versions


def test_every_locked_version_has_the_digests_of_its_files() -> None:
    entries = list(ENTRY.finditer(LOCK))
    assert len(entries) == len([line for line in LOCK.splitlines() if line and line[0] not in "# "])
    assert [match[1] for match in entries if "--hash=sha256:" not in match[3]] == []


def test_all_that_the_project_names_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    named = [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]
    named += [*project["build-system"]["requires"], "uv"]
    assert {plain(re.split(r"[\[<>=!~ ]", each)[0]) for each in named} - set(locked()) == set()


def test_nothing_else_is_installed_than_what_is_locked() -> None:
    here = {plain(each.metadata["Name"]): each.version for each in distributions()}
    wrong = {
        name: version
        for name, version in here.items()
        if name not in NOT_OURS and version not in locked().get(name, set())
    }
    assert wrong == {}, "`make setup` renews the environment"


def test_a_package_is_taken_from_the_list_with_its_digests() -> None:
    script = re.search(r"^locked\(\) .*$", (ROOT / "scripts" / "venv.sh").read_text(), re.MULTILINE)
    assert script is not None
    done = subprocess.run(
        ["sh", "-c", f"{script[0]}\nlocked uv"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    first, *digests = done.stdout.splitlines()
    assert first.startswith("uv==")
    assert len(digests) > 3
    assert all(line.startswith("    --hash=sha256:") for line in digests)
    assert not digests[-1].endswith("\\")
