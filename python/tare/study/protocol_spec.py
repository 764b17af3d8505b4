"""How a study repeats and orders its runs: one model for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from tare.study.values import LONGEST_S, CpuList, Seconds, Strict, cpu_set

Anytime = Literal["t-mixture", "sign-flip"]
"""An interval that holds at every look: `tare.protocols.anytime` or `tare.protocols.sign_flip`."""


class Repetition(Strict):
    """What all protocols have: how many blocks at most, how often a failed run is tried again, and the seed."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    blocks: int = Field(default=5, gt=0, le=1000)
    """Runs of each arm."""
    retries: int = Field(default=1, ge=0, le=1000)
    """How often a failed run is tried again."""
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """The same seed gives the same order."""


class Sequential(Repetition):
    """What protocols have that end when enough is known."""

    name: str
    blocks: int = Field(default=40, gt=0, le=1000)
    """The cap. Below `min_blocks` the target is never looked at."""
    target: float | None = Field(default=0.02, gt=0, lt=1)
    """Half-width of the interval on the relative throughput of every arm; `None`: all blocks, no looks."""
    min_blocks: int = Field(default=8, ge=8, le=1000)
    """Blocks before the first look. The coverage was shown for 8; fewer would cost it."""
    look_every: int = Field(default=4, ge=4, le=1000)
    """Blocks between looks; shown for 4, and looks that are rarer cost blocks only."""
    looks: Literal["set", "any"] = "set"
    """`set`: at those blocks, by a t interval that they are paid for in; `any`: at every block from `min_blocks`
    on, by an interval that holds at all of them at once, and takes 1.6 to 2.3 times the blocks."""
    anytime: Anytime = "t-mixture"
    """Of `looks: any`. `t-mixture`: exact for normal noise of any spread; `sign-flip`: by the random order of the
    plan alone, whatever the noise, from mirrored pairs of blocks, and with more blocks again."""
    margin: float | None = Field(default=None, gt=0, lt=1)
    """In place of the width: each arm's blocks end when its interval lies within 1/(1 + margin) and 1 + margin
    times the baseline, or outside. Needs `looks: any`. It is the margin of throughput, too."""
    alpha: float = Field(default=0.035, gt=0, le=0.035)
    """Of the t interval; more than 0.035 would no longer cover 95 % after looking."""
    max_minutes: float | None = Field(default=None, gt=0, le=LONGEST_S / 60)
    """Machine time of all runs, over all resumes: no block is begun that would not end within it."""

    @model_validator(mode="after")
    def _shown_effects_need_any(self) -> Sequential:
        if self.looks != "any" or self.target is None:
            wanted = "looks: any and a target, which set up looks at every block"
            if self.anytime != "t-mixture":
                raise ValueError(f"anytime has no effect without {wanted}")
            if self.margin is not None:
                raise ValueError(
                    f"margin needs {wanted}: a t interval that ends a study by what it shows is too narrow"
                )
        return self


class InterleaveSpec(Sequential):
    """Randomised complete blocks in mirrored pairs, until every arm is known to the target or a cap is met."""

    name: Literal["interleave"] = "interleave"
    measure: Literal["set", "auto"] = "set"
    """`set`: every measure phase is as long as `workload.measure_s` says; `auto`: those of the first 4 blocks are,
    and from them it follows how long the later ones should be."""
    measure_most_s: Seconds | None = Field(default=None, gt=0)
    """With `auto`, the longest that may be chosen; `None`: 10 times `workload.measure_s`."""

    @model_validator(mode="after")
    def _most_is_of_auto(self) -> InterleaveSpec:
        if self.measure_most_s is not None and self.measure != "auto":
            raise ValueError("measure_most_s has no effect without measure: auto")
        return self


class DuetSpec(Sequential):
    """Two arms at once, one set of CPUs each, swapped half-way; a block is one arm with the baseline.

    `blocks`, `min_blocks` and `look_every` count the blocks of each arm.
    """

    name: Literal["duet"]
    cpus: tuple[CpuList, CpuList] = ("0", "1")
    """Where each of the two stands, SUT and client together: two sets of as many CPUs, none in both."""

    @field_validator("cpus")
    @classmethod
    def _sets_are_equal(cls, cpus: tuple[str, str]) -> tuple[str, str]:
        first, second = (cpu_set(part) for part in cpus)
        if first & second:
            shared = ",".join(str(cpu) for cpu in sorted(first & second))
            raise ValueError(f"CPU {shared} is in both sets, which the two arms would share")
        if len(first) != len(second):
            raise ValueError(f"{len(first)} against {len(second)} CPUs: both arms need as many")
        return cpus


class FixedSpec(Repetition):
    """A number of runs an arm that is fixed beforehand, as most published studies have it."""

    name: Literal["fixed"]
    sequence: Literal["spread", "together"] = "spread"
    """`spread`: no two runs of an arm in direct sequence; `together`: all runs of an arm, then the next arm."""
    control: bool = True
    """Whether a second instance of the baseline is run; only a published number of runs is a reason not to."""
    paired: bool = False
    """Whether an arm's run is compared with the baseline's of the same repetition, as `interleave` does."""

    @model_validator(mode="after")
    def _pairs_are_of_one_time(self) -> FixedSpec:
        if self.paired and self.sequence == "together":
            raise ValueError("paired needs sequence: spread: runs of an arm together are far from the baseline's")
        return self


class BucketsSpec(Repetition):
    """As `fixed`, judged by the windows of all runs in one pot and z = 1.96."""

    name: Literal["buckets"]
    blocks: int = Field(default=10, gt=0, le=1000)
    sequence: Literal["spread", "together"] = "together"
    control: bool = True


class ImportedSpec(Repetition):
    """Of results that somebody else has measured: what order the runs were made in is not known, none is made."""

    name: Literal["imported"]
    blocks: int = Field(gt=0)
    retries: int = 0
    control: bool = False


_BY_NAME = frozenset({"duet", "fixed", "buckets", "imported"})


def _protocol(value: Any) -> str:
    """The name decides, and what has none or a wrong one is read as the default, which then says what is wrong."""
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    return name if isinstance(name, str) and name in _BY_NAME else "interleave"


ProtocolSpec = Annotated[
    Annotated[InterleaveSpec, Tag("interleave")]
    | Annotated[DuetSpec, Tag("duet")]
    | Annotated[FixedSpec, Tag("fixed")]
    | Annotated[BucketsSpec, Tag("buckets")]
    | Annotated[ImportedSpec, Tag("imported")],
    Discriminator(_protocol),
]
"""How runs are repeated and ordered; `name` is a key of `PROTOCOLS`."""

PROTOCOL_SPECS: Mapping[str, type[Repetition]] = {
    "interleave": InterleaveSpec,
    "duet": DuetSpec,
    "fixed": FixedSpec,
    "buckets": BucketsSpec,
}
