"""Images in a real engine: imported, exported, saved, verified, kept from removal."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.errors import EnvironmentLacks
from tare.images import Image, ImageConfig
from tare.images.digest import image_digest, list_tree
from tare.images.engine_image import DIGEST_LABEL, GIVEN_BY_ENGINE
from tare.images.image_store import ImageStore
from tare.images.maintenance import remove, verify
from tare.images.oci.unpack import unpack
from tare.images.prepare import prepare
from tare.sites import Completed
from tare.sites.engine import connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.apart]

CACHED_S = 1.0
"""CPU time of a second call, which finds what the first one made; it may wait for another worker's lock."""
# What only quoting keeps as it is.
ODD = {
    "PATH": "/bin",
    "DOLLAR": "$PATH ${HOME}",
    "QUOTED": 'a "b" \\c\\',
    "UMLAUT": "ü",
    "EMPTY": "",
    "SPACE": " a  b ",
}


@pytest.fixture
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture
def image_store(tmp_path: Path, engine: DockerClient) -> Iterator[ImageStore]:
    """Empty, with a ledger of its own; what it gets is removed from the engine too."""
    layout = Layout(tmp_path / "home")
    made = ImageStore(layout, SqliteLedger(layout.ledger))
    yield made
    with made.lock():
        for each in made.all():
            remove(each, made, engine)
    assert not [entry for entry in made.ledger.entries() if "keys" not in entry.ident]


def ready(
    reference: str, image_store: ImageStore, engine: DockerClient | None, host: LocalHost | None = None
) -> Image:
    return prepare(
        reference,
        host=host or LocalHost(),
        layout=image_store.layout,
        ledger=image_store.ledger,
        engine=engine,
        hold=False,
    )


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A root file system of busybox alone, as a plain tar; its marker makes it this test's own."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.fail("these tests need busybox: scripts/packages.sh test")
    libraries = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False, timeout=60).stdout
    needed = [word for word in libraries.split() if word.startswith("/")]
    path = tmp_path / "busybox.tar"
    with tarfile.open(path, "w", dereference=True) as tar:
        for source, target in [(busybox, "bin/busybox"), *((each, each.lstrip("/")) for each in needed)]:
            tar.add(source, target)
        for name in ("sh", "rm", "env", "mkdir"):
            _link(tar, f"bin/{name}", "busybox")
        for name, content in {"marker": uuid4().hex, "etc/motd": "hello", "d/a": "1", "d/b": "2"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
    return path


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    tar.addfile(member)


class Idle(LocalHost):
    """Runs nothing: what is cached needs no program."""

    def run(self, *args: object, **kwargs: object) -> Completed:
        raise AssertionError(f"{args[0]!r} was run")


def test_a_shipped_recipe_is_whole_in_tree_and_engine_and_found_again(engine: DockerClient) -> None:
    layout = default_layout()
    cache = ImageStore(layout, SqliteLedger(layout.ledger))
    image = ready("sysbench", cache, engine)
    assert dict(image.packages)["sysbench"].startswith("1.0.20")
    assert (Path(image.rootfs) / "usr/share/sysbench/oltp_read_only.lua").is_file()
    check = verify(cache.resolve(image.digest)[0], cache, engine)
    assert check.engine_checked
    assert (check.tree, check.engine) == (None, None)
    began_s = time.process_time()
    assert ready("sysbench", cache, engine, Idle()) == image
    assert time.process_time() - began_s < CACHED_S


def test_an_image_lost_by_the_engine_is_imported_again(
    archive: Path, image_store: ImageStore, engine: DockerClient
) -> None:
    first = ready(f"tar:{archive}", image_store, engine)
    engine.images.remove(str(first.engine_id))
    again = ready(f"tar:{archive}", image_store, engine)
    assert again.digest == first.digest
    assert engine.images.get(str(again.engine_id)).labels[DIGEST_LABEL] == first.digest


def test_an_image_whose_index_was_lost_is_found_in_the_engine(
    archive: Path, image_store: ImageStore, engine: DockerClient
) -> None:
    first = ready(f"tar:{archive}", image_store, engine)
    shutil.rmtree(image_store.layout.images)
    assert ready(f"tar:{archive}", image_store, engine) == first


@pytest.mark.parametrize("spoil", ["content", "mode", "more", "less"])
def test_verify_tells_what_differs_in_the_tree(archive: Path, image_store: ImageStore, spoil: str) -> None:
    image = ready(f"tar:{archive}", image_store, None)
    motd = Path(image.rootfs) / "etc/motd"
    if spoil == "content":
        motd.write_text("hellO")
    elif spoil == "mode":
        motd.chmod(0o600)
    elif spoil == "more":
        motd.with_name("more").touch()
    else:
        motd.unlink()
    check = verify(image_store.resolve(image.digest)[0], image_store, None)
    assert check.tree is not None
    assert "/etc/mo" in check.tree


def test_the_engine_s_image_starts_with_the_configuration_as_it_stands(
    archive: Path, image_store: ImageStore, engine: DockerClient, tmp_path: Path
) -> None:
    source = engine.images.get(str(ready(f"tar:{archive}", image_store, engine).engine_id))
    container = engine.containers.create(source, command=["/bin/env"], environment=ODD, user="7", working_dir="/d")
    try:
        committed = container.commit(f"tare-test/{uuid4().hex}")
    finally:
        container.remove(force=True)
    try:
        image = ready(f"docker://{committed.tags[0]}", image_store, engine)
    finally:
        engine.images.remove(committed.tags[0])
    assert dict(image.config.env) == ODD
    assert (image.config.user, image.config.workdir, image.config.command) == ("7", "/d", ("/bin/env",))
    printed = engine.containers.run(str(image.engine_id), remove=True, network_mode="none")
    assert _variables(printed).items() >= ODD.items()
    assert verify(image_store.resolve(image.digest)[0], image_store, engine).good


def _variables(printed: bytes) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in printed.decode().splitlines())
    return {name: value for name, _, value in pairs}


