"""Images of a registry, pulled by the engine, or images that the engine already has."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks
from tare.images import Archive, Workshop
from tare.images.engine_image import long_calls
from tare.images.oci.saved import open_saved

PULL_TIMEOUT_S = 3600.0
_NO_CALL_S = 120
"""An engine reports progress all the time while it pulls; after so long without a report it hangs."""


class DockerImage:
    """`docker://REF`. An image that the engine already has is not pulled again."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """The engine's image ID.

        For an image that must be pulled, its name: the first pull decides what it means.
        """
        return _image_id(workshop, reference) or hashlib.sha256(f"pulled {reference}".encode()).hexdigest()

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Pull the image if needed, save it, and read the saved tar.

        A pulled image is removed from the engine again.
        """
        engine, saved = _engine(workshop), scratch / "saved.tar"
        missing = _image_id(workshop, reference) is None
        with _explained(reference), _kept_in_engine(engine, reference, pull=missing), long_calls(engine):
            _save(engine, reference, saved)
        return open_saved(saved, workshop, scratch)


@contextmanager
def _kept_in_engine(engine: DockerClient, reference: str, *, pull: bool) -> Iterator[None]:
    """Keep the image in the engine inside the context."""
    if not pull:
        yield
        return
    try:
        _pull(engine, reference)
        yield
    finally:
        with suppress(ImageNotFound):  # the pull failed, and that is reported already
            engine.images.remove(reference)


def _pull(engine: DockerClient, reference: str) -> None:
    """Pull an image.

    Raises the engine's message; `docker`'s own method would only report that there is no image.
    """
    deadline = time.monotonic() + PULL_TIMEOUT_S
    name, tag = _name_and_tag(reference)
    before, engine.api.timeout = engine.api.timeout, _NO_CALL_S
    try:
        for line in engine.api.pull(name, tag=tag, stream=True, decode=True):
            if "error" in line:
                raise EnvironmentLacks(f"the image {reference} cannot be pulled: {line['error']}", hint=_HINT)
            if time.monotonic() > deadline:
                what = f"pulling the image {reference} takes longer than {PULL_TIMEOUT_S:g} s"
                raise EnvironmentLacks(what, hint=_HINT)
    finally:
        engine.api.timeout = before


def _save(engine: DockerClient, reference: str, target: Path) -> None:
    with target.open("wb") as file:
        for chunk in engine.images.get(reference).save():
            file.write(chunk)


_HINT = "bring it as oci:PATH or tar:PATH (`docker save`), or describe it as a recipe"


@contextmanager
def _explained(reference: str) -> Iterator[None]:
    try:
        yield
    except (DockerException, RequestException) as error:
        words = " ".join(str(getattr(error, "explanation", None) or error).split())
        raise EnvironmentLacks(f"the image {reference} is not available: {words}", hint=_HINT) from error


def _image_id(workshop: Workshop, reference: str) -> str | None:
    with _explained(reference):
        try:
            return str(_engine(workshop).images.get(reference).id)
        except ImageNotFound:
            return None


def _name_and_tag(reference: str) -> tuple[str, str]:
    """Split a reference. Without a tag it means `latest`; a colon may also belong to a registry's port."""
    if "@" in reference:
        name, _, digest = reference.partition("@")
        return name, digest
    name, colon, tag = reference.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (reference, "latest")


def _engine(workshop: Workshop) -> DockerClient:
    if workshop.engine is None:
        raise EnvironmentLacks(
            "an image of a registry needs a container engine, and none answers",
            hint="start Docker, or bring the image as oci:PATH or tar:PATH",
        )
    return workshop.engine
