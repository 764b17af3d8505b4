"""Names of an engine's images, whoever's else come and go meanwhile."""

from __future__ import annotations

from docker import DockerClient


def image_tags(engine: DockerClient) -> list[str]:
    """All of them, by one request. `images.list` would ask for each image, and fail on one that has just gone."""
    return [tag for image in engine.api.images() for tag in image["RepoTags"] or ()]
