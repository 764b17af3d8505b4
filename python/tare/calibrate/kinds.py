"""The kinds of studies that a calibration is made of, and which of their arms are held against which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tare.calibrate import studies
from tare.calibrate.readings import (
    Reading,
    bytes_read_per_second,
    cpu_seconds_per_second,
    time_not_held_back,
    transactions_per_cpu_second,
)
from tare.plan.expand import CONTROL
from tare.study.model import Study


@dataclass(frozen=True)
class Injection:
    """An effect that is put in. `title` names it, by what is asked for; `reading` tells its true size."""

    title: str
    reading: Reading


@dataclass(frozen=True)
class Contrast:
    """Two arms of a study that are compared. `injection`: `None` for two instances of the same."""

    arm: str
    baseline: str
    injection: Injection | None = None


@dataclass(frozen=True)
class Kind:
    """A series of studies. `make`: the study of a number, from 1.

    `usual`: the server is saturated as in an ordinary study, so that its scatter tells what such a one can show.
    """

    title: str
    make: Callable[[int], Study]
    contrasts: tuple[Contrast, ...]
    usual: bool = True


def _against(baseline: str, injected: Mapping[str, Injection]) -> tuple[Contrast, ...]:
    """The baseline's second instance, and each arm that an effect is put into."""
    return (Contrast(CONTROL, baseline), *(Contrast(arm, baseline, effect) for arm, effect in injected.items()))


KINDS: Mapping[str, Kind] = {
    "work": Kind(
        "more work in each transaction",
        studies.work,
        _against(
            "k100",
            {
                f"k{count}": Injection(f"work +{count - 100} %", transactions_per_cpu_second)
                for count in studies.MORE_WORK
            },
        ),
    ),
    "quota": Kind(
        "a CPU quota on the server",
        studies.quota,
        _against(
            "q100",
            {f"q{share}": Injection(f"CPU quota {share} %", cpu_seconds_per_second) for share in studies.QUOTAS},
        ),
    ),
    "delay": Kind(
        "a proxy that holds messages back",
        studies.delay,
        _against("passed", {"held": Injection(f"proxy delay {studies.DELAY_US} µs", time_not_held_back)}),
        usual=False,
    ),
    "io": Kind(
        "a limit on reads from the disk",
        studies.disk,
        _against(
            "r1000",
            {
                f"r{rate}": Injection(f"{rate} reads a second", bytes_read_per_second)
                for rate in studies.READS_PER_S[1:]
            },
        ),
        usual=False,
    ),
    "aa": Kind(
        "nothing: two bare servers, two in containers",
        studies.same,
        (Contrast(CONTROL, "bare"), Contrast("container-again", "container")),
    ),
}
"""In the order in which a calibration takes turns."""
