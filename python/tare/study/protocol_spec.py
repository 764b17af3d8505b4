"""How a study repeats and orders its runs: one model for each protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from tare.study.values import LONGEST_S, CpuList, Seconds, Strict, cpu_set

Anytime = Literal["t-mixture", "sign-flip"]
"""Interval that holds at every look: `tare.protocols.anytime` or `tare.protocols.sign_flip`."""


class Repetition(Strict):
    """Keys of every protocol: the maximum number of blocks, retries of a failed run, and the seed."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    blocks: int = Field(default=5, gt=0, le=1000)
    """Runs of each arm."""
    retries: int = Field(default=1, ge=0, le=1000)
    """How often a failed run is tried again."""
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """The same seed gives the same order."""


class Sequential(Repetition):
    """Keys of protocols that end when enough is known."""

    name: str
    blocks: int = Field(default=40, gt=0, le=1000)
    """Maximum number of blocks. Below `min_blocks`, the target is never checked."""
    target: float | None = Field(default=0.02, gt=0, lt=1)
    """Half-width of the interval on the relative throughput of every arm; `None`: all blocks, no looks."""
    min_blocks: int = Field(default=8, ge=8, le=1000)
    """Blocks before the first look. The coverage was shown for 8; fewer would reduce it."""
    look_every: int = Field(default=4, ge=4, le=1000)
    """Blocks between looks. The coverage was shown for 4; rarer looks only cost blocks."""
    looks: Literal["set", "any"] = "set"
    """`set`: looks at those blocks only, with a t interval adjusted for them; `any`: a look at every block from
    `min_blocks` on, with an interval that holds at all looks and needs 1.6 to 2.3 times the blocks."""
    anytime: Anytime = "t-mixture"
    """For `looks: any`. `t-mixture`: exact for normal noise of any spread; `sign-flip`: from the plan's random
    order only, whatever the noise, by mirrored pairs of blocks; needs still more blocks."""
    margin: float | None = Field(default=None, gt=0, lt=1)
    """In place of the width: an arm's blocks end when its interval lies within 1/(1 + margin) and 1 + margin times
    the baseline, or outside. Needs `looks: any`. It is also the margin of throughput."""
    alpha: float = Field(default=0.035, gt=0, le=0.035)
    """Error rate of the t interval; above 0.035, repeated looks would reduce the coverage below 95 %."""
    max_minutes: float | None = Field(default=None, gt=0, le=LONGEST_S / 60)
    """Machine time of all runs, over all resumes: no block starts that would not end within it."""

    @model_validator(mode="after")
    def _margin_needs_looks_any(self) -> Sequential:
        if self.looks != "any" or self.target is None:
            wanted = "`looks: any` and a target: together they allow a look after every block"
            if self.anytime != "t-mixture":
                raise ValueError(f"`anytime` has no effect without {wanted}")
            if self.margin is not None:
                raise ValueError(
                    f"`margin` needs {wanted}; a plain t interval would be too narrow if it decided when to stop"
                )
        return self


class InterleaveSpec(Sequential):
    """Randomised complete blocks in mirrored pairs, until every arm is known to the target or a cap is reached."""

    name: Literal["interleave"] = "interleave"
    measure: Literal["set", "auto"] = "set"
    """`set`: every measure phase lasts `workload.measure_s`; `auto`: the first 4 blocks do, and determine the
    length of later measure phases."""
    measure_most_s: Seconds | None = Field(default=None, gt=0)
    """With `auto`, the longest measure phase to choose; `None`: 10 times `workload.measure_s`."""

    @model_validator(mode="after")
    def _most_needs_auto(self) -> InterleaveSpec:
        if self.measure_most_s is not None and self.measure != "auto":
            raise ValueError("measure_most_s has no effect without measure: auto")
        return self


class DuetSpec(Sequential):
    """Two arms at once, each on its own CPU set, swapped half-way; a block is one arm with the baseline.

    `blocks`, `min_blocks` and `look_every` count the blocks of each arm.
    """

    name: Literal["duet"]
    cpus: tuple[CpuList, CpuList] = ("0", "1")
    """CPU sets of the two arms, SUT and client together: two disjoint sets of the same size."""

    @field_validator("cpus")
    @classmethod
    def _sets_are_equal(cls, cpus: tuple[str, str]) -> tuple[str, str]:
        first, second = (cpu_set(part) for part in cpus)
        if first & second:
            shared = ",".join(str(cpu) for cpu in sorted(first & second))
            raise ValueError(f"CPU {shared} is in both sets, so both arms would use it")
        if len(first) != len(second):
            raise ValueError(f"the sets have {len(first)} and {len(second)} CPUs; both arms need the same number")
        return cpus


