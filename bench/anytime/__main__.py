"""Intervals that hold at every look: how often they are ever wrong, and how many blocks they take, in simulation.

    python -m bench.anytime [--studies 4000] [--seed 1] [--markdown FILE]

Needs nothing but a CPU; with 4000 studies some minutes of one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.anytime.simulation import LAST_LOOK, Ever, Taken, ever_wrong, taken_to_margin, taken_to_width
from bench.tables import show

TARGETS = (0.02, 0.01)
MARGIN, EFFECTS = 0.02, (0.0, -0.005, -0.01, -0.02, -0.03, -0.05, -0.10)
_FEWER = 10
"""Studies that are run to an end are so many times fewer: each look takes an interval."""


def main() -> None:
    """Simulate, print, write."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--studies", type=int, default=4000, help="of each row of the first table")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--markdown", type=Path, help="write the tables here too")
    chosen = options.parse_args()
    show("\n".join(tables(chosen.studies, chosen.seed)) + "\n", chosen.markdown)


def tables(studies: int, seed: int) -> Iterator[str]:
    """Markdown."""
    yield f"Ever wrong at a look after 4 to {LAST_LOOK} blocks, 5 % promised ({studies} studies, seed {seed}):"
    yield from _grid(("noise", "method", "ever wrong"), [_ever(one) for one in ever_wrong(studies, seed)])
    few = max(20, studies // _FEWER)
    taken = [one for target in TARGETS for one in taken_to_width(target, few, seed)]
    yield f"Blocks to a width, normal noise, no effect ({few} studies, at most {LAST_LOOK} blocks):"
    yield from _grid(_COLUMNS, [_taken(one, _reference(taken, one)) for one in taken])
    taken = [one for effect in EFFECTS for one in taken_to_margin(MARGIN, effect, few, seed)]
    yield f"Blocks until an interval is within the margin or outside, normal noise ({few} studies):"
    yield from _grid(_COLUMNS[:-1], [_taken(one)[:-1] for one in taken])


_COLUMNS = ("goal", "true effect", "method", "blocks", "at the cap", "held the truth", "times today's rule")


def _ever(one: Ever) -> tuple[str, ...]:
    low, high = 100 * (one.wrong.low or 0), 100 * (one.wrong.high or 0)
    return one.noise, one.method, f"{100 * (one.wrong.share or 0):.2f} % [{low:.2f}, {high:.2f}]"


def _taken(one: Taken, reference: Taken | None = None) -> tuple[str, ...]:
    low, high = 100 * (one.right.low or 0), 100 * (one.right.high or 0)
    times = "" if reference is None else f"{one.blocks / reference.blocks:.2f}"
    right = f"{100 * (one.right.share or 0):.1f} % [{low:.1f}, {high:.1f}]"
    return one.goal, f"{100 * one.effect:g} %", one.method, f"{one.blocks:.1f}", f"{one.capped:.0%}", right, times


def _reference(taken: Sequence[Taken], one: Taken) -> Taken:
    return next(each for each in taken if each.goal == one.goal and each.method == "today's rule")


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


if __name__ == "__main__":
    main()