@pytest.fixture
def layered(archive: Path, image_store: ImageStore, engine: DockerClient) -> Iterator[str]:
    """A committed image of three layers that remove, replace and empty what is below them; its tag."""
    below = str(ready(f"tar:{archive}", image_store, engine).engine_id)
    steps = [
        "rm /etc/motd; rm -r /d; mkdir /d; echo 3 > /d/c; chmod 4711 /d/c",
        "rm /d/c; rm /bin/env; echo x > /bin/env",
    ]
    tags = []
    for step in steps:
        container = engine.containers.create(below, command=["/bin/sh", "-c", step], network_mode="none")
        try:
            container.start()
            assert container.wait(timeout=60)["StatusCode"] == 0
            below = container.commit(f"tare-test/{uuid4().hex}").tags[0]
            tags.append(below)
        finally:
            container.remove(force=True)
    yield below
    for tag in reversed(tags):
        engine.images.remove(tag)


def test_layers_add_up_to_what_the_engine_itself_shows(
    layered: str, image_store: ImageStore, engine: DockerClient, tmp_path: Path
) -> None:
    saved, shown = tmp_path / "saved.tar", tmp_path / "shown"
    with saved.open("wb") as file:
        file.writelines(engine.images.get(layered).save())
    from_tar = ready(f"tar:{saved}", image_store, engine)
    from_engine = ready(f"docker://{layered}", image_store, engine)
    assert from_tar.digest == from_engine.digest
    root = Path(from_tar.rootfs)
    assert [path.name for path in (root / "d").iterdir()] == []
    assert not (root / "etc/motd").exists()
    assert (root / "bin/env").read_text() == "x\n"
    container = engine.containers.create(layered)
    try:
        with (tmp_path / "shown.tar").open("wb") as file:
            file.writelines(cast("Iterator[bytes]", container.export()))
    finally:
        container.remove(force=True)
    shown.mkdir()
    unpack([tmp_path / "shown.tar"], shown)
    assert _own_part(shown) == _own_part(root)


def _own_part(root: Path) -> str:
    """The digest of a tree without what an engine adds."""
    added = tuple(f"{name}/" for name in GIVEN_BY_ENGINE)
    kept = [entry for entry in list_tree(root) if not f"{entry.path}/".startswith(added)]
    return image_digest(kept, ImageConfig())


def test_an_image_that_a_container_uses_is_not_removed(
    archive: Path, image_store: ImageStore, engine: DockerClient
) -> None:
    image = ready(f"tar:{archive}", image_store, engine)
    container = engine.containers.create(str(image.engine_id), command=["/bin/env"])
    try:
        with image_store.lock(), pytest.raises(EnvironmentLacks, match="does not remove"):
            remove(image_store.resolve(image.digest)[0], image_store, engine)
        assert verify(image_store.resolve(image.digest)[0], image_store, engine).good
    finally:
        container.remove(force=True)
