from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError, ImageNotFound
from tests.unit.images.oci.test_saved import saved

from tare.errors import EnvironmentLacks
from tare.images import Workshop, docker
from tare.images.docker import DockerImage
from tare.sites.fake import FakeHost

CANNOT = {"error": "toomanyrequests: slow down", "errorDetail": {}}


@dataclass
class Engine:
    """As much of docker's client as the source uses: what the engine has, what it is asked for."""

    tar: Path
    has: dict[str, str] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    timeout: int = 60
    broken: bool = False

    @property
    def api(self) -> Engine:
        return self

    @property
    def images(self) -> Engine:
        return self

    def get(self, reference: str) -> SimpleNamespace:
        if self.broken:
            raise APIError("server is shutting down")
        if reference not in self.has:
            raise ImageNotFound(reference)
        return SimpleNamespace(id=self.has[reference], save=lambda: iter([self.tar.read_bytes()]))

    def pull(self, name: str, *, tag: str, stream: bool, decode: bool) -> Iterator[dict[str, Any]]:
        self.asked.append(f"pull {name} {tag}")
        yield from self.progress
        self.has[f"{name}{'@' if tag.startswith('sha256:') else ':'}{tag}"] = "sha256:pulled"

    def remove(self, reference: str) -> None:
        self.asked.append(f"remove {reference}")
        if reference not in self.has:
            raise ImageNotFound(reference)
        del self.has[reference]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(saved(tmp_path / "docker.tar"))


def workshop(engine: Engine | None) -> Workshop:
    return Workshop(FakeHost(), cast("Any", engine))


def fetch(engine: Engine, reference: str, tmp_path: Path) -> int:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return len(DockerImage().fetch(reference, workshop(engine), scratch).layers)


def test_an_image_that_the_engine_has_is_not_pulled_and_stays(engine: Engine, tmp_path: Path) -> None:
    engine.has["mongo:7"] = "sha256:theirs"
    assert fetch(engine, "mongo:7", tmp_path) == 2
    assert engine.asked == []
    assert DockerImage().cache_key("mongo:7", workshop(engine)) == "sha256:theirs"


@pytest.mark.parametrize(
    ("reference", "pulled"),
    [
        ("mongo:7", "mongo 7"),
        ("host:5000/a/mongo:7", "host:5000/a/mongo 7"),
        ("mongo@sha256:abc", "mongo sha256:abc"),
    ],
)
def test_what_was_pulled_leaves_the_engine_again(
    engine: Engine, tmp_path: Path, reference: str, pulled: str
) -> None:
    before = DockerImage().cache_key(reference, workshop(engine))
    assert fetch(engine, reference, tmp_path) == 2
    assert engine.asked == [f"pull {pulled}", f"remove {reference}"]
    assert engine.has == {}
    assert DockerImage().cache_key(reference, workshop(engine)) == before


def test_a_pull_that_fails_tells_what_the_registry_said(engine: Engine, tmp_path: Path) -> None:
    engine.progress = [{"status": "Pulling"}, CANNOT]
    with pytest.raises(EnvironmentLacks, match="cannot be pulled: toomanyrequests: slow down"):
        fetch(engine, "mongo:7", tmp_path)


def test_a_pull_that_does_not_end_is_given_up(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.progress = [{"status": "Downloading"}] * 5
    monkeypatch.setattr(docker, "PULL_TIMEOUT_S", -1.0)
    with pytest.raises(EnvironmentLacks, match="takes longer"):
        fetch(engine, "mongo:7", tmp_path)
    assert engine.timeout == 60


def test_an_engine_in_trouble_is_told(engine: Engine) -> None:
    engine.broken = True
    with pytest.raises(EnvironmentLacks, match="is not available: server is shutting down"):
        DockerImage().cache_key("mongo:7", workshop(engine))


def test_without_an_engine_there_is_no_registry() -> None:
    with pytest.raises(EnvironmentLacks, match="none answers"):
        DockerImage().cache_key("mongo:7", workshop(None))
