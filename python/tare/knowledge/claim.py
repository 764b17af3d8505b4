"""A claim: one effect of one way to deploy a database, where it was found, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from tare.errors import StudyError
from tare.study.catalogue import TRAPS, claims_folder
from tare.study.model import Name
from tare.study.reading.document import Sort, read
from tare.study.reading.file import Text
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean
from tare.study.values import Strict

_CLAIM = Sort(
    "a claim", "`tare knowledge show` prints claims to start from", "make it a readable file, or remove it"
)
FORMAT = 1
ROUNDING = 0.0006
"""By how much a log ratio may differ from what the printed figures give: they have four digits at best."""
DeploymentName = Literal["bare", "container", "containerd", "vm", "vm-container", "pod"]


class ClaimModel(Strict):
    """Frozen and strict, with the docstrings of its keys in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Database(ClaimModel):
    """What was measured; for a program without a database, that program."""

    name: Name
    version: Text | None = None


class Load(ClaimModel):
    """What was asked of it."""

    workload: Text
    """Generator and workload: `YCSB A`, `sysbench oltp_read_only`."""
    operation: Text | None = None
    """Where one kind of operation was measured apart: `read`, `update`, `SET`."""
    threads: int | None = Field(default=None, gt=0)
    """Connections or threads of the client."""
    level: Literal["light", "medium", "full"] | None = None
    """Load beside what the system can do, where the source states it: `full` is as much as it can."""
    bound: Literal["cpu", "memory", "disk", "network"] | None = None
    """What limits it, as the source tells."""


class Setup(ClaimModel):
    """One way to deploy. `null`: the source does not tell."""

    deployment: DeploymentName
    """Where the database runs."""
    client: DeploymentName | None = None
    """Where the load generator runs."""
    network: Name | None = None
    """The path from client to database, by tare's words where there is one: docs/reference/knowledge.md."""
    storage: Name | None = None
    """Where the data are: `host`, `layer`, `bind`, `volume`, `tmpfs`, `block`, `nfs`, `claim`; `none`: no data."""
    engine: Name | None = None
    """`docker`, `podman`, …; `none` without containers."""
    engine_version: Text | None = None
    runtime: Name | None = None
    """The OCI runtime: `runc`, `runsc`, …; `none` without containers.

    Docker before 1.11 counts as `runc`: it used libcontainer, the library that runc is built from.
    """


class Context(ClaimModel):
    """Where an effect was found: the arm against the baseline, under this load, on this machine."""

    database: Database
    load: Load
    arm: Setup
    baseline: Setup
    machine: Text | None = None
    client_host: Literal["same", "other"] | None = None
    """Whether the load generator ran on the database's host."""


class Figures(ClaimModel):
    """The figures as the source prints them, from which the log ratio follows.

    `relative`: a fraction, 0.0142 for 1.42 %. Or `value` and `baseline`, both in `unit`.
    """

    relative: float | None = Field(default=None, gt=-1)
    value: float | None = Field(default=None, gt=0)
    baseline: float | None = Field(default=None, gt=0)
    unit: Text | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Figures:
        pair = (self.value is not None, self.baseline is not None, self.unit is not None)
        if self.relative is None and not all(pair):
            raise ValueError("needs `relative`, or `value` with `baseline` and `unit`")
        if self.relative is not None and any(pair):
            raise ValueError("has both `relative` and a pair of values; give only what the source prints")
        return self

    @property
    def log_ratio(self) -> float:
        """ln(arm / baseline)."""
        if self.relative is not None:
            return math.log1p(self.relative)
        if self.value is None or self.baseline is None:
            raise ValueError("figures without a value")  # refused when they were read
        return math.log(self.value / self.baseline)


