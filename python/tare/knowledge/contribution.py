"""A contributed claim: accepted, or refused with a sentence and a hint for each fault."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tare.analyze.metrics import METRICS
from tare.errors import TareError
from tare.knowledge.claim import Between, Claim, ClaimFile, Evidence, Measured, load_claim
from tare.knowledge.comparable import key_of
from tare.study.suggest import did_you_mean

FEWEST_BLOCKS = 3
LARGEST = math.log(1000)
"""Largest factor of an effect; a larger one is a confused unit."""
_DIGEST = re.compile(r"^(sha256:)?[0-9a-f]{64}$")
_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$")
_SE_SLACK = 0.02
"""Factor by which a standard error may differ from spread / √n."""


@dataclass(frozen=True)
class Fault:
    """A fault as a sentence, and what to do about it."""

    what: str
    do: str


@dataclass(frozen=True)
class Checked:
    """A contribution. `faults`: empty if it is accepted; `notes`: what a reader should know nevertheless."""

    file: Path
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()


def checked(file: Path, known: Sequence[ClaimFile], now: datetime | None = None) -> Checked:
    """Check one file against the existing claims. For a file that is no claim, return the error of reading it."""
    try:
        read = load_claim(file)
    except TareError as error:
        return Checked(file, (Fault(str(error), error.hint or "mend the file"),))
    faults = tuple(_faults(read, known, now or datetime.now(UTC)))
    evidence = read.claim.evidence
    notes = () if evidence is None else tuple(f"its study breaks a rule: {alarm}" for alarm in evidence.alarms)
    return Checked(file, faults, notes)


def _faults(read: ClaimFile, known: Sequence[ClaimFile], now: datetime) -> Iterator[Fault]:
    claim = read.claim
    if not _ID.match(read.id):
        yield Fault(
            f"the file's name {read.id!r} is not a valid id", "use letters, digits, dots, dashes and underscores"
        )
    yield from _of_metric(claim, known)
    yield from _of_size(claim)
    yield from _of_source(claim, now)
    yield from _own(claim) if claim.source.store is not None else _of_others(claim)
    yield from _known_already(read, known)


def _of_metric(claim: Claim, known: Sequence[ClaimFile]) -> Iterator[Fault]:
    metric = claim.effect.metric
    names = {*METRICS, *(name for each in known if (name := each.claim.effect.metric) is not None)}
    of_one_kind = metric is not None and re.fullmatch(r"[a-z_]+_latency_(mean|p\d+)", metric)
    if metric is not None and metric not in names and not of_one_kind:
        yield Fault(
            f"neither claims nor reports have a metric {metric!r}",
            did_you_mean(metric, names, kind="metrics") or "",
        )


def _of_size(claim: Claim) -> Iterator[Fault]:
    effect = claim.effect
    ends: list[float | None] = []
    if isinstance(effect, Measured):
        ends = [effect.log_ratio]
    elif isinstance(effect, Between):
        ends = [effect.low, effect.high]
    for end in ends:
        if end is not None and abs(end) > LARGEST:
            yield Fault(
                f"its effect is a factor of {math.exp(abs(end)):.0f}", "check units and which side is which"
            )


def _of_source(claim: Claim, now: datetime) -> Iterator[Fault]:
    if claim.source.year is not None and claim.source.year > now.year:
        yield Fault(
            f"its source is of {claim.source.year}, which is in the future", "give the year that the source states"
        )
    if claim.source.read == "notes":
        yield Fault("it was written from notes on its source", "read the source itself: `read: part` or `whole`")


def _of_others(claim: Claim) -> Iterator[Fault]:
    if claim.evidence is not None:
        yield Fault(
            "it has `evidence`, as a finding of your own has, but no store",
            "give `source.store`, or remove `evidence`",
        )
    if isinstance(claim.effect, Measured) and claim.effect.se is not None and (claim.effect.n or 0) < FEWEST_BLOCKS:
        yield Fault(
            f"a standard error of {claim.effect.n} is none",
            f"{FEWEST_BLOCKS} independent units are the minimum; leave `se` and `n` out",
        )


def _own(claim: Claim) -> Iterator[Fault]:
    """Check a contributor's own finding: whether it can be judged, and whether it is valid."""
    hint = "`tare knowledge add STORE` writes it in the right form"
    if not _DIGEST.match(claim.source.store or ""):
        yield Fault("its store is not the digest of a plan", hint)
    if claim.evidence is None:
        yield Fault("a finding of your own needs `evidence`: machine, versions, seed, noise and control", hint)
        return
    if not isinstance(claim.effect, Measured) or claim.effect.se is None:
        yield Fault("a finding of your own is a figure with its standard error", hint)
        return
    if (claim.effect.n or 0) < FEWEST_BLOCKS:
        yield Fault(
            f"it rests on {claim.effect.n} blocks",
            f"measure {FEWEST_BLOCKS} or more: `tare run` goes on in its store",
        )
    expected = claim.evidence.spread / math.sqrt(claim.effect.n or 1)
    if abs(claim.effect.se / expected - 1) > _SE_SLACK:
        yield Fault(f"its standard error does not follow from spread and n, which give {expected:.4g}", hint)
    if claim.how.parity != "known":
        yield Fault(
            f"its parity is {claim.how.parity}",
            "tare checks parity in every run: write the claim again from the store",
        )
    yield from _of_control(claim.evidence)


def _of_control(evidence: Evidence) -> Iterator[Fault]:
    low, high = evidence.control_low, evidence.control_high
    if evidence.control is None:
        yield Fault(
            "its study has no control, so noise may look like a difference",
            "run it with `baseline-again`, as studies have by default",
        )
    elif low is None or high is None:
        yield Fault(
            "its control has no interval, so whether it differs is unknown",
            "measure more blocks: `tare run` goes on in its store",
        )
    elif not low <= 0 <= high:
        yield Fault(
            f"its control differs from the baseline, by {100 * math.expm1(evidence.control):+.1f} %",
            "run the study again on a quieter machine",
        )


def _known_already(read: ClaimFile, known: Sequence[ClaimFile]) -> Iterator[Fault]:
    for each in known:
        if each.file.resolve() == read.file.resolve():
            continue
        if each.id == read.id:
            yield Fault(f"there is a claim {read.id!r} already, in {each.file}", "rename the file, or remove it")
        elif _says_the_same(each.claim, read.claim):
            yield Fault(f"{each.id} says the same", "remove it; a claim counts only once")


def _says_the_same(one: Claim, other: Claim) -> bool:
    of_one_study = one.study == other.study and one.context == other.context
    if isinstance(one.effect, Measured | Between):
        return of_one_study and one.effect == other.effect and key_of(one) == key_of(other)
    return of_one_study and one.says == other.says
