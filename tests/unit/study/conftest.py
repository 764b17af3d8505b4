"""A registry of invented plug-ins, and a study that is right, to be made wrong one change at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest
from pydantic import Field, model_validator

from tare.errors import StudyError
from tare.study.model import Scalar
from tare.study.registry import Registry
from tare.workloads import Parameters


class LoadParameters(Parameters):
    """Parameters of an invented workload."""

    script: Literal["read_only", "read_write"] = "read_only"
    tables: int = Field(default=1, gt=0)
    threads: int = Field(default=1, gt=0)
    rate: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_window_at_least(self) -> LoadParameters:
        if self.window_s > self.measure_s:
            raise ValueError("a window is longer than the measure phase")
        return self


def no_sockets(settings: Mapping[str, Scalar]) -> None:
    """What the invented databases think of settings."""
    if "socket" in settings:
        raise StudyError("socket is not for studies", hint="remove it")


REGISTRY = Registry(
    databases={"mariadb": no_sockets, "postgres": no_sockets},
    workloads={"load": LoadParameters},
    deployments={"bare": False, "container": True},
    protocols=frozenset({"interleave"}),
    recipes=frozenset({"mariadb"}),
)

STUDY = """\
format: 1
name: paths
question: What does a network path cost?
source: {title: A, authors: B, year: 2016, url: "https://example.org/"}
sut:
  image: mariadb
  database: mariadb
  deployment: container
  network: host
  limits: {cpus: "0", memory: 512M}
  settings: {innodb_flush_method: O_DIRECT}
client:
  image: mariadb
  deployment: bare
workload:
  name: load
  tables: 8
  threads: 16
  measure_s: 1800
protocol: {name: interleave, blocks: 5, retries: 1, seed: 7}
factors:
  path:
    levels:
      bare: {sut.deployment: bare}
      host: {}
      bridge: {sut.network: bridge}
      published: {sut.network: published-loopback}
  load:
    sets: workload.threads
    levels: [1, 16]
exclude:
  - {path: published, load: 1}
baseline: {path: bare, load: 16}
scales:
  full: {}
  demo:
    set:
      workload.measure_s: 4
      protocol.blocks: 4
    deviations: [It is small.]
published:
  - {levels: {path: bare, load: 16}, metric: throughput, value: 7100, unit: tps, where: text}
  - {levels: {path: published, load: 16}, metric: throughput, value: 2200, unit: tps, where: text}
deviations: [It is another machine.]
"""


@pytest.fixture
def registry() -> Registry:
    """The invented plug-ins."""
    return REGISTRY


@pytest.fixture
def text() -> str:
    """The study that is right."""
    return STUDY
