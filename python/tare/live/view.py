"""Everything that the page shows at one moment; nothing is drawn or written here."""

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
from tare.record.emulated import MARK, EmulatedArms, marked, shown_names, union_of_sides
from tare.store_place import StorePlace


@dataclass(frozen=True)
class ReportFile:
    """A report in the store's directory."""

    name: str
    bytes: int
    written_at: float


@dataclass(frozen=True)
class Last:
    """Windows of the last committed run, shown while no current run has any.

    `unit`: what its throughput counts; `None` if the run failed before it had any. `windows`: in seconds since
    `measured_s` on CLOCK_MONOTONIC, the start of measuring; `None` if the record does not contain it.
    """

    run_id: str
    arm: str
    ok: bool
    unit: str | None
    windows: Sequence[Point]
    measured_s: float | None = None


@dataclass(frozen=True)
class View:
    """`problem`: why the store cannot be read now; the other fields then hold the last readable state, if any.

    `running`: a process holds the store. `now`: state that this process reports, or that the last one reported.
    `traced`: runs with the latest traces, while a store is in use.
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
    """Tares that make blocks of a store at a URL, as host and process."""

    @property
    def under_way(self) -> tuple[Current, ...]:
        """The current runs: one, two of a duet, or none."""
        return self.now.runs if self.running and self.now is not None else ()

    @property
    def emulated(self) -> EmulatedArms:
        """Arms with an emulated run, including current ones."""
        sides = {} if self.known is None else dict(self.known.done.emulated)
        for run in self.under_way:
            if run.emulated:
                sides[run.arm] = union_of_sides(sides.get(run.arm, ()), run.emulated)
        return sides

    @property
    def names(self) -> Mapping[str, str]:
        """Arm → its display name, marked if the arm or its baseline was emulated."""
        return {} if self.known is None else shown_names(self.known.plan.study, self.emulated)

    def run_name(self, run_id: str, arm: str) -> str:
        """Display name of a run, with the mark of its arm."""
        return marked(run_id, MARK if arm in self.emulated else None)

    @property
    def blocks(self) -> int | None:
        """Expected total number of blocks, from what is known so far; `None` if only the cap is known."""
        assert self.known is not None  # noqa: S101 - only used if there is a study
        decided, run_s = self.known.decision, self._run_s
        if decided.end is None and run_s is None:
            return None
        return min(self.cap, blocks_expected(self.known.plan.study, decided, run_s or 0.0))

    @property
    def fixed(self) -> bool:
        """Whether the number of blocks is known in advance."""
        assert self.known is not None  # noqa: S101 - for the type alone
        rule = rule_of(self.known.plan.study)
        return rule.target is None and rule.seconds is None

    @property
    def cap(self) -> int:
        """Number of planned blocks, the most that are made."""
        assert self.known is not None  # noqa: S101 - for the type alone
        return max((run.block for run in self.known.plan.runs), default=0)

    @property
    def expected(self) -> int:
        """Expected total number of runs; the plan's number while nothing better is known."""
        assert self.known is not None  # noqa: S101 - for the type alone
        planned = len(self.known.plan.runs)
        blocks = self.blocks
        return planned if blocks is None else min(planned, runs_of_blocks(self.known.plan.study, blocks))

    @property
    def left_s(self) -> float | None:
        """Expected remaining machine time, from the mean of the good runs so far; `None` if there are none."""
        assert self.known is not None  # noqa: S101 - for the type alone
        run_s, left = self._run_s, self.expected - len(self.known.done.good)
        return None if run_s is None or left <= 0 else left * run_s

    @property
    def block_s(self) -> float | None:
        """Mean machine time of a finished block; `None` before one is."""
        assert self.known is not None  # noqa: S101 - for the type alone
        blocks = self.known.decision.blocks
        return sum(self.known.done.seconds.values()) / blocks if blocks else None

    @property
    def _run_s(self) -> float | None:
        """Mean machine time of a good run."""
        assert self.known is not None  # noqa: S101 - for the type alone
        done = self.known.done
        return fmean(done.seconds[run] for run in done.good) if done.good else None
