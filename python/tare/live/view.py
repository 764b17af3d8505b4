"""Everything that the page shows at one moment, gathered; nothing is drawn or written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.live.known import Known
from tare.live.now import Current, Now
from tare.live.under_way import Seen
from tare.live.windows import Point
from tare.protocols import rule_of, runs_of_blocks
from tare.run.emulated import MARK, EmulatedArms, marked, shown_names, with_sides


@dataclass(frozen=True)
class ReportFile:
    """A report that lies in the store's directory."""

    name: str
    bytes: int
    written_at: float


@dataclass(frozen=True)
class Last:
    """The windows of the run that was committed last, for the time in which no other tells any."""

    run_id: str
    arm: str
    ok: bool
    windows: Sequence[Point]


@dataclass(frozen=True)
class View:
    """`problem`: why the store cannot be read now; then the rest is what was seen before that, if anything was.

    `running`: a process holds the store. `now`: what that tells of itself, or what the last one did.
    """

    path: Path
    problem: str | None = None
    known: Known | None = None
    running: bool = False
    now: Now | None = None
    seen: tuple[Seen, ...] = ()
    last: Last | None = None
    reports: tuple[ReportFile, ...] = ()

    @property
    def under_way(self) -> tuple[Current, ...]:
        """The runs that are being made: one, two of a duet, or none."""
        return self.now.runs if self.running and self.now is not None else ()

    @property
    def emulated(self) -> EmulatedArms:
        """Arms with an emulated run, those under way among them."""
        sides = {} if self.known is None else dict(self.known.done.emulated)
        for run in self.under_way:
            if run.emulated:
                sides[run.arm] = with_sides(sides.get(run.arm, ()), run.emulated)
        return sides

    @property
    def names(self) -> Mapping[str, str]:
        """Arms as they are shown: with their mark where they, or what they are compared with, were emulated."""
        return {} if self.known is None else shown_names(self.known.plan.study, self.emulated)

    def run_name(self, run_id: str, arm: str) -> str:
        """A run as it is shown: with the mark of its arm."""
        return marked(run_id, MARK if arm in self.emulated else None)

    @property
    def blocks(self) -> int | None:
        """Blocks that are expected in all by the spread so far; `None`: only the cap is known."""
        assert self.known is not None  # noqa: S101 - asked for where there is a study
        said, rule = self.known.decision, rule_of(self.known.plan.study)
        if said.end is not None:
            return said.blocks
        if said.more_blocks is None:
            return None
        return min(self.cap, said.blocks + max(1, rule.blocks_each * said.more_blocks))

    @property
    def cap(self) -> int:
        """Blocks of the plan, which are made at most."""
        assert self.known is not None  # noqa: S101
        return max((run.block for run in self.known.plan.runs), default=0)

    @property
    def expected(self) -> int:
        """Runs that are expected in all; of the plan's, while nothing better is known."""
        assert self.known is not None  # noqa: S101
        planned = len(self.known.plan.runs)
        blocks = self.blocks
        return planned if blocks is None else min(planned, runs_of_blocks(self.known.plan.study, blocks))

    @property
    def left_s(self) -> float | None:
        """Machine time that is expected yet, at the mean of the good runs so far; `None` where there is none."""
        assert self.known is not None  # noqa: S101
        done = self.known.done
        spent = [done.seconds[run] for run in done.good]
        left = self.expected - len(done.good)
        return None if not spent or left <= 0 else left * sum(spent) / len(spent)