class RotateSpec(Sequential):
    """The servers of all arms at once, driven one at a time in short turns; a block is a generation of servers."""

    name: Literal["rotate"]
    blocks: int = Field(default=16, gt=0, le=1000, validation_alias=AliasChoices("generations", "blocks"))
    """Maximum number of generations of servers, which other keys call blocks."""
    turn_ms: float | None = Field(default=None, ge=10, le=60_000)
    """How long an arm is measured in its turn; `None`: a pilot chooses both lengths before the first generation."""
    settle_ms: float | None = Field(default=None, ge=1, le=10_000)
    """How long it is driven before that without being measured."""
    rounds: int | None = Field(default=None, ge=10, le=100_000)
    """Turns of each arm in a generation; `None`: as many as make up `workload.measure_s`, or fewer by the pilot."""
    cpus: tuple[CpuList, CpuList] | None = ("0", "1")
    """CPUs of the servers and of the clients; `None`: those that the arms' `limits` allow."""

    @field_validator("cpus")
    @classmethod
    def _sets_are_apart(cls, cpus: tuple[str, str] | None) -> tuple[str, str] | None:
        if cpus is not None and (shared := cpu_set(cpus[0]) & cpu_set(cpus[1])):
            raise ValueError(f"CPU {min(shared)} is in both sets; servers and clients need CPUs of their own")
        return cpus

    @model_validator(mode="after")
    def _no_mirrored_pairs(self) -> RotateSpec:
        if self.anytime == "sign-flip":
            raise ValueError("sign flips need mirrored pairs of blocks, which `rotate` does not make")
        return self

    @model_validator(mode="after")
    def _both_lengths_or_none(self) -> RotateSpec:
        if (self.turn_ms is None) is not (self.settle_ms is None):
            raise ValueError("set both turn_ms and settle_ms, or leave both to a pilot")
        return self

    @property
    def measured_ms(self) -> float:
        """`turn_ms`, or what is assumed before a pilot chose."""
        return 100.0 if self.turn_ms is None else self.turn_ms

    @property
    def settling_ms(self) -> float:
        """`settle_ms`, or what is assumed before a pilot chose."""
        return 20.0 if self.settle_ms is None else self.settle_ms

    def rounds_of(self, measure_s: float) -> int:
        """Return the number of measured rounds of a generation."""
        return self.rounds or max(10, round(measure_s * 1000 / self.measured_ms))

    def warm_up_rounds_of(self, warmup_s: float) -> int:
        """Return the number of rounds before them, at least one."""
        return max(1, math.ceil(warmup_s * 1000 / (self.measured_ms + self.settling_ms)))


class FixedSpec(Repetition):
    """A fixed number of runs for each arm, as in most published studies."""

    name: Literal["fixed"]
    sequence: Literal["spread", "together"] = "spread"
    """`spread`: no two runs of an arm in direct sequence; `together`: all runs of an arm, then the next arm."""
    control: bool = True
    """Whether to run a second instance of the baseline; only a published number of runs is a reason not to."""
    paired: bool = False
    """Whether to compare an arm's run with the baseline's of the same repetition, as `interleave` does."""

    @model_validator(mode="after")
    def _pairs_need_spread(self) -> FixedSpec:
        if self.paired and self.sequence == "together":
            raise ValueError(
                "`paired` needs `sequence: spread`; with `together`, an arm runs long after the baseline"
            )
        return self


class BucketsSpec(Repetition):
    """Like `fixed`, but judged by the pooled windows of all runs and z = 1.96."""

    name: Literal["buckets"]
    blocks: int = Field(default=10, gt=0, le=1000)
    sequence: Literal["spread", "together"] = "together"
    control: bool = True


class ImportedSpec(Repetition):
    """Results that others measured: the order of their runs is unknown, and no runs are made."""

    name: Literal["imported"]
    blocks: int = Field(gt=0)
    retries: int = 0
    control: bool = False


_BY_NAME = frozenset({"duet", "rotate", "fixed", "buckets", "imported"})


def _protocol(value: Any) -> str:
    """Return the protocol's name; a missing or wrong name counts as the default, which then reports the error."""
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    return name if isinstance(name, str) and name in _BY_NAME else "interleave"


ProtocolSpec = Annotated[
    Annotated[InterleaveSpec, Tag("interleave")]
    | Annotated[DuetSpec, Tag("duet")]
    | Annotated[RotateSpec, Tag("rotate")]
    | Annotated[FixedSpec, Tag("fixed")]
    | Annotated[BucketsSpec, Tag("buckets")]
    | Annotated[ImportedSpec, Tag("imported")],
    Discriminator(_protocol),
]
"""How runs are repeated and ordered; `name` is a key of `PROTOCOLS`."""

PROTOCOL_SPECS: Mapping[str, type[Repetition]] = {
    "interleave": InterleaveSpec,
    "duet": DuetSpec,
    "rotate": RotateSpec,
    "fixed": FixedSpec,
    "buckets": BucketsSpec,
}
