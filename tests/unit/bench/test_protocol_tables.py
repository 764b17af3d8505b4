"""How the figures of `make bench-protocol` are shown."""

from __future__ import annotations

import io

from rich.console import Console

from bench.protocol.costs import Verdicts
from bench.protocol.figures import TARGETS, AsPublished, Cost, Figures, Wrong
from bench.protocol.tables import grids, markdown, show
from tare.calibrate.pooled import share
from tare.calibrate.summary import identity_of
from tare.record.host_facts import HostFacts

NO, SOME = Verdicts(share(0, 0), share(0, 0)), Verdicts(share(3, 15), share(1, 6))
FIGURES = Figures(
    identity=identity_of(HostFacts(), None),
    studies={"interleave": 3},
    machine_s={"interleave": 594.6},
    spread={"interleave": None},
    pair_s={"interleave": 16.46},
    within=0.145**2,
    between=0.076**2,
    wrong=(Wrong("interleave", SOME, NO),),
    costs=(
        Cost("interleave", 0.02, None, 1718.4, 2577.0, 1.0, claimed=False),
        Cost("buckets", 0.01, 12.0, 1231.0, None, None, claimed=True),
    ),
    published=(
        AsPublished(
            "percona-2016", 1800.0, 1, 3600.0, None,
            {f"{target:g}": 6 for target in TARGETS},
            {f"{target:g}": 21600.0 for target in TARGETS},
            {f"{target:g}": None for target in TARGETS},
        ),
    ),
    injected={},
)  # fmt: skip


def test_what_is_not_known_is_a_hyphen_and_what_was_not_reached_says_so() -> None:
    pools, verdicts, costs, published, _ = grids(FIGURES)
    assert pools.rows == (("interleave", "3", "595", "16.5", "-"),)
    assert verdicts.rows[0][3:] == ("-", "-")
    assert costs.rows[0][2] == "not reached"
    assert costs.rows[1][0] == "buckets (claimed, invalid)"
    assert published.rows[0][3] == "none"


def test_a_share_stands_with_its_interval_and_what_it_is_of() -> None:
    _, way, *_ = grids(FIGURES)
    assert way.rows[0][1] == "20 % of 15"
    assert way.rows[0][2].startswith("17 % [")
    assert way.rows[0][2].endswith("] of 6")


def test_every_row_is_as_wide_as_its_head() -> None:
    for grid in grids(FIGURES):
        assert {len(row) for row in grid.rows} <= {len(grid.columns)}, grid.title


def test_markdown_and_terminal_show_the_same_cells() -> None:
    text, seen = markdown(FIGURES), io.StringIO()
    show(FIGURES, Console(file=seen, width=400))
    assert "7.60 % between restarts, 14.50 % of windows" in text
    for row in (row for grid in grids(FIGURES) for row in grid.rows):
        assert f"| {' | '.join(row)} |" in text
        assert all(cell in seen.getvalue() for cell in row)
