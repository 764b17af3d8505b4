"""The study: a question with its factors, workload and protocol, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tare.deployments import NetworkKind

FORMAT = 1
"""Version of the study file; a file of a newer format is refused."""

Scalar = str | int | float | bool
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Names become parts of container, cgroup and directory names, so they are plain."""


class Strict(BaseModel):
    """Frozen, and no key that nobody reads."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Source(Strict):
    """The publication that a study replays."""

    title: str
    authors: str
    year: int
    url: str


class LimitsSpec(Strict):
    """Limits of one side. `cpus`: a CPU list such as "0-1"; `memory`: bytes, or with K, M, G (powers of 1024)."""

    cpus: str | None = Field(default=None, pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")
    cpu_quota: float | None = Field(default=None, gt=0)
    memory: str | None = Field(default=None, pattern=r"^[1-9]\d*[KMG]?$")
    nofile: int = Field(default=65536, gt=0)


class Placement(Strict):
    """Where one side of the benchmark runs."""

    image: str
    """`NAME` (a recipe), `docker://REF`, `oci:PATH` or `tar:PATH`."""
    deployment: str
    network: NetworkKind = NetworkKind.HOST
    limits: LimitsSpec = LimitsSpec()


class SutSpec(Placement):
    """The database and what the arm puts around it."""

    database: str
    settings: Mapping[str, Scalar] = Field(default_factory=dict)


class ProtocolSpec(Strict):
    """How runs are repeated and ordered. `name` is a key of `PROTOCOLS`."""

    name: str = "interleave"
    blocks: int = Field(default=5, gt=0, le=1000)
    retries: int = Field(default=1, ge=0)
    seed: int = Field(default=0, ge=0)


class ArmSettings(Strict):
    """Everything that one arm fixes, after its levels have been applied to the study's template.

    `workload` is the workload's own parameter model, validated and dumped; `workload_name` its key.
    """

    sut: SutSpec
    client: Placement
    workload_name: str
    workload: Mapping[str, Any]


class Published(Strict):
    """One published figure: of an arm (`levels`), absolute (`value`, `unit`) and relative to the baseline."""

    levels: Mapping[str, str]
    metric: Literal["throughput", "latency_mean", "latency_p50", "latency_p95", "latency_p99"]
    value: float | None = None
    unit: str | None = None
    relative: float | None = None
    """A fraction: -0.69 for -69 %. Where absent it is derived from `value` and the baseline's `value`."""
    where: str
    """Page, table or section of the source."""


class Arm(Strict):
    """One combination of levels. `name` is unique in the study."""

    name: str
    levels: Mapping[str, str]
    settings: ArmSettings


class Study(Strict):
    """A study at one scale: every arm resolved, every name known to a plug-in."""

    name: Name
    scale: str
    question: str
    source: Source | None
    arms: tuple[Arm, ...]
    baseline: str
    """Name of the baseline arm."""
    factors: Mapping[str, tuple[str, ...]]
    protocol: ProtocolSpec
    published: tuple[Published, ...]
    deviations: tuple[str, ...]
    """In what this study differs from the published one, sentence by sentence (the scale's own included)."""
    text: str
    """The study file as it was read, kept with the results."""
