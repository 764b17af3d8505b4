"""A tree with one of everything goes through the engine unchanged; what it cannot have is told at once."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from docker.models.images import Image as EngineImage

from tare.errors import EnvironmentLacks, StudyError
from tare.images import Image, ImageConfig
from tare.images.digest import Entry, first_difference, image_digest, list_tree
from tare.images.engine_image import DIGEST_LABEL, engine_config, export_tree, id_of, import_tree, own_name
from tare.images.image_store import ImageStore
from tare.images.maintenance import remove, verify
from tare.images.oci.unpack import unpack
from tare.images.prepare import prepare
from tare.sites.engine import connect
from tare.sites.layout import Layout
from tare.sites.local import LocalHost, own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.apart]

CONFIG = ImageConfig(
    entrypoint=("/bin/sh", "-c"),
    command=("echo \"$PLAIN\" 'and' $$",),
    env=(
        ("PATH", "/bin"),
        ("PLAIN", "a b"),
        ("HOSTILE", "$PATH ${PATH} \"quoted\" 'single' back\\slash `tick` #no"),
        ("UMLAUT", "größer"),
        ("EMPTY", ""),
    ),
    user="7:8",
    workdir="/a $PATH b",
    data_dir="/data",
)
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture
def image_store(tmp_path: Path) -> ImageStore:
    layout = Layout(tmp_path / "home")
    return ImageStore(layout, SqliteLedger(layout.ledger))


@pytest.fixture
def prepared(image_store: ImageStore, engine: DockerClient) -> Iterator[Callable[..., Image]]:
    """Prepares images, and removes from the engine all that were; none is held."""

    def make(reference: str, *, rebuild: bool = False) -> Image:
        return prepare(
            reference,
            host=LocalHost(),
            layout=image_store.layout,
            ledger=image_store.ledger,
            engine=engine,
            rebuild=rebuild,
            hold=False,
        )

    yield make
    with image_store.lock():
        for each in image_store.all():
            remove(each, image_store, engine)
    assert image_store.ledger.entries() == ()
    assert {path.name for path in image_store.layout.images.glob("*")} <= {"keys", "lock"}


@pytest.fixture
def rootfs(tmp_path: Path) -> Path:
    """A tree with one of everything, and a shell."""
    root = tmp_path / "rootfs"
    for directory in ("bin", "etc", "proc", "sys", "dev", "data", "a $PATH b"):
        (root / directory).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None, "these tests need busybox: scripts/packages.sh test"
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in ("sh", "rm", "mkdir", "ln", "touch", "chmod", "find", "sleep"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "bin" / "same").hardlink_to(root / "bin" / "busybox")
    (root / "bin" / "able").write_bytes(b"#!")
    os.setxattr(root / "bin" / "able", "security.capability", CAPABILITY)
    (root / "bin" / "setuid").write_bytes(b"#!")
    (root / "bin" / "setuid").chmod(0o4755)
    (root / "etc" / "hosts").write_text("an image's own hosts\n")
    (root / "etc" / "link").symlink_to("/outside/../etc//hosts")
    os.mkfifo(root / "data" / "pipe")
    os.lchown(root / "etc" / "link", 11, 12)
    (root / "data").chmod(0o1770)
    os.chown(root / "data", 700, 701)
    for name in ("größe", "line\nbreak", os.fsdecode(b"latin-\xe9"), "x" * 200):
        (root / "data" / name).write_text(name if name.isprintable() else "x")
    (root / "data" / ("d" * 120)).mkdir()
    (root / "data" / ("d" * 120) / ("e" * 120)).touch()
    return root


def as_image(root: Path, reference: str, config: ImageConfig = CONFIG) -> Image:
    return Image(reference, image_digest(list_tree(root), config), str(root), None, config)


def test_what_is_imported_is_what_containers_get(engine: DockerClient, rootfs: Path, tmp_path: Path) -> None:
    image = as_image(rootfs, f"Tést/{uuid4().hex}")
    name = own_name(image, tmp_path)
    engine_id = import_tree(engine, image, tmp_path, name)
    try:
        assert import_tree(engine, image, tmp_path, name) == engine_id
        assert vars(engine_config(engine, engine_id)) == vars(CONFIG) | {"data_dir": None}
        (tmp_path / "again").mkdir()
        export_tree(engine, engine_id, tmp_path / "again", name=f"tare-test-{uuid4().hex[:8]}", labels=own())
        given = ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab", ".dockerenv")
        kept = [
            [entry for entry in list_tree(root) if entry.path not in given and not entry.path.startswith("dev/")]
            for root in (rootfs, tmp_path / "again")
        ]
        assert first_difference(*kept) is None
        files = [entry.path for entry in kept[0] if entry.kind != "directory"]
        changed = [[int((root / path).lstat().st_mtime) for path in files] for root in (rootfs, tmp_path / "again")]
        assert changed[0] == changed[1]
    finally:
        engine.images.remove(engine_id)
    assert id_of(engine, engine_id) is None


def test_images_that_differ_in_times_only_are_two(engine: DockerClient, rootfs: Path, tmp_path: Path) -> None:
    image, names = as_image(rootfs, f"times/{uuid4().hex}"), [f"tare/times-{uuid4().hex}:{n}" for n in range(2)]
    made = set[str]()
    try:
        for n, name in enumerate(names):
            os.utime(rootfs / "bin" / "able", (n, 1_500_000_000 + n))
            made.add(import_tree(engine, image, tmp_path, name))
        assert len(made) == len(names)
    finally:
        for engine_id in made:
            engine.images.remove(engine_id)


@pytest.mark.parametrize(
    "config",
    [
        ImageConfig(env=(("A", 'x"\nENTRYPOINT ["/bin/evil"]'),)),
        ImageConfig(user="db\nCMD evil"),
        ImageConfig(workdir="/a\rb"),
        ImageConfig(env=(("A B", "x"),)),
    ],
    ids=["variable", "user", "working directory", "name of a variable"],
)
def test_a_configuration_that_the_engine_would_take_otherwise_is_refused(
    engine: DockerClient, rootfs: Path, tmp_path: Path, config: ImageConfig
) -> None:
    image = as_image(rootfs, "hostile", config)
    with pytest.raises((StudyError, EnvironmentLacks), match=r"image hostile|engine"):
        import_tree(engine, image, tmp_path, own_name(image, tmp_path))
    assert engine.images.list(filters={"label": f"{DIGEST_LABEL}={image.digest}"}) == []


def own() -> dict[str, str]:
    return {LABEL: to_ident(own_process())}


def write_tar(root: Path, target: Path) -> Path:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(root, arcname=".")
    return target


def test_a_saved_tree_is_prepared_verified_and_removed(
    prepared: Callable[..., Image], image_store: ImageStore, engine: DockerClient, rootfs: Path, tmp_path: Path
) -> None:
    image = prepared(f"tar:{write_tar(rootfs, tmp_path / 'tree.tar')}")
    (stored,) = image_store.all()
    verified = verify(stored, image_store, engine)
    assert verified.engine_checked
    assert verified.good, verified
    assert prepared(f"tar:{tmp_path / 'tree.tar'}") == image
    with image_store.lock():
        remove(stored, image_store, engine)
    assert image.engine_id is not None
    assert id_of(engine, image.engine_id) is None
    assert verify_containers(engine) == []


def verify_containers(engine: DockerClient) -> list[str]:
    ours = f"{LABEL}={to_ident(own_process())}"
    wanted: dict[str, str | list[str] | bool] = {"name": "tare-verify-", "label": ours}
    return [str(each.name) for each in engine.containers.list(all=True, filters=wanted, ignore_removed=True)]


def test_another_image_under_the_same_digest_is_found_out(
    prepared: Callable[..., Image], image_store: ImageStore, engine: DockerClient, rootfs: Path, tmp_path: Path
) -> None:
    prepared(f"tar:{write_tar(rootfs, tmp_path / 'tree.tar')}")
    (rootfs / "bin" / "setuid").chmod(0o755)
    other = prepared(f"tar:{write_tar(rootfs, tmp_path / 'other.tar')}")
    first = next(each for each in image_store.all() if each.image.digest != other.digest)
    mistaken = type(first)(
        Image(**{**vars(first.image), "engine_id": other.engine_id}), first.size_bytes, first.made_at
    )
    verified = verify(mistaken, image_store, engine)
    assert verified.tree is None
    assert verified.engine == 'has "/bin/setuid" with mode 0755 instead of 4755'


@pytest.fixture
def layered(engine: DockerClient, rootfs: Path, tmp_path: Path) -> Iterator[EngineImage]:
    """An image of three layers: the second and third remove, replace and move what is below them."""
    (rootfs / "old" / "deep").mkdir(parents=True)
    (rootfs / "old" / "deep" / "file").touch()
    (rootfs / "was-directory").mkdir()
    (rootfs / "was-directory" / "file").touch()
    (rootfs / "was-file").touch()
    (rootfs / "way").symlink_to("old")
    name = f"tare-test-{uuid4().hex[:8]}"
    image = as_image(rootfs, name, ImageConfig())
    base = import_tree(engine, image, tmp_path, own_name(image, tmp_path))
    second = "rm -r /old; mkdir /old; touch /old/only; rm /was-file; mkdir /was-file; touch /was-file/x; rm /way"
    steps = (
        "rm /old/deep/file; rm -r /was-directory; touch /was-directory; mkdir /later; touch /later/a",
        f"{second}; mkdir /way; touch /way/y; rm /later/a; chmod 0700 /later; ln /was-directory /way/hard",
    )
    made = [base]
    try:
        for step in steps:
            container = engine.containers.run(
                made[-1],
                entrypoint=["/bin/sh", "-c"],
                command=[step],
                detach=True,
                network_mode="none",
                labels=own(),
            )
            try:
                assert container.wait(timeout=60)["StatusCode"] == 0
                made.append(str(container.commit(repository=name, tag=f"l{len(made)}").id))
            finally:
                container.remove(force=True)
        yield engine.images.get(made[-1])
    finally:
        for each in reversed(made):
            engine.images.remove(each, force=True)


def test_layers_with_deletions_become_what_a_container_sees(
    prepared: Callable[..., Image], engine: DockerClient, layered: EngineImage, tmp_path: Path
) -> None:
    image = prepared(f"docker://{layered.tags[0]}")
    container = engine.containers.create(str(layered.id), entrypoint=["-"], labels=own())
    try:
        with (tmp_path / "seen.tar").open("wb") as file:
            file.writelines(container.export())  # type: ignore[arg-type] # types-docker says str
    finally:
        container.remove(force=True)
    (tmp_path / "seen").mkdir()
    unpack([tmp_path / "seen.tar"], tmp_path / "seen")
    seen, ours = (own_entries(root) for root in (tmp_path / "seen", Path(image.rootfs)))
    assert first_difference(seen, ours) is None
    names = {entry.path for entry in ours if entry.path.split("/")[0] in ("old", "was-file", "way", "later")}
    assert names == {"old", "old/only", "was-file", "was-file/x", "way", "way/y", "way/hard", "later"}


def own_entries(root: Path) -> list[Entry]:
    """Without what the engine puts into every container, and leaves as empty files in committed layers."""
    given = ("etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab", ".dockerenv")
    return [entry for entry in list_tree(root) if entry.path not in given and not entry.path.startswith("dev/")]


def test_a_reference_that_cannot_be_pulled_is_one_sentence(
    prepared: Callable[..., Image], image_store: ImageStore
) -> None:
    # Port 1 of the loopback address, where nobody listens: no registry is asked.
    with pytest.raises(EnvironmentLacks, match=r"127\.0\.0\.1:1/none:1.*oci:PATH") as raised:
        prepared("docker://127.0.0.1:1/none:1")
    assert "\n" not in str(raised.value)
    assert image_store.ledger.entries() == ()


@pytest.mark.parametrize("reference", ["UPPER case", "a b", "", "a@sha256:1", "-x"])
def test_a_reference_that_is_none_is_one_sentence(prepared: Callable[..., Image], reference: str) -> None:
    with pytest.raises((EnvironmentLacks, StudyError)) as raised:
        prepared(f"docker://{reference}")
    assert "\n" not in str(raised.value)
