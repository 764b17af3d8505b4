"""Everything that the page shows at one moment, gathered; nothing is drawn or written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.live.known import Known
from tare.live.now import Current, Now
from tare.live.under_way import Seen
from tare.live.windows import Point
from tare.plan.estimate import blocks_expected
from tare.protocols.registry import rule_of, runs_of_blocks
from tare.run.emulated import MARK, EmulatedArms, marked, shown_names, union_of_sides
from tare.store_place import StorePlace


@dataclass(frozen=True)
class ReportFile:
    """A report that lies in the store's directory."""

    name: str
    bytes: int
    written_at: float


@dataclass(frozen=True)
class Last:
    """The windows of the run that was committed last, for the time in which no other has any.

    `unit`: what its throughput counts, `None` where the run failed before it had any. `windows`: in seconds since
    `measured_s` on CLOCK_MONOTONIC, when measuring began; `None` where the record does not tell.
    """

    run_id: str
    arm: str
    ok: bool
    unit: str | None
    windows: Sequence[Point]
    measured_s: float | None = None


@dataclass(frozen=True)
class View:
    """`problem`: why the store cannot be read now; then the rest is what was seen before that, if anything was.

    `running`: a process holds the store. `now`: what that process reports, or what the last one did. `traced`: the
    runs of which a trace was seen last, while a store is run.
    """

    place: StorePlace
    problem: str | None = None
    known: Known | None = None
    running: bool = False
    now: Now | None = None
    seen: tuple[Seen, ...] = ()
    traced: tuple[Seen, ...] = ()
    last: Last | None = None
    reports: tuple[ReportFile, ...] = ()
    makers: tuple[str, ...] = ()
    """Tares that make blocks of a store at a URL, by host and process."""

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
                sides[run.arm] = union_of_sides(sides.get(run.arm, ()), run.emulated)
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
        """Blocks that are expected in all by what is seen so far; `None`: only the cap is known."""
        assert self.known is not None  # noqa: S101 - asked for where there is a study
        decided, run_s = self.known.decision, self._run_s
        if decided.end is None and run_s is None:
            return None
        return min(self.cap, blocks_expected(self.known.plan.study, decided, run_s or 0.0))

    @property
    def fixed(self) -> bool:
        """Whether it is known beforehand how many blocks there will be."""
        assert self.known is not None  # noqa: S101 - for the type alone
        rule = rule_of(self.known.plan.study)
        return rule.target is None and rule.seconds is None

    @property
    def cap(self) -> int:
        """Blocks of the plan, which are made at most."""
        assert self.known is not None  # noqa: S101 - for the type alone
        return max((run.block for run in self.known.plan.runs), default=0)

    @property
    def expected(self) -> int:
        """Runs that are expected in all; of the plan's, while nothing better is known."""
        assert self.known is not None  # noqa: S101 - for the type alone
        planned = len(self.known.plan.runs)
        blocks = self.blocks
        return planned if blocks is None else min(planned, runs_of_blocks(self.known.plan.study, blocks))

    @property
    def left_s(self) -> float | None:
        """Machine time that is expected yet, at the mean of the good runs so far; `None` where there is none."""
        assert self.known is not None  # noqa: S101 - for the type alone
        run_s, left = self._run_s, self.expected - len(self.known.done.good)
        return None if run_s is None or left <= 0 else left * run_s

    @property
    def _run_s(self) -> float | None:
        """Machine time of a good run, their mean."""
        assert self.known is not None  # noqa: S101 - for the type alone
        done = self.known.done
        return fmean(done.seconds[run] for run in done.good) if done.good else None
