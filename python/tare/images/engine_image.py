"""The engine's image of a root file system: one layer, made from the tree that bare tasks run from."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks, StoreError, StudyError
from tare.images import Image, ImageConfig
from tare.images.digest import Listed, parse_listing
from tare.images.oci.layout import settings_of
from tare.images.oci.model import Settings
from tare.images.oci.unpack import unpack
from tare.images.owners import Known
from tare.sites.marks import LABEL

DIGEST_LABEL, TIMES_LABEL = "org.tare-bench.digest", "org.tare-bench.times"
GIVEN_BY_ENGINE = (
    ".dockerenv", "dev", "proc", "sys", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab",
    "run/.containerenv", "run/secrets",
)  # fmt: skip
"""Paths that Docker and Podman add to every container, and therefore to an export."""
_MARK = 8
"""Number of digits that distinguish homes."""
LONG_CALL_S = 900
"""Time limit between two bytes of an answer: an engine works long before it answers when it saves or imports
gigabytes."""


def own_name(image: Image, home: Path) -> str:
    """Name under which one TARE_HOME has the image; an engine keeps an image as long as it has a name.

    Homes that share an engine share its images too; removing an image first removes only the home's own name.
    """
    mark = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:_MARK]
    return f"tare/{_repository_name(image.reference)}:{image.digest[:12]}-{mark}"


def id_of(engine: DockerClient, name: str) -> str | None:
    """The engine's ID of the image with that name or ID; `None` if there is none."""
    try:
        return str(engine.images.get(name).id)
    except ImageNotFound:
        return None
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine does not list its images: {error}") from error


@contextmanager
def long_calls(engine: DockerClient) -> Iterator[None]:
    """Raise the engine's time limit for calls inside the context."""
    before, engine.api.timeout = engine.api.timeout, LONG_CALL_S
    try:
        yield
    finally:
        engine.api.timeout = before


def import_tree(engine: DockerClient, image: Image, scratch: Path, name: str) -> str:
    """Import the tree under `name` and return the engine's ID of the image.

    If any home imported this tree before, the image is found by its labels and only gets the name.
    """
    _refuse_control_characters(image)
    try:
        marks = {DIGEST_LABEL: image.digest, TIMES_LABEL: _times(Path(image.rootfs))}
        if (known := _tag_known(engine, marks, name)) is not None:
            return known
        archive = scratch / "flat.tar"
        pack(Path(image.rootfs), archive, listing_of(image))
        with archive.open("rb") as stream, long_calls(engine):
            answer = engine.api.import_image_from_stream(
                _chunks(stream),
                repository=name.rpartition(":")[0],
                tag=name.rpartition(":")[2],
                changes=list(_changes(image.config, marks)),
            )
        _must_have_worked(answer, image.reference)
        made = _id_under(engine, answer, name)
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentLacks(
            f"the image {image.reference} cannot be imported into the engine: {error}",
            hint="see `tare doctor` and the engine's free disk space",
        ) from error
    if made is None:
        raise EnvironmentLacks(f"the engine did not report the result for the image {image.reference}")
    if differs := config_difference(image.config, engine_config(engine, made)):
        remove_image(engine, name)
        raise EnvironmentLacks(
            f"the engine changes the configuration of the image {image.reference}: its own {differs}",
            hint="change that setting of the image, or run it bare",
        )
    return made


def engine_config(engine: DockerClient, engine_id: str) -> ImageConfig:
    """The configuration as the engine understood it; it never knows a data directory, see `import_tree`."""
    try:
        return settings_of(Settings.model_validate(engine.images.get(engine_id).attrs["Config"]))
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine does not show the image {engine_id[:19]}: {error}") from error


def config_difference(wanted: ImageConfig, actual: ImageConfig) -> str | None:
    """The first difference, in words that follow `the image`.

    The data directory, which only tare uses, is left out.
    """
    before, after = _comparable(wanted), _comparable(actual)
    for key, value in before.items():
        if value != after[key]:
            return f"has the {key} {after[key]!r} in place of {value!r}"
    return None


def _comparable(config: ImageConfig) -> dict[str, object]:
    """Normalise as engines do: they tidy a path and keep the last of two values of one variable."""
    tidied = {"env": dict(config.env), "workdir": posixpath.normpath(config.workdir)}
    return {**vars(config), **tidied, "data_dir": None}


def remove_image(engine: DockerClient, name: str) -> None:
    """Remove the name from the engine, and the image with its last name; it may be gone already."""
    try:
        engine.images.remove(name, force=False)
    except ImageNotFound:
        return
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine does not remove the image {name}: {error}") from error


def export_tree(
    engine: DockerClient, engine_id: str, root: Path, *, name: str, labels: Mapping[str, str]
) -> Known | None:
    """Unpack what a container of this image would see into `root`; the container is never started.

    Returns the result of `unpack`: owners that are not on disk.
    """
    archive = root.with_name("export.tar")
    try:
        container = engine.containers.create(engine_id, command=["-"], name=name, labels=dict(labels))
        try:
            with archive.open("wb") as file, long_calls(engine):
                for chunk in container.export():
                    file.write(cast("bytes", chunk))  # types-docker says str
        finally:
            container.remove(v=True, force=True)
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine cannot export the image {engine_id[:19]}: {error}") from error
    return unpack([archive], root)


