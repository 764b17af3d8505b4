"""Building from a recipe: what cannot be built, a builder that is killed, and the same image twice; no engine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks
from tare.images import Image, Workshop
from tare.images.digest import image_digest, list_tree
from tare.images.image_store import ImageStore
from tare.images.maintenance import remove
from tare.images.oci.unpack import unpack
from tare.images.prepare import prepare
from tare.images.recipe.recipe import Recipe
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = pytest.mark.root

GONE_S = 30.0
RECIPE = """\
format: 1
suite: {suite}
packages: [hostname]
users: [{{name: db, uid: 900}}]
directories: [{{path: /run/tare, owner: db}}]
"""


@pytest.fixture
def image_store(tmp_path: Path) -> Iterator[ImageStore]:
    """Empty, with a ledger of its own."""
    layout = Layout(tmp_path / "home")
    made = ImageStore(layout, SqliteLedger(layout.ledger))
    yield made
    with made.lock():
        for each in made.all():
            remove(each, made, None)
    assert {Path(entry.ident).parent.name for entry in made.ledger.entries()} <= {"keys", "bases"}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE.format(suite="bookworm"))
    return path


def built(recipe: Path, image_store: ImageStore, *, rebuild: bool = False) -> Image:
    return prepare(
        str(recipe),
        host=LocalHost(),
        layout=image_store.layout,
        ledger=image_store.ledger,
        engine=None,
        rebuild=rebuild,
        hold=False,
    )


def test_a_recipe_that_cannot_be_built_is_one_sentence_and_leaves_nothing(
    image_store: ImageStore, tmp_path: Path
) -> None:
    if shutil.which("mmdebstrap") is None:
        pytest.fail("this test needs mmdebstrap: scripts/packages.sh test")
    (tmp_path / "none.yaml").write_text(RECIPE.format(suite="nosuchsuite"))
    before = set(Path("/tmp").glob("mmdebstrap.*"))
    with pytest.raises(EnvironmentLacks, match="nosuchsuite") as raised:
        built(tmp_path / "none.yaml", image_store)
    assert "\n" not in str(raised.value)
    assert image_store.ledger.entries() == ()
    assert list(image_store.layout.images.glob(".*")) == []
    assert set(Path("/tmp").glob("mmdebstrap.*")) == before
    assert str(image_store.layout.home) not in Path("/proc/self/mountinfo").read_text()


def test_a_builder_that_is_killed_leaves_nothing_after_the_next(image_store: ImageStore, recipe: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tare.images.prepare import prepare; "
        "from tare.sites.layout import Layout; from tare.sites.local import LocalHost; "
        "from tare.sites.sqlite_ledger import SqliteLedger; layout = Layout(Path(sys.argv[1])); "
        "prepare(sys.argv[2], host=LocalHost(), layout=layout, ledger=SqliteLedger(layout.ledger), engine=None)"
    )
    builder = subprocess.Popen([sys.executable, "-c", program, str(image_store.layout.home), str(recipe)])
    try:
        _wait(
            lambda: bool(list(image_store.layout.images.glob(".scratch-*/mmdebstrap.*/var/lib/dpkg/info/*.list"))),
            120,
        )
        assert _processes_of(image_store.layout.home)
    finally:
        os.kill(builder.pid, signal.SIGKILL)
        builder.wait(timeout=60)
    _wait(lambda: not _processes_of(image_store.layout.home), GONE_S)
    with image_store.lock():
        image_store.sweep()
    assert {path.name for path in image_store.layout.images.iterdir()} <= {"lock", "keys"}
    assert image_store.ledger.entries() == ()
    assert str(image_store.layout.home) not in Path("/proc/self/mountinfo").read_text()


def _wait(until: object, seconds: float) -> None:
    assert callable(until)
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.1)


def _processes_of(home: Path) -> list[str]:
    """Processes that name the directory on their command line, or work in it."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, place = (entry / "cmdline").read_bytes(), os.readlink(entry / "cwd")  # noqa: PTH115 - may be gone
        except OSError:
            continue
        if str(home).encode() in words or place.startswith(str(home)):
            left.append(f"{entry.name} {words!r}")
    return left


@pytest.mark.timeout(1800)
@pytest.mark.slow  # two builds and a half
def test_a_recipe_gives_the_same_image_twice_and_the_same_without_a_base(
    image_store: ImageStore, recipe: Path, tmp_path: Path
) -> None:
    first = built(recipe, image_store)
    (base,) = (image_store.layout.images / "bases").iterdir()
    made_at = base.stat().st_mtime_ns
    assert built(recipe, image_store, rebuild=True) == first
    assert base.stat().st_mtime_ns == made_at
    archive = Recipe().fetch(str(recipe), Workshop(LocalHost(), None), tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    unpack(archive.layers, root)
    assert image_digest(list_tree(root), archive.config) == first.digest


@pytest.mark.timeout(1800)
@pytest.mark.slow  # a build, and another base
def test_a_base_of_other_versions_and_a_damaged_one_are_made_again(
    image_store: ImageStore, recipe: Path, tmp_path: Path
) -> None:
    first = built(recipe, image_store)
    (base,) = (image_store.layout.images / "bases").iterdir()
    older = tmp_path / "older"
    older.mkdir()
    subprocess.run(["tar", "-xf", base, "-C", older], check=True, timeout=60)
    (older / "essential-in-base").write_text("base-files (12.0)\n")
    (release, *_) = (older / "var/lib/apt/lists").glob("*Release")
    release.unlink()  # apt keeps a changed one whose date is the mirror's
    subprocess.run(["tar", "-cf", base, "-C", older, "."], check=True, timeout=60)
    changed = base.stat().st_ino
    assert built(recipe, image_store, rebuild=True) == first
    assert base.stat().st_ino != changed
    base.write_bytes(base.read_bytes()[:100_000])
    assert built(recipe, image_store, rebuild=True) == first
