"""Images from a registry, pulled by the engine."""

from __future__ import annotations

from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException

from tare.errors import EnvironmentLacks
from tare.images import Archive, Workshop
from tare.images.engine_image import long_calls
from tare.images.saved import open_saved


class RegistryImage:
    """`docker://REF`. An image that the engine has already is taken as it is, not pulled again."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """The engine's image id; `None` where the engine does not have the image yet."""
        try:
            return str(_engine(workshop).images.get(reference).id)
        except ImageNotFound:
            return None
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(f"the engine cannot be asked for {reference}: {error}") from error

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Pull where it is missing, save, and read what was saved. Each read has the client's time limit."""
        engine, saved = _engine(workshop), scratch / "saved.tar"
        try:
            if self.cache_key(reference, workshop) is None:
                name, tag = _name_and_tag(reference)
                engine.images.pull(name, tag=tag)
            with saved.open("wb") as file, long_calls(engine):
                for chunk in engine.images.get(reference).save():
                    file.write(chunk)
        except (DockerException, RequestException) as error:
            raise EnvironmentLacks(
                f"the image {reference} cannot be had: {' '.join(str(error).split())}",
                hint="bring it as oci:PATH or tar:PATH (`docker save`), or describe it as a recipe",
            ) from error
        return open_saved(saved, workshop, scratch)


def _name_and_tag(reference: str) -> tuple[str, str]:
    """A reference without a tag means `latest`; a colon may also belong to a registry's port."""
    name, colon, tag = reference.rpartition(":")
    if "@" in reference:
        name, _, tag = reference.partition("@")
        return name, tag
    return (name, tag) if colon and "/" not in tag else (reference, "latest")


def _engine(workshop: Workshop) -> DockerClient:
    if workshop.engine is None:
        raise EnvironmentLacks(
            "an image of a registry needs a container engine, and none answers",
            hint="start Docker, or bring the image as oci:PATH or tar:PATH",
        )
    return workshop.engine
