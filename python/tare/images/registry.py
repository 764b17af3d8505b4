"""Every image source by the scheme of its references."""

from __future__ import annotations

from collections.abc import Mapping

from tare.images import ImageSource
from tare.images.docker import DockerImage
from tare.images.fake import FakeImages
from tare.images.oci.layout import OciLayout
from tare.images.oci.saved import SavedTar
from tare.images.recipe.recipe import Recipe

IMAGE_SOURCES: Mapping[str, ImageSource] = {
    "recipe": Recipe(),
    "docker": DockerImage(),
    "oci": OciLayout(),
    "tar": SavedTar(),
    "fake": FakeImages(),
}
"""Scheme → source: `docker://REF`, `oci:PATH`, `tar:PATH`; a bare name is a recipe."""


def split_reference(reference: str) -> tuple[str, str]:
    """Split a reference: `oci:a/b` → ("oci", "a/b"), `mariadb` → ("recipe", "mariadb")."""
    scheme, colon, rest = reference.partition(":")
    if not colon or scheme not in IMAGE_SOURCES:
        return "recipe", reference
    return scheme, rest.removeprefix("//") if scheme == "docker" else rest
