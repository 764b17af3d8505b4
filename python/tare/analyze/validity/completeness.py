"""Rules on runs that failed, were imported or extended, and on operations that were requested but not done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress

import numpy as np

from tare.analyze.columns import or_zero
from tare.analyze.validity.evidence import Alarm, Evidence, share
from tare.plural import counted
from tare.protocols.stopping import Rule
from tare.record.run_record import RunRecord


def imported(evidence: Evidence) -> Iterator[Alarm]:
    """The study was imported: nothing is known about the environment of its runs."""
    source = evidence.study.imported
    if source is not None:
        files = f"{counted(source.files, 'file')} of {source.parser}, {source.origin}"
        yield Alarm(
            "imported",
            None,
            f"others measured this ({files}): it is unknown whether the arms had the same image, settings, "
            "limits and machine, which network path the traffic took, and in what order the runs were made",
            (),
            "run the study yourself (`tare run`), which checks all of this",
        )


FAILING = 0.1
"""Share of an arm's attempts. Failed runs are left out; if there are many, the remaining runs are a selection."""


def errors(evidence: Evidence) -> Iterator[Alarm]:
    """A good run has errors or reconnects, or failed attempts are many: two, and a tenth of an arm's, or all."""
    counts = [or_zero(evidence.columns.number("measurement", key)) for key in ("errors", "reconnects")]
    is_wrong = np.any([count != 0 for count in counts], axis=0)
    failures: dict[str, list[str]] = {}
    for failure in evidence.runs.failures:
        failures.setdefault(failure.arm, []).append(failure.run_id)
    for arm in evidence.attempted:
        rows = evidence.rows(arm)
        wrong = rows[is_wrong[rows]]
        if len(wrong):
            yield Alarm(
                "errors",
                arm,
                "the generator had errors or reconnects in runs that are counted",
                evidence.ids(wrong),
                "read their raw files; refused and repeated operations must not count",
            )
        failed = failures.get(arm, [])
        if len(failed) > max(1, FAILING * (len(failed) + len(rows))) or (failed and not len(rows)):
            others = "and only the others are compared" if len(rows) else "so this arm has no result"
            yield Alarm(
                "errors",
                arm,
                f"{len(failed)} of {len(failed) + len(rows)} attempts failed, {others}",
                tuple(dict.fromkeys(failed)),
                "find out why; if slow runs fail, the remaining ones are too fast",
            )


def oom_kills(evidence: Evidence) -> Iterator[Alarm]:
    """In a good run, the kernel killed a process of the server for lack of memory."""
    kills = evidence.columns.number("usage", "sut_oom_kills")
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        killed = rows[kills[rows] > 0]
        if len(killed):
            count = int(kills[killed].sum())
            yield Alarm(
                "oom-kills",
                arm,
                f"the kernel killed processes of the server, out of memory, in good runs ({count} in all)",
                evidence.ids(killed),
                "raise sut.limits.memory, or lower the server's own: after a kill it does other work than asked",
            )


def extended(evidence: Evidence) -> Iterator[Alarm]:
    """A study without a target has runs of several plans: its cap was raised when there were results.

    In simulations, 8 blocks, and 8 more if the first did not exclude zero, are wrong in 9 % of A/A studies at a
    nominal 5 % (Armitage, McPherson & Rowe, "Repeated significance tests …", J. R. Stat. Soc. A 132, 1969).
    """
    plans = {run.plan_digest for run in evidence.runs.good.values()}
    if len(plans) > 1 and Rule.of(evidence.study.protocol).target is None:
        yield Alarm(
            "extended",
            None,
            f"its cap was raised after there were results ({len(plans)} plans); without a target, the intervals "
            "do not account for that",
            (),
            "if the results influenced that, run the study again with a fixed number of blocks, or with a target",
        )


def unobserved(evidence: Evidence) -> Iterator[Alarm]:
    """For a good run, the limits in force around a side, or the path of its connections, could not be read."""
    if evidence.study.imported is not None:
        return
    unseen = [_unseen(run) for run in evidence.columns.records]
    is_blind = np.array([any(each) for each in unseen], dtype=bool)
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        blind = rows[is_blind[rows]].tolist()
        if blind:
            kinds = dict.fromkeys(unseen[row] for row in blind)
            what = ", ".join(dict.fromkeys(part for each in kinds for part in compress(_PARTS, each)))
            yield Alarm(
                "unobserved",
                arm,
                f"{what} could not be read, so these runs may differ in it",
                evidence.ids(blind),
                "read their notices for the reason, remove it, and run them again",
            )


_PARTS = (
    "what is in force around the SUT",
    "what is in force around the client",
    "what is in force around the SUT after the measure phase",
    "the network path",
)


def _unseen(run: RunRecord) -> tuple[bool, bool, bool, bool]:
    """Flags of the `_PARTS` that could not be read. A program that is itself the SUT has no client and no path."""
    parity, path, both = run.parity, run.path, run.settings.get("client", "") is not None
    return (
        parity.sut is None,
        both and parity.client is None,
        parity.lacks_after,
        both and (path is None or path.hop is None),
    )


SHORT = 0.01
"""Share of the requested operations: half of the target width of an overhead.

The one bound for "fell behind its rate", in advice and predictions, too. A queue that grows through a phase until a
hundredth of the arrivals is left has the last of them wait for a hundredth of the phase: 20 ms of 2 s.
"""


def under_delivery(evidence: Evidence) -> Iterator[Alarm]:
    """A run delivered over 1 % fewer operations per second than its target rate."""
    shares = evidence.columns.number("measurement", "details", "delivered_share")
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        short = rows[shares[rows] < 1 - SHORT]
        if len(short):
            yield Alarm(
                "under-delivery",
                arm,
                f"the generator delivered {share(float(shares[short].min()))} of its target rate",
                evidence.ids(short),
                "use a lower target or more threads: otherwise arms are compared at different rates",
            )