class Measured(ClaimModel):
    """A figure. `log_ratio`: ln(arm / baseline) of the metric, so that throughput below zero is a loss."""

    kind: Literal["measured"]
    metric: Name
    """As tare calls it: `throughput`, `latency_mean`, `read_latency_mean`, …"""
    log_ratio: float
    se: float | None = Field(default=None, gt=0)
    """Standard error of the log ratio."""
    n: int | None = Field(default=None, gt=0)
    """Independent units (pairs of runs) behind the standard error."""
    se_from: Text | None = None
    """Where the standard error comes from, if the source does not print it."""
    printed: Figures

    @model_validator(mode="after")
    def _consistent(self) -> Measured:
        if abs(self.log_ratio - self.printed.log_ratio) > ROUNDING:
            raise ValueError(
                f"log_ratio {self.log_ratio:g} is not what `printed` gives: {self.printed.log_ratio:.4f}"
            )
        if self.se is not None and self.n is None:
            raise ValueError("`se` needs `n`, the number of independent units behind it")
        return self


class Between(ClaimModel):
    """A range, as log ratios; one end may be open."""

    kind: Literal["range"]
    metric: Name
    low: float | None = None
    high: float | None = None
    absolute: bool = False
    """The source gives the size of the effect without its sign."""
    printed: Text
    """The range in the source's own figures."""

    @model_validator(mode="after")
    def _in_order(self) -> Between:
        if self.low is None and self.high is None:
            raise ValueError("needs `low`, `high` or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError("`low` is above `high`")
        return self


class Qualitative(ClaimModel):
    """What a source says without a figure."""

    kind: Literal["qualitative"]
    metric: Name | None = None
    bears_on: tuple[
        Literal["ranking", "production", "mixing", "configurations", "repetitions", "overhead"], ...
    ] = Field(min_length=1)
    """Purposes of a benchmark that it says something about."""


Effect = Annotated[
    Annotated[Measured, Tag("measured")]
    | Annotated[Between, Tag("range")]
    | Annotated[Qualitative, Tag("qualitative")],
    Discriminator("kind"),
]


class How(ClaimModel):
    """How it was measured. `null`: the source does not tell."""

    statistic: Literal["mean", "median", "single", "range", "words"]
    """What the figure is of the repetitions: a median or a single run has no interval."""
    parity: Literal["known", "unknown", "broken"]
    """Whether bits, settings and limits were the same on both sides; `broken`: they were not."""
    repetitions: int | None = Field(default=None, gt=0)
    order: Text | None = None
    """In what order runs were made."""
    summary_of: Name | None = None
    """The group of claims that this one is an average of; it is not counted beside them."""


Key = Annotated[str, Field(pattern=r"^[0-9a-f]{16}(-[0-9a-z-]+)?$")]


class Evidence(ClaimModel):
    """What a finding of one's own can be judged by."""

    machine: Key
    """Key of the hardware, as `tare calibrate` and `tare weigh` have it."""
    versions: Key
    """Key of kernel and engine."""
    kernel: Text | None = None
    engine_version: Text | None = None
    tare: Text
    """Version that wrote the finding."""
    images: tuple[Text, ...] = ()
    """Digests of the images of arm and baseline."""
    seed: int = Field(ge=0)
    """Seed of the plan's order."""
    runs: int = Field(gt=0)
    """Good runs of the study."""
    failed: int = Field(ge=0)
    """Runs that have no good attempt."""
    spread: float = Field(gt=0)
    """Standard deviation of the log ratio from block to block."""
    calibrated_spread: float | None = Field(default=None, gt=0)
    """The same of this machine when nothing differs, as calibrated, of throughput; `null`: not known."""
    control: float | None = None
    """Log ratio of a second instance of the baseline in the same metric; `null`: the study has none."""
    control_low: float | None = None
    control_high: float | None = None
    alarms: tuple[Text, ...] = ()
    """Rules of validity that the study breaks: docs/concepts/validity.md."""


class Source(ClaimModel):
    """Where the claim can be looked up. `null`: the source does not tell its authors or its year."""

    title: Text
    authors: Text | None = None
    year: int | None = Field(default=None, gt=1900)
    url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    doi: Annotated[str, Field(pattern=r"^10\.\d{4,9}/\S+$")] | None = None
    store: Text | None = None
    """For own findings: the digest of the plan in whose store the runs are."""
    where: Text
    """Page, table, section or file."""
    read: Literal["whole", "part", "abstract", "notes"]
    """What of it was read for the claim; `notes`: the project's own notes on the source."""
    weak: bool = False
    """The claim is shown and weighs nothing: `weak_because` tells why."""
    weak_because: Text | None = None

    @model_validator(mode="after")
    def _can_be_found(self) -> Source:
        if self.url is None and self.doi is None and self.store is None:
            raise ValueError("a claim needs a source: `url`, `doi` or `store`")
        if self.weak != (self.weak_because is not None):
            raise ValueError("a weak source needs `weak: true` and the reason in `weak_because`")
        return self


Chosen = Mapping[str, Name | tuple[Name, ...]]
"""Factor → a level, or several."""


class Replay(ClaimModel):
    """The arms of a study that replay this figure: the claim is comparable with them, whatever else differs."""

    study: Name | tuple[Name, ...]
    """Name of the study, or of several."""
    levels: Chosen = Field(min_length=1)
    """Levels of the arms; a factor that is left out may have any level."""
    baseline: Chosen = Field(default_factory=dict)
    """Levels of the baseline that the source compares with; empty: the study's own."""

    def of(self, study: str, levels: Mapping[str, str]) -> bool:
        """Whether the arm of a study with these levels replays it."""
        return study in _listed(self.study) and _among(self.levels, levels)

    def against(self, levels: Mapping[str, str]) -> bool:
        """Whether the baseline with these levels is the one that the source compares with."""
        return _among(self.baseline, levels)


def _among(chosen: Chosen, levels: Mapping[str, str]) -> bool:
    return all(levels.get(factor) in _listed(given) for factor, given in chosen.items())


def _listed(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


class Claim(ClaimModel):
    """One claim. Its id is the name of its file; `study` groups those of one publication."""

    format: Literal[1]
    study: Name
    says: Text
    """The claim in one sentence."""
    context: Context | None = None
    """Required of everything but a qualitative claim, which may hold of all."""
    effect: Effect
    how: How
    source: Source
    evidence: Evidence | None = None
    """Runs behind an own finding."""
    replay: Replay | None = None
    """The study that replays a published figure."""
    note: Text | None = None

    @model_validator(mode="after")
    def _has_context(self) -> Claim:
        if self.context is None and not isinstance(self.effect, Qualitative):
            raise ValueError("a figure needs `context`: what was measured, where and against what")
        return self


@dataclass(frozen=True)
class ClaimFile:
    """A claim with its id (the file's name without `.yaml`) and the file it was read from."""

    id: str
    claim: Claim
    file: Path

    @property
    def study(self) -> str:
        """The publication or own study that the claim comes from."""
        return self.claim.study


def load_claim(path: Path) -> ClaimFile:
    """Read one claim. Raises `StudyError` naming file, line, column and key path."""
    document = read(path, _CLAIM)
    given = document.tree.get("format")
    if isinstance(given, int) and given > FORMAT:
        hint = f"this tare reads format {FORMAT}: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    if document.tree.get("source") is None:
        raise document.error(("source",), "a claim needs a source", hint="say where to find it")
    return ClaimFile(path.stem, checked(Claim, document), path)


def load_claims(folders: Iterable[Path] | None = None) -> tuple[ClaimFile, ...]:
    """All claims below the folders, by id; without any, those that come with tare. Ids are unique."""
    claims: dict[str, ClaimFile] = {}
    for folder in (claims_folder(),) if folders is None else folders:
        for path in sorted(folder.glob("**/*.yaml")):
            if path.relative_to(folder).parts[0] == TRAPS:
                continue  # no claims: tare.traps reads them
            known = load_claim(path)
            if known.id in claims:
                raise StudyError(
                    f"{path}: the claim {known.id!r} already exists, in {claims[known.id].file}",
                    hint="rename one",
                )
            claims[known.id] = known
    return tuple(claims[each] for each in sorted(claims))


def claim_called(claims: Iterable[ClaimFile], name: str) -> ClaimFile:
    """The claim of that id; `StudyError` with the nearest ones where there is none."""
    by_id = {known.id: known for known in claims}
    if name not in by_id:
        raise StudyError(f"there is no claim {name!r}", hint=did_you_mean(name, by_id, kind="claims"))
    return by_id[name]
