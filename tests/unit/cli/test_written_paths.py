"""No command replaces what is no regular file, whatever path it is told to write to."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.advice.test_advise import PODS, disputed_pair
from tests.unit.stores import known, store_of
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.commands import COMMANDS
from tare.errors import StudyError, TareError
from tare.knowledge.claim import load_claims
from tare.knowledge.own import write_claims
from tare.study.catalogue import claims_folder

WRITTEN = {
    "report --output": ["report", "STORE", "--format", "html", "--output", "PLACE"],
    "compare --output": ["compare", "STORE", "OTHER", "--output", "PLACE"],
    "trend --output": ["trend", "STORE", "OTHER", "--output", "PLACE"],
    "check --junit": ["check", "STORE", "--max-overhead", "5%", "--junit", "PLACE"],
    "check --markdown": ["check", "STORE", "--max-overhead", "5%", "--markdown", "PLACE"],
    "explain --output": ["explain", "STORE", "--output", "PLACE"],
    "advise --write": ["advise", "percona-2016", "--write", "PLACE"],
    "advise --try": ["advise", "DISPUTED", "--claims", "CLAIMS", "--try", "PLACE"],
    "knowledge add --to": ["knowledge", "add", "STORE", "--to", "PLACE"],
    "store copy TO": ["store", "copy", "STORE", "PLACE"],
    "store repair --to": ["store", "repair", "STORE", "--to", "PLACE"],
    "sites create --output": ["sites", "create", "MACHINES", "--yes", "--output", "PLACE"],
    "inspect --study": ["inspect", "1", "--trap", "shm-64m", "--study", "PLACE"],
    "import --store": ["import", "MAPPING", "RESULTS", "--store", "PLACE"],
    "import --write": ["import", "TABLES", "--write", "PLACE"],
}
"""Option → a command line that would write to it."""
IN_OTHER_TESTS = {"run --store", "sweep --store", "calibrate --home", "weigh --home"}
"""Directories that are made by `resume_store`, as that of `import` is."""
READ = {
    "serve STORE", "views --store", "explain STORE", "report STORE", "compare STORE_A", "compare STORE_B",
    "check STORE", "trend STORES",
    "knowledge list --claims", "knowledge show --claims", "knowledge export --claims", "knowledge add STORE",
    "knowledge check FILES", "knowledge check --claims", "site --claims",
    "knowledge predicted STORES", "knowledge predicted --claims",
    "store verify STORE", "store repair STORE", "store copy STORE", "advise --claims", "advise --profile",
    "doctor --sites", "plan --sites", "run --sites", "calibrate --sites", "clean --sites",
    "worker --sites", "sites create PLAN", "inspect --kubeconfig",
    "run --tls-ca", "run --tls-cert", "run --tls-key", "worker --tls-ca", "worker --tls-cert", "worker --tls-key",
}  # fmt: skip


def path_parameters() -> Iterator[str]:
    for name in COMMANDS:
        yield from _of(name, COMMANDS[name].load(name))


def _of(name: str, command: Any) -> Iterator[str]:
    """`command`: typer's own, whose types are its own too."""
    for inner, each in getattr(command, "commands", {}).items():
        yield from _of(f"{name} {inner}", each)
    for parameter in command.params:
        if any(kind in str(parameter.type_descriptor) for kind in ("pathlib.Path", "StorePlace")):
            result = parameter.opts[0]
            yield f"{name} {result if result.startswith('-') else result.upper()}"


def test_every_path_of_every_command_is_known_as_read_or_written() -> None:
    assert set(path_parameters()) == {*WRITTEN, *IN_OTHER_TESTS, *READ}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    rates = {"bare": [100, 101, 99, 100, 102, 98, 100, 99], "bridge": [90, 91, 90, 89, 92, 88, 90, 91]}
    place = tmp_path_factory.mktemp("stores")
    (place / "results").mkdir()
    (place / "results" / "a").write_text("one,2\n")
    (place / "mapping.yaml").write_text("{}")
    (place / "tables").mkdir()
    (place / "tables" / "a.csv").write_text("platform,transactions/s\nbare,900\ndocker,800\nbare,910\ndocker,805\n")
    (place / "disputed.yaml").write_text(PODS)
    machines = "format: 1\nname: a\nstudy: b\nprovider: ec2\nregion: eu-west-1\nmachine: m5.large\nimage: ami-1\n"
    (place / "machines.yaml").write_text(f"{machines}lifetime_h: 1\nssh_from: 203.0.113.7/32\n")
    (place / "claims").mkdir()
    for name, text in disputed_pair().items():
        (place / "claims" / f"{name}.yaml").write_text(text)
    made = {name: str(store_of(place / name, known(rates))) for name in ("one", "two")}
    return {
        "STORE": made["one"], "OTHER": made["two"],
        "MAPPING": str(place / "mapping.yaml"), "RESULTS": str(place / "results"),
        "TABLES": str(place / "tables"),
        "MACHINES": str(place / "machines.yaml"),
        "DISPUTED": str(place / "disputed.yaml"), "CLAIMS": str(place / "claims"),
    }  # fmt: skip


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """A thing of each kind that is no regular file, and links to some of them."""
    for kind in ("fifo", "folder", "socket", "null", "full", "disk"):
        made = tmp_path / kind
        if kind == "fifo":
            os.mkfifo(made)
        elif kind == "folder":
            made.mkdir()
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(made))
        elif os.geteuid() == 0:
            node, number = {
                "null": (stat.S_IFCHR, (1, 3)), "full": (stat.S_IFCHR, (1, 7)), "disk": (stat.S_IFBLK, (7, 255)),
            }[kind]  # fmt: skip
            os.mknod(made, 0o666 | node, os.makedev(*number))
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "to-fifo").symlink_to("fifo")
    return sorted(tmp_path.iterdir())


def kinds(places: list[Path]) -> dict[str, tuple[int, int, int]]:
    by_name = {path.name: path.lstat() for path in places}
    return {name: (stat.S_IFMT(each.st_mode), each.st_rdev, each.st_ino) for name, each in by_name.items()}


def test_a_guessed_mapping_is_written_where_it_is_wanted(stores: dict[str, str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["import", stores["TABLES"], "--write", str(tmp_path / "mapping.yaml")])
    assert done.exit_code == 0, done.output
    assert "docker" in (tmp_path / "mapping.yaml").read_text()


@pytest.mark.parametrize("option", WRITTEN)
def test_what_is_no_regular_file_stays_what_it_is(
    stores: dict[str, str], places: list[Path], tmp_path: Path, option: str
) -> None:
    before = kinds(places)
    for place in places:
        words = [{**stores, "PLACE": str(place)}.get(word, word) for word in WRITTEN[option]]
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, (TareError, SystemExit)), (
            place,
            done.exception,
        )
        assert kinds(places) == before, place
    assert sorted(tmp_path.iterdir()) == places


def test_no_claim_is_written_through_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    claim = load_claims((claims_folder(),))[0].claim
    (tmp_path / "known.yaml").symlink_to("elsewhere.yaml")
    with pytest.raises(StudyError, match="exists already"):
        write_claims({"known": claim}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["known.yaml"]
