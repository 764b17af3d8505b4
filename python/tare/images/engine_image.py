"""The engine's image of a root file system: one layer, made from the very tree that bare tasks run from."""

from __future__ import annotations

import json
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks
from tare.images import Image, ImageConfig
from tare.images.unpack import unpack
from tare.sites.engine import LABEL

DIGEST_LABEL = "org.tare-bench.digest"
_GIVEN_BY_ENGINE = (".dockerenv", "dev", "proc", "sys", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab")
"""What an engine adds to every container, and so to an export."""


def has_image(engine: DockerClient, engine_id: str) -> bool:
    """Whether the engine still has the image."""
    try:
        engine.images.get(engine_id)
    except ImageNotFound:
        return False
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine cannot be asked for its images: {error}") from error
    return True


def import_tree(engine: DockerClient, image: Image, scratch: Path) -> str:
    """Import the tree and return the engine's id of the image; an import made before is found by its label."""
    try:
        for known in engine.images.list(filters={"label": f"{DIGEST_LABEL}={image.digest}"}):
            return str(known.id)
        archive = scratch / "flat.tar"
        pack(Path(image.rootfs), archive)
        with archive.open("rb") as stream:
            answer = engine.api.import_image_from_stream(
                _chunks(stream),
                repository=f"tare/{_tidy(image.reference)}",
                tag=image.digest[:12],
                changes=list(_changes(image.config, image.digest)),
            )
        return _imported_id(answer, image.reference)
    except (DockerException, RequestException, OSError) as error:
        raise EnvironmentLacks(
            f"the image {image.reference} cannot be imported into the engine: {error}",
            hint="see `tare doctor` and the engine's free disk space",
        ) from error


def remove_image(engine: DockerClient, engine_id: str) -> None:
    """Remove it from the engine; an image that is gone already is no error."""
    try:
        engine.images.remove(engine_id, force=False)
    except ImageNotFound:
        return
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine does not remove the image {engine_id[:19]}: {error}") from error


def export_tree(engine: DockerClient, engine_id: str, root: Path) -> None:
    """Unpack what the engine would give a container of this image into `root`."""
    try:
        container = engine.containers.create(engine_id, command=["-"], labels={LABEL: "verify"})
        try:
            archive = root.with_name("export.tar")
            with archive.open("wb") as file:
                for chunk in container.export():
                    file.write(cast("bytes", chunk))  # types-docker says str
            unpack([archive], root)
        finally:
            container.remove(force=True)
    except (DockerException, RequestException) as error:
        raise EnvironmentLacks(f"the engine cannot export the image {engine_id[:19]}: {error}") from error


def pack(root: Path, target: Path) -> None:
    """A tar of the tree, sorted, with numeric owners and capabilities, times left out of it."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                tar.add(
                    path, arcname=str(path.relative_to(root)), recursive=False, filter=lambda m: _plain(m, root)
                )


def _plain(member: tarfile.TarInfo, root: Path) -> tarfile.TarInfo:
    member.uname = member.gname = ""
    member.mtime = 0
    if member.isreg():
        try:
            value = os.getxattr(root / member.name, "security.capability", follow_symlinks=False)
        except OSError:
            return member
        member.pax_headers = {"SCHILY.xattr.security.capability": value.decode("utf-8", "surrogateescape")}
    return member


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """A generator, which requests sends in chunks; docker-py's own chunked header spoils a file's."""
    while block := stream.read(1 << 20):
        yield block


def _changes(config: ImageConfig, digest: str) -> Iterator[str]:
    """Dockerfile instructions that `docker import` takes, in JSON form where there is one."""
    yield f"LABEL {LABEL}=image {DIGEST_LABEL}={digest}"
    if config.entrypoint:
        yield f"ENTRYPOINT {json.dumps(list(config.entrypoint))}"
    if config.command:
        yield f"CMD {json.dumps(list(config.command))}"
    for name, value in config.env:
        yield f"ENV {name}={json.dumps(value)}"
    if config.user:
        yield f"USER {config.user}"
    yield f"WORKDIR {config.workdir}"


def _imported_id(answer: str, reference: str) -> str:
    for line in answer.splitlines():
        tree = json.loads(line) if line.strip() else {}
        if "error" in tree:
            raise EnvironmentLacks(f"the engine refuses the image {reference}: {tree['error']}")
        if str(tree.get("status", "")).startswith("sha256:"):
            return str(tree["status"])
    raise EnvironmentLacks(f"the engine did not say what became of the image {reference}")


def _tidy(reference: str) -> str:
    """A repository name: lower case, and only what a reference may hold."""
    name = "".join(letter if letter.isalnum() else "-" for letter in reference.lower()).strip("-")
    return name[-60:].strip("-") or "image"