def listing_of(image: Image) -> Known | None:
    """Owners of a stored image's files if they are not on disk; `None` if they are."""
    if not image.listed:
        return None
    path = Path(image.rootfs).with_name("tree.jsonl")
    try:
        return Listed(parse_listing(path.read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path} cannot be read: {error}", hint="`tare images build --rebuild`") from error


def pack(root: Path, target: Path, known: Known | None = None) -> None:
    """Pack a sorted tar of the tree, with numeric owners and capabilities, and times in seconds.

    `known`: attributes of a tree whose owners are not on disk.
    """

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        return _normalised(member, root, known)

    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                tar.add(path, arcname=str(path.relative_to(root)), recursive=False, filter=plain)


def _times(root: Path) -> str:
    """sha256 (hex) over the change times of all paths, in seconds, which the image's digest leaves out."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        total.update(b"%s\0%d\0" % (os.fsencode(path.relative_to(root)), int(path.lstat().st_mtime)))
    return total.hexdigest()


def _normalised(member: tarfile.TarInfo, root: Path, known: Known | None) -> tarfile.TarInfo:
    member.uname = member.gname = ""
    member.mtime = int(member.mtime)
    has = None if known is None else known.of(member.name, (root / member.name).lstat())
    if has is not None:
        member.uid, member.gid = has.uid, has.gid
        member.mode = member.mode if member.issym() else has.mode
    value = (
        (_capability(root / member.name) if has is None else bytes.fromhex(has.capability))
        if member.isreg()
        else b""
    )
    if value:
        member.pax_headers = {"SCHILY.xattr.security.capability": value.decode("utf-8", "surrogateescape")}
    return member


def _capability(path: Path) -> bytes:
    try:
        return os.getxattr(path, "security.capability", follow_symlinks=False)
    except OSError:
        return b""


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """A generator, which requests sends in chunks; a file would clash with docker-py's own chunked header."""
    while block := stream.read(1 << 20):
        yield block


def _refuse_control_characters(image: Image) -> None:
    """Refuse control characters: a line break would begin another instruction."""
    config = image.config
    words = (config.user, config.workdir, *(word for pair in config.env for word in pair))
    if broken := next((word for word in words if not word.isprintable()), None):
        raise StudyError(
            f"the image {image.reference} has a setting with a line break or control character: {broken!r}",
            hint="no engine can import it; change the image",
        )


def _changes(config: ImageConfig, marks: Mapping[str, str]) -> Iterator[str]:
    """Dockerfile instructions that an import accepts; Podman takes one label a line.

    No VOLUME for the data directory: a deployment mounts its own, and an anonymous volume would be left behind.
    """
    for name, value in {LABEL: "image", **marks}.items():
        yield f"LABEL {name}={value}"
    if config.entrypoint:
        yield f"ENTRYPOINT {json.dumps(list(config.entrypoint))}"
    if config.command:
        yield f"CMD {json.dumps(list(config.command))}"
    for name, value in config.env:
        yield f"ENV {name}={_quoted(value)}"
    if config.user:
        yield f"USER {config.user}"
    yield f"WORKDIR {_quoted(config.workdir, mark='')}"


def _quoted(value: str, mark: str = '"') -> str:
    """Quote `value` so that a Dockerfile parser takes it literally, variables included."""
    escaped = "".join(f"\\{letter}" if letter in '\\"$' else letter for letter in value)
    return f"{mark}{escaped}{mark}"


def _tag_known(engine: DockerClient, marks: Mapping[str, str], name: str) -> str | None:
    """Give the name to an image with these labels; `None` if the engine has none."""
    repository, _, tag = name.rpartition(":")
    for match in engine.images.list(filters={"label": [f"{label}={value}" for label, value in marks.items()]}):
        with suppress(NotFound):  # its last name was removed meanwhile
            match.tag(repository, tag)
            return str(match.id)
    return None


def _id_under(engine: DockerClient, answer: str, name: str) -> str | None:
    """ID of the imported image under `name`. Podman 4 ignores the tag of an import and uses `latest`."""
    if (made := id_of(engine, name)) is not None:
        return made
    statuses = [json.loads(line).get("status", "") for line in answer.splitlines() if line.strip()]
    repository, _, tag = name.rpartition(":")
    for engine_id in (word for word in statuses if word.startswith("sha256:")):
        image = engine.images.get(engine_id)
        image.tag(repository, tag)
        engine.images.remove(f"{repository}:latest", noprune=True)
        return str(image.id)
    return None


def _must_have_worked(answer: str, reference: str) -> None:
    for line in answer.splitlines():
        tree = json.loads(line) if line.strip() else {}
        if "error" in tree:
            raise EnvironmentLacks(f"the engine refuses the image {reference}: {tree['error']}")


def _repository_name(reference: str) -> str:
    """A valid repository name: lower case, with only the characters that a reference may hold."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in reference.lower())
    return name[-60:].strip("-") or "image"
