"""Whether a study was extended after a look, and whether what was around its runs could be seen."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.validity.evidence import Alarm, Evidence, ids
from tare.protocols.stopping import Rule
from tare.run.record import RunRecord


def extended(evidence: Evidence) -> Iterator[Alarm]:
    """A study without a target holds runs of more than one plan: its cap was raised, once there were results.

    Simulated: 8 blocks, and 8 more where the first did not exclude zero, are wrong in 9 % of A/A studies at a
    nominal 5 % (Armitage, McPherson & Rowe, "Repeated significance tests …", J. R. Stat. Soc. A 132, 1969).
    """
    plans = {run.plan_digest for run in evidence.runs.good.values()}
    if len(plans) > 1 and Rule.of(evidence.study.protocol).target is None:
        yield Alarm(
            "extended",
            None,
            f"its cap was raised when there were results ({len(plans)} plans), and without a target no alpha pays "
            "for a look at them",
            (),
            "where the result had a say in that, run the study anew with as many blocks, or with a target",
        )


def unwitnessed(evidence: Evidence) -> Iterator[Alarm]:
    """Of a good run it could not be read what was in force around a side, or which way the connections went."""
    for arm in evidence.arms if evidence.study.imported is None else ():
        blind = [run for run in evidence.good(arm) if _unseen(run)]
        if blind:
            what = ", ".join(dict.fromkeys(part for run in blind for part in _unseen(run)))
            yield Alarm(
                "unwitnessed",
                arm,
                f"{what} could not be seen, so that nobody knows whether these runs were alike",
                ids(blind),
                "read their notices for the reason, and run them again where it is gone",
            )


def _unseen(run: RunRecord) -> tuple[str, ...]:
    """A program that is itself the SUT has no client and no path."""
    both = run.settings.get("client", "") is not None
    sides = {"sut": "the SUT", **({"client": "the client"} if both else {})}
    found = [f"what is in force around {name}" for side, name in sides.items() if not run.parity.get(side)]
    if run.parity.get("sut_after", "") is None:
        found.append("what is in force around the SUT after the measure phase")
    if both and (run.path is None or run.path.get("hop", "") is None):
        found.append("the network path")
    return tuple(found)
